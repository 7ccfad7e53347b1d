"""Quantities with results that can be computed by hand."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import ibis
import numpy as np
import pytest
from conftest import OpenRun, OpenStudy
from factory import MS, STATISTICS, US, S, run_row, write_run

from iosonar.quantities.address import DEVICES, parts, transfers
from iosonar.quantities.density import Cells
from iosonar.quantities.fidelity import fidelity
from iosonar.quantities.narrow import MAX_INT32, narrow
from iosonar.quantities.outcomes import SKIPPED, outcomes
from iosonar.quantities.pairs import pairs
from iosonar.quantities.progress import progress
from iosonar.quantities.series import series_of
from iosonar.quantities.span import Span, span
from iosonar.study.of_requests import judgement_of
from iosonar.study.runs import stated_fidelity
from iosonar.table import open_requests
from iosonar.table.footer import Statistics
from iosonar.table.structure import structured

NEVER: dict[str, Any] = {"issued_ns": None, "completed_ns": None}


def test_fidelity_is_that_of_requests_not_held_back(open_run: OpenRun) -> None:
    # 50 within 10 µs, 30 more within 50, 10 more within 100; the last ten are 200 µs late.
    late = [*[10] * 50, *[50] * 30, *[100] * 10, *[200] * 10]
    # Reading the load too late, writing the record too slowly, or a backlog of its own is a delay of the replayer.
    own = ("none", "input", "completion_log", "backlog")
    free = [
        run_row(n, delay=us * US, delay_reason=own[n % 4], pushed_back=own[n % 4] == "backlog" and n % 8 == 3)
        for n, us in enumerate(late)
    ]
    reasons: list[dict[str, Any]] = [
        {"pushed_back": True},
        {"pushed_back": True, "delay_reason": "input"},
        *({"delay_reason": why} for why in ("depth", "order", "perturbed")),
    ]
    held = [run_row(delay=9_000 * US, **more) for more in reasons]
    never = run_row(**NEVER)
    with open_run([*free, *held, never]) as requests:
        found = fidelity(requests.table)
    assert found.requests == 100
    assert (found.within_10_us, found.within_50_us, found.within_100_us) == (0.5, 0.8, 0.9)
    assert math.isnan(found.p99_s), "of a hundred requests"
    assert found.faithful is None


def test_a_percentile_of_the_footer_does_not_exceed_the_maximum() -> None:
    # Footers of earlier versions have the upper end of a bin.
    within = {"10": 99.0, "25": 99.0, "50": 99.0, "100": 99.0}
    error = {"p50": 1.0, "p99": 448_790.0, "max": 448_570.0}
    stated: list[dict[str, Any]] = [
        {"within_not_held_back_pct": within, "delay_not_held_back_us": error},
        {"verdict": {"faithful": True, "own": {"requests": 9, "delay_us": error, "within_pct": within}}},
    ]
    for statistics in stated:
        found = stated_fidelity(structured(Statistics, statistics))
        assert found is not None and found.p99_s == 0.44857


def test_a_request_with_an_unknown_delay_reason_gives_no_verdict(open_run: OpenRun) -> None:
    with open_run([run_row(delay=5 * US, pushed_back=None, delay_reason=None)]) as requests:
        assert fidelity(requests.table).requests == 0


def test_outcomes_and_operations_are_counted(open_run: OpenRun) -> None:
    rows = [
        run_row(),
        run_row(),
        run_row(outcome="error", errno=5),
        run_row(op="write"),
        run_row(op="write", outcome="dropped", **NEVER),
        run_row(op="flush", sectors=0, outcome="excluded", **NEVER),
        # A row without an outcome counts as done, as in the Rust half.
        run_row(op="write", outcome=None),
    ]
    with open_run(rows) as requests:
        found = outcomes(requests.table)
    assert found.by_op == {"read": 3, "write": 3, "flush": 1}
    assert found.by_outcome == {"ok": 4, "error": 1, "dropped": 1, "excluded": 1}
    assert (found.of("error", "short"), found.of(*SKIPPED), found.of("corrupt")) == (1, 2, 0)


@pytest.mark.parametrize(("zeros", "grade"), [(1, "good"), (2, "warning")])
def test_zero_reads_are_a_share_of_reads(open_study: OpenStudy, zeros: int, grade: str) -> None:
    # One of a hundred reads is good. Relative to all requests, two would be as well.
    rows = [run_row(n, scheduled=n * MS, op="read" if n < 100 else "write") for n in range(200)]
    with open_study(rows, run={"statistics": STATISTICS | {"zero_reads": zeros}}) as study:
        assert judgement_of(study).as_json()["zero_reads"] == {"grade": grade, "requests": zeros}


def test_requests_of_two_runs_are_paired_by_their_number(tmp_path: Path) -> None:
    def run(name: str, latencies: dict[tuple[int, int], int | None]) -> Path:
        rows = [
            run_row(number, iteration=iteration, latency=None if ms is None else ms * MS)
            for (number, iteration), ms in latencies.items()
        ]
        return write_run(tmp_path / f"{name}.replay.parquet", rows)

    # By number and iteration. Request 0 took 1, 2 and 900 ms in a: 2 ms, the median.
    a1 = run("a1", {(0, 0): 1, (1, 0): 10, (2, 0): 1, (2, 1): 7, (3, 0): 5, (4, 0): None})
    a2 = run("a2", {(0, 0): 2})
    a3 = run("a3", {(0, 0): 900})
    b = run("b", {(0, 0): 4, (1, 0): 5, (2, 0): 3, (2, 1): 7, (3, 1): 5, (4, 0): 9, (5, 0): 9})
    with open_requests([a1, a2, a3, b]) as requests:
        table = requests.table
        found = pairs(table.filter(table.source < 3), table.filter(table.source == 3))
        assert pairs(table.filter(table.source == 1), table.filter(table.request == 5)) is None
    # The ratios are 2, 0.5, 3 and 1; requests 3 to 5 are on one side only.
    assert found is not None and found.requests == 4
    assert found.median_ratio == pytest.approx(math.sqrt(2))
    assert found.slower_share == 0.5


def test_the_span_is_that_of_known_times(open_run: OpenRun) -> None:
    rows = [
        run_row(0, scheduled=2 * S, delay=S, latency=4 * S),
        run_row(1, scheduled=3 * S, delay=S, latency=None),
        run_row(2, scheduled=9 * S, **NEVER),
    ]
    with open_run(rows) as requests:
        assert span(requests.table) == Span(3, 2, 1, 2 * S, 9 * S, 2 * S, 9 * S, 2.0, 9.0, 4.0, 7.0)
    with open_run([]) as requests:
        assert span(requests.table) == Span(0, 0, 0, 0, 0, None, None, None, None, None, None)


def test_slices_of_a_run_have_their_known_means(open_run: OpenRun) -> None:
    # Three in the first slice, two known ones and a null in the second, none in the last.
    with open_run([run_row(in_flight=depth) for depth in (1, 2, 6, 50, None, 9)]) as requests:
        table = requests.table
        found = progress(table, table.place, table.in_flight, Cells(0, 9, 3))
        assert progress(table, table.place, table.ready_ns, Cells(0, 9, 3)) is None
    assert found is not None
    assert found.edges.tolist() == [0, 3, 6, 9]
    np.testing.assert_equal(found.mean, [3, 29.5, np.nan])
    np.testing.assert_equal(found.minimum, [1, 9, np.nan])
    np.testing.assert_equal(found.maximum, [6, 50, np.nan])
    assert found.total.tolist() == [9, 59, 0]


def test_addresses_of_requests_that_move_data(tmp_path: Path) -> None:
    rows = [
        run_row(0, sector=5),
        run_row(1, sector=6, device=1, op="write"),
        run_row(2, sector=7, device=None),
        # These touch nothing: without data, of another operation, or never issued.
        run_row(3, sectors=0),
        run_row(4, op="discard"),
        run_row(5, outcome="dropped", **NEVER),
    ]
    paths = [write_run(tmp_path / f"{name}.replay.parquet", rows) for name in "ab"]
    with open_requests(paths) as requests:
        found = transfers(requests.table).order_by("source", "request").to_pyarrow()
        narrowed = narrow(requests.table, 12)
        assert transfers(narrowed).count().to_pyarrow().as_py() == 6
        (part,) = parts(transfers(requests.table), 100)
        begin, end = part.addresses(found)
    assert found["extent"].to_pylist() == [0, 1, 0, DEVICES, DEVICES + 1, DEVICES]
    # Pages of 8 sectors stay aligned; each device begins with the page of its first request.
    assert begin.tolist() == [5, 16 + 6, 7, 32 + 5, 48 + 6, 32 + 7]
    assert (end - begin).tolist() == [8] * 6


def test_each_request_is_in_one_part(open_run: OpenRun) -> None:
    rows = [run_row(n, sector=3 + n * 6553, device=n % 2) for n in range(100)]
    rows += [run_row(100, device=2, sector=2**54 - 9), run_row(101, device=3), run_row(102, device=3, sector=2**54 - 9)]
    with open_run(rows) as requests:
        moved = transfers(requests.table)
        for most in (3, 20, 60, 1000):
            begun: list[int] = []
            for part in parts(moved, most):
                begun += part.beginning(moved).to_pyarrow()["request"].to_pylist()
                inside = part.within(moved).to_pyarrow()
                begin, end = part.addresses(inside)
                assert (begin >= 0).all() and (end > begin).all()
                assert inside.num_rows <= 2 * most
            assert sorted(begun) == list(range(103))
        assert list(parts(moved.filter(moved.request < 0), 50)) == []


def test_narrow_columns_have_the_same_values(open_run: OpenRun) -> None:
    rows = [run_row(0, sector=5, device=None), run_row(1, op="write"), run_row(2, op="flush", sectors=0)]
    with open_run(rows) as requests:
        table = narrow(requests.table, 3)
        found = table.order_by("place").to_pyarrow()
        series = requests.table.order_by("place").select(series=series_of(requests.table)).to_pyarrow()
        assert isinstance(narrow(requests.table, MAX_INT32 + 1).place.type(), type(ibis.dtype("int64")))
    assert found["moved"].to_pylist() == [True, True, False]
    assert found["is_read"].to_pylist() == [True, False, False]
    assert found["device"].to_pylist() == [0, 0, 0]
    assert found["sector"].to_pylist() == [5, 0, 0]
    assert found["series"].to_pylist() == series["series"].to_pylist()
    assert found["place"].to_pylist() == [0, 1, 2]
    assert {name: str(kind) for name, kind in table.schema().items() if name in ("source", "place", "sectors")} == {
        "source": "int16",
        "place": "int32",
        "sectors": "int64",
    }
