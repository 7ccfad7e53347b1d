"""Working sets: how many different sectors were touched within the last δ, for several δ at once.

The working set at a moment t is the set of all sectors of all requests in [t−δ, t). It is sampled at the borders of
equal cells of time, of which every δ is a multiple, so that nothing is rounded: a request counts by the cell it is in.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from iosonar.quantities.address import ranges, transfers
from iosonar.quantities.pieces import Pieces, pieces
from iosonar.quantities.threads import in_threads

if TYPE_CHECKING:
    import ibis.expr.types as ir

DEFAULT_WINDOWS_S = (1.0, 6.0, 60.0, 600.0, math.inf)
SAMPLES = 500
MOST_SAMPLES = 60_000
ROWS_AT_ONCE = 5_000_000
"""Requests that are held in memory at once; of more, one range of addresses after the other."""

ROWS_IN_CACHE = 600_000
"""Requests that the kernel takes at once: twice as fast as all of them together."""

Requests = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]
"""The first address of each, that behind its last, and its cell of time."""


@dataclass(frozen=True)
class Grid:
    """Cells of time: `count` of `step_s` seconds from `first` × `step_s` on."""

    step_s: float
    first: int
    count: int

    @property
    def times_s(self) -> NDArray[np.float64]:
        """The ends of the cells, where working sets are sampled."""
        return (self.first + 1 + np.arange(self.count, dtype=np.float64)) * self.step_s

    def cell(self, at_ns: ir.IntegerColumn) -> ir.IntegerColumn:
        """The number of the cell that a time lies in."""
        return (at_ns / round(self.step_s * 1e9)).floor().cast("int32") - self.first


@dataclass(frozen=True)
class WorkingSets:
    """Sizes in sectors at the sample times, for each window; a window longer than what passed is not a number."""

    grid: Grid
    sectors: dict[float, NDArray[np.float64]]


def grid_for(first_s: float, last_s: float, windows_s: Sequence[float]) -> Grid:
    """Cells for a stretch of time: a whole number of them to the shortest window, and enough for a smooth line."""
    shortest = min(windows_s)
    shortest = shortest if math.isfinite(shortest) else max(last_s - first_s, 1e-3)
    cells = max(1, math.ceil(SAMPLES * shortest / max(last_s - first_s, 1e-3)))
    step = shortest / cells
    step *= max(1, math.ceil((last_s - first_s) / step / MOST_SAMPLES))
    first = math.floor(first_s / step)
    return Grid(step, first, math.floor(last_s / step) - first + 1)


def working_sets(table: ir.Table, grid: Grid, windows_s: Sequence[float]) -> WorkingSets:
    """Samples the working sets of all windows, which are multiples of the grid's step, or infinite."""
    cells = [grid.count if math.isinf(window) else round(window / grid.step_s) for window in windows_s]
    moved = transfers(table).mutate(cell=lambda moved: grid.cell(moved.intended_ns))
    sizes = np.zeros((len(cells), grid.count))
    for low, high in ranges(moved, ROWS_AT_ONCE):
        parts = _parts(*_requests_within(moved, low, high))
        for sampled in in_threads(lambda part: _sampled(pieces(*part), grid.count, cells), parts):
            sizes += sampled
    for size, window in zip(sizes, cells, strict=True):
        # Before a window has passed, it is not full.
        size[: window - 1 if window < grid.count else 0] = np.nan
    return WorkingSets(grid, dict(zip(windows_s, sizes, strict=True)))


def _sampled(found: Pieces, count: int, windows: Sequence[int]) -> NDArray[np.float64]:
    """The size of each window (in cells) at the end of each of `count` cells.

    A piece that is touched in cell i, and next in cell j, is in a window of w cells at the ends of the cells from i to
    min(j, i + w) − 1. So it adds its length at i and takes it away at min(j, i + w). Which of the two that is depends
    only on which windows are shorter than j − i: two histograms over (cell, that class) serve all windows.
    """
    order = np.argsort(windows)
    ascending = np.asarray(windows)[order]
    # Of the pieces in class k, the next touch comes later than the k shortest windows.
    gap = found.next - found.cell
    class_ = np.searchsorted(ascending, gap, side="left").astype(np.int64)
    classes = len(windows) + 1
    weights = found.length.astype(np.float64)
    touched = np.bincount(found.cell * np.int64(classes) + class_, weights, count * classes).reshape(count, classes)
    again = found.next < count
    next_ = found.next[again] * np.int64(classes) + class_[again]
    renewed = np.bincount(next_, weights[again], count * classes).reshape(count, classes)
    sizes = np.empty((len(windows), count))
    for rank, place in enumerate(order):
        window = windows[place]
        change = touched.sum(axis=1) - renewed[:, : rank + 1].sum(axis=1)
        change[window:] -= touched[: max(count - window, 0), rank + 1 :].sum(axis=1)
        sizes[place] = np.cumsum(change)
    return sizes


def _requests_within(moved: ir.Table, low: int, high: int) -> Requests:
    """All requests, as far as they lie within a range of addresses: where they begin and end there, and their cell."""
    import ibis

    begin, end = moved.address, moved.address + moved.sectors
    rows = (
        moved.filter((begin < high) & (end > low))
        .select(begin=ibis.greatest(begin, low) - low, end=ibis.least(end, high) - low, cell=moved.cell)
        .to_pyarrow()
    )
    return rows["begin"].to_numpy(), rows["end"].to_numpy(), rows["cell"].to_numpy()


def _parts(begin: NDArray[np.int64], end: NDArray[np.int64], cell: NDArray[np.int32]) -> Iterator[Requests]:
    """The same requests by ranges of addresses that are small enough for the processor's caches."""
    if not len(begin):
        return
    parts = math.ceil(len(begin) / ROWS_IN_CACHE)
    some = np.sort(begin[:: max(len(begin) // 100_000, 1)])
    cuts = np.unique(some[len(some) * np.arange(1, parts) // parts])
    first = np.searchsorted(cuts, begin, side="right").astype(np.uint16)
    last = np.searchsorted(cuts, end - 1, side="right").astype(np.uint16)
    order = np.argsort(first, kind="stable")
    starts = np.searchsorted(first[order], np.arange(len(cuts) + 2))
    across = np.flatnonzero(first < last)
    for part, (low, high) in enumerate(pairwise([0, *cuts.tolist(), int(end.max())])):
        reaching = across[(first[across] < part) & (last[across] >= part)]
        inside = np.concatenate([reaching, order[starts[part] : starts[part + 1]]])
        if len(inside):
            yield np.maximum(begin[inside], low), np.minimum(end[inside], high), cell[inside]
