"""Quantities whose answers can be told by hand."""

from __future__ import annotations

import pytest
from conftest import OpenRun
from factory import US, run_row

from iosonar.quantities.fidelity import fidelity


def test_fidelity_is_of_those_that_were_free_to_go(open_run: OpenRun) -> None:
    # 50 within 10 µs, 30 more within 50, 10 more within 100; the last ten are 200 µs late.
    late = [*[10] * 50, *[50] * 30, *[100] * 10, *[200] * 10]
    free = [run_row(n, delay=us * US) for n, us in enumerate(late)]
    held = [
        run_row(delay=9_000 * US, **more)
        for more in ({"pushed_back": True}, {"held_by": "depth"}, {"held_by": "perturbed"})
    ]
    never = run_row(issued_ns=None, completed_ns=None)
    with open_run([*free, *held, never]) as requests:
        found = fidelity(requests.table)
    assert found.requests == 100
    assert (found.within_10_us, found.within_50_us, found.within_100_us) == pytest.approx((0.5, 0.8, 0.9))
    assert found.p99_s == pytest.approx(200e-6, rel=0.005)
    assert found.faithful is None


def test_what_is_not_known_counts_as_free(open_run: OpenRun) -> None:
    with open_run([run_row(delay=5 * US, pushed_back=None, held_by=None)]) as requests:
        assert fidelity(requests.table).requests == 1
