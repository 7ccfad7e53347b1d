from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from conftest import OpenRun
from factory import S, load_row, run_row, write_load
from hypothesis import given, settings
from hypothesis import strategies as st

from iosonar.quantities import pieces as pieces_module
from iosonar.quantities import working_set
from iosonar.quantities.distance import distances, reaches, sliding_maximum
from iosonar.quantities.pieces import NEVER, pieces
from iosonar.quantities.working_set import Grid, grid_for, working_sets
from iosonar.table import open_requests

REQUESTS = st.lists(st.tuples(st.integers(0, 19), st.integers(0, 40), st.integers(1, 12)), min_size=1, max_size=40)
"""Second, first sector, sectors."""

WINDOWS = [2.0, 5.0, math.inf]
GRID = Grid(S, 0, 20)


def touched(requests: list[tuple[int, int, int]], end: int, window: float) -> set[int]:
    """The working set at `end`, by a set of sectors."""
    return {
        sector for at, first, length in requests if end - window <= at < end for sector in range(first, first + length)
    }


def write(directory: Path, requests: list[tuple[int, int, int]]) -> Path:
    rows = [load_row(at * S, sector=first, sectors=length) for at, first, length in sorted(requests)]
    return write_load(directory / "a.load.parquet", rows)


@settings(max_examples=15)
@given(requests=REQUESTS, rows_at_once=st.sampled_from([1, 7, 1000]), in_cache=st.sampled_from([2, 1000]))
def test_sizes_equal_those_of_sets(
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


@settings(max_examples=15)
@given(requests=REQUESTS, window=st.integers(1, 20))
def test_distances_equal_those_of_sets(tmp_path: Path, requests: list[tuple[int, int, int]], window: int) -> None:
    with open_requests([write(tmp_path, requests)]) as opened:
        found = distances(reaches(opened.table, GRID), GRID, window * S)
    sets = [touched(requests, end, window) for end in range(1, 21)]
    expected = [
        math.nan if not sectors or (end < window < 20) else max(sectors) - min(sectors)
        for end, sectors in enumerate(sets, 1)
    ]
    assert np.array_equal(found, expected, equal_nan=True)


def test_overlapping_requests_are_cut_into_pieces() -> None:
    (found,) = pieces(np.array([0, 4]), np.array([20, 10]), np.array([0, 5], np.int32))
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
        found = working_sets(requests.table, Grid(S, 0, 1), [math.inf])
    assert found.sectors[math.inf].tolist() == [12]


@settings(max_examples=40)
@given(
    requests=st.lists(st.tuples(st.integers(0, 40), st.integers(1, 12)), min_size=1, max_size=40),
    most=st.sampled_from([1, 20, 10**6]),
    splits=st.sampled_from([0, 3, 1000]),
)
def test_pieces_in_parts_and_overwritten_ones_agree(requests: list[tuple[int, int]], most: int, splits: int) -> None:
    begin, length = np.array(requests, np.int64).T
    cell = np.arange(len(requests), dtype=np.int32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces_module, "MAX_PIECES", most)
        patch.setattr(pieces_module, "MAX_SPLITS", splits)
        found = list(pieces(begin, begin + length, cell))
    seen = Counter[tuple[int, int]]()
    for part in found:
        for cell_, next_, sectors in zip(*(x.tolist() for x in (part.cell, part.next, part.length)), strict=True):
            seen[cell_, next_] += sectors
    expected = Counter[tuple[int, int]]()
    last: dict[int, int] = {}
    for now, (first, sectors) in enumerate(requests):
        for sector in range(first, first + sectors):
            if sector in last:
                expected[last[sector], now] += 1
            last[sector] = now
    expected.update((touch, int(NEVER)) for touch in last.values())
    assert +seen == expected


SCALES = (1, 7, 1000, 10**6, 10**9 + 7, 3600 * S, 86400 * S, 10**17)
"""Nanoseconds: requests are up to 19 units apart."""


@settings(max_examples=25)
@given(
    requests=REQUESTS,
    scale=st.sampled_from(SCALES),
    origin=st.sampled_from([0, -5, 86400 * S + 1, -(10**18)]),
    step=st.fractions(Fraction(1, 3), 6),
    window=st.fractions(Fraction(1, 100), 8),
)
def test_windows_may_be_fractions_of_cells(
    tmp_path: Path, requests: list[tuple[int, int, int]], scale: int, origin: int, step: Fraction, window: Fraction
) -> None:
    times = [(origin + at * scale, first, length) for at, first, length in requests]
    step_ns, window_ns = max(int(step * scale), 1), max(int(window * scale), 1)
    begin = min(at for at, _, _ in times) // step_ns
    grid = Grid(step_ns, begin, max(at for at, _, _ in times) // step_ns - begin + 1)
    rows = [load_row(at, sector=first, sectors=length) for at, first, length in sorted(times)]
    with open_requests([write_load(tmp_path / "a.load.parquet", rows)]) as opened:
        # The window in seconds converts back to the same nanoseconds.
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(working_set, "nanoseconds", lambda window: window)
            sizes = working_sets(opened.table, grid, [window_ns, None]).sectors  # type: ignore[list-item]
        rest = window_ns % grid.step_ns
        partial = reaches(opened.table, grid, rest) if rest else None
        far = distances(reaches(opened.table, grid), grid, window_ns, partial)
    for number in range(grid.count):
        end = (grid.first + number + 1) * step_ns
        sectors = {
            sector
            for at, first, length in times
            if end - window_ns <= at < end
            for sector in range(first, first + length)
        }
        if end - grid.start_ns < window_ns < grid.count * step_ns:
            assert math.isnan(sizes[window_ns][number]) and math.isnan(far[number])
            continue
        assert sizes[window_ns][number] == len(sectors)
        expected = max(sectors) - min(sectors) if sectors else math.nan
        assert np.array_equal(far[number], expected, equal_nan=True)


@settings(max_examples=100)
@given(values=st.lists(st.integers(-9, 9), min_size=1, max_size=30), window=st.integers(1, 40))
def test_the_largest_of_the_last_values(values: list[int], window: int) -> None:
    expected = [max(values[max(end - window, 0) : end]) for end in range(1, len(values) + 1)]
    assert sliding_maximum(np.array(values, np.int64), window).tolist() == expected


YEAR_NS = 31_557_600 * S


@pytest.mark.parametrize("length", [0, 1, 999, S // 2, 36 * S, 3600 * S, 86400 * S, 7 * 86400 * S, 100 * YEAR_NS])
@pytest.mark.parametrize("first", [0, -7 * S, 5 * S + 1])
def test_grids_are_fine_enough_and_bounded(first: int, length: int) -> None:
    grid = grid_for(first, first + length, [1.0, 6.0, 60.0, math.inf])
    assert 1 <= grid.count <= working_set.MAX_SAMPLES + 2
    assert grid.count >= min(working_set.SAMPLES, length // 2)
    assert grid.start_ns <= first < grid.start_ns + grid.step_ns
    assert first + length < (grid.first + grid.count) * grid.step_ns
    assert (np.diff(grid.times_s) > 0).all()
    if length >= S:
        assert S % grid.step_ns == 0 or grid.step_ns % S == 0
