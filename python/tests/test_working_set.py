from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from conftest import OpenRun
from factory import S, load_row, run_row, write_load
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from iosonar.quantities import working_set
from iosonar.quantities.distance import distances, reaches
from iosonar.quantities.pieces import NEVER, pieces
from iosonar.quantities.working_set import Grid, grid_for, working_sets
from iosonar.table import open_requests

REQUESTS = st.lists(st.tuples(st.integers(0, 19), st.integers(0, 40), st.integers(1, 12)), min_size=1, max_size=40)
"""Second, first sector, sectors."""

WINDOWS = [2.0, 5.0, math.inf]
GRID = Grid(1.0, 0, 20)


def touched(requests: list[tuple[int, int, int]], end: int, window: float) -> set[int]:
    """The slow, obvious working set at `end`."""
    return {
        sector for at, first, length in requests if end - window <= at < end for sector in range(first, first + length)
    }


def write(folder: Path, requests: list[tuple[int, int, int]]) -> Path:
    rows = [load_row(at * S, sector=first, sectors=length) for at, first, length in sorted(requests)]
    return write_load(folder / "a.load.parquet", rows)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(requests=REQUESTS, rows_at_once=st.sampled_from([1, 7, 1000]), in_cache=st.sampled_from([2, 1000]))
def test_sizes_are_those_of_sets(
    tmp_path: Path, requests: list[tuple[int, int, int]], rows_at_once: int, in_cache: int
) -> None:
    with pytest.MonkeyPatch.context() as patch, open_requests([write(tmp_path, requests)]) as opened:
        patch.setattr(working_set, "ROWS_AT_ONCE", rows_at_once)
        patch.setattr(working_set, "ROWS_IN_CACHE", in_cache)
        found = working_sets(opened.table, GRID, WINDOWS)
    for window in WINDOWS:
        expected = [
            math.nan if end < window < math.inf else len(touched(requests, end, window)) for end in range(1, 21)
        ]
        assert np.array_equal(found.sectors[window], expected, equal_nan=True)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(requests=REQUESTS, window=st.integers(1, 20))
def test_distances_are_those_of_sets(tmp_path: Path, requests: list[tuple[int, int, int]], window: int) -> None:
    with open_requests([write(tmp_path, requests)]) as opened:
        found = distances(reaches(opened.table, GRID), GRID, window)
    sets = [touched(requests, end, window) for end in range(1, 21)]
    expected = [
        math.nan if not sectors or (end < window < 20) else max(sectors) - min(sectors)
        for end, sectors in enumerate(sets, 1)
    ]
    assert np.array_equal(found, expected, equal_nan=True)


def test_pieces_of_two_requests() -> None:
    found = pieces(np.array([0, 4]), np.array([20, 10]), np.array([0, 5], np.int32))
    assert list(zip(found.cell.tolist(), found.next.tolist(), found.length.tolist(), strict=True)) == [
        (0, NEVER, 4),
        (0, 5, 6),
        (5, NEVER, 6),
        (0, NEVER, 10),
    ]


def test_skipped_requests_and_flushes_touch_nothing(open_run: OpenRun) -> None:
    rows = [
        run_row(sectors=8),
        run_row(sectors=8, sector=8, issued_ns=None, completed_ns=None, outcome="dropped"),
        run_row(sectors=0, op="flush"),
        run_row(sectors=8, sector=100, op="discard"),
        run_row(sectors=4, sector=6, device=1),
    ]
    with open_run(rows) as requests:
        found = working_sets(requests.table, Grid(1.0, 0, 1), [math.inf])
    assert found.sectors[math.inf].tolist() == [12]


def test_every_window_is_a_whole_number_of_cells() -> None:
    for duration in (0.0, 0.5, 36.0, 3600.0, 86400.0):
        grid = grid_for(0.0, duration, [1.0, 6.0, 60.0, math.inf])
        assert 60.0 / grid.step_s == pytest.approx(round(60.0 / grid.step_s))
        assert grid.times_s[-1] >= duration
    assert grid_for(300.5, 301.5, [math.inf]).first == math.floor(300.5 / grid_for(300.5, 301.5, [math.inf]).step_s)
