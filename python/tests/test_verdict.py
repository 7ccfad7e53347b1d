from __future__ import annotations

from conftest import OpenRun
from factory import S, run_row

from iosonar.quantities.verdict import Verdict, verdict


def test_the_first_violation_is_found(open_run: OpenRun) -> None:
    rows = [run_row(scheduled=9 * S, latency=7 * S), run_row(scheduled=2 * S, latency=6 * S), run_row(latency=5 * S)]
    with open_run(rows) as requests:
        found = verdict(requests.table, requests.table.latency_ns, requests.table.issued_ns, 5.0)
    assert found == Verdict(5.0, 2, 2.0, 7.0)
    assert not found.passed


def test_some_violations_do_not_count(open_run: OpenRun) -> None:
    rows = [run_row(latency=7 * S), run_row(latency=6 * S)]
    with open_run(rows) as requests:
        table = requests.table
        found = [verdict(table, table.latency_ns, table.issued_ns, 5.0, fails_at) for fails_at in (1, 2, 3)]
    assert [each.beyond for each in found] == [2, 2, 2]
    assert [each.passed for each in found] == [False, False, True]


def test_without_violations_the_verdict_passes(open_run: OpenRun) -> None:
    with open_run([run_row(latency=S), run_row(latency=None)]) as requests:
        found = verdict(requests.table, requests.table.latency_ns, requests.table.issued_ns, 5.0)
    assert found == Verdict(5.0, 0, None, 1.0)
    assert found.passed
