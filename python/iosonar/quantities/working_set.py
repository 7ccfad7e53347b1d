"""Working sets: the number of distinct sectors touched within the last δ, for several δ at once.

The working set at time t is the set of all sectors of all requests in [t−δ, t). It is sampled at the borders of equal
cells of time. Requests count by their exact time in nanoseconds, so δ may be any duration, even much shorter than a
cell.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from iosonar.quantities.address import Part, parts, transfers
from iosonar.quantities.batches import array_of
from iosonar.quantities.integers import divided, remainder
from iosonar.quantities.pieces import NEVER, Pieces, pieces
from iosonar.quantities.threads import in_threads

if TYPE_CHECKING:
    import ibis.expr.types as ir

DEFAULT_WINDOWS_S = (1.0, 6.0, 60.0, 600.0, math.inf)
SAMPLES = 500
MAX_SAMPLES = 10_000
ROWS_AT_ONCE = 5_000_000
"""Requests in memory at once; more are processed in parts of the address space."""

ROWS_IN_CACHE = 600_000
"""Requests that the kernel processes at once, which is twice as fast as all of them together."""

EXACT_FLOATS = 2.0**53
"""Up to here float64 adds integers exactly."""

Requests = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]
"""For each request its first address, the address after its last, and its time in ns."""


@dataclass(frozen=True)
class Grid:
    """`count` cells of time of `step_ns` nanoseconds each, from `first` × `step_ns` on."""

    step_ns: int
    first: int
    count: int

    @property
    def start_ns(self) -> int:
        """The start of the first cell."""
        return self.first * self.step_ns

    @property
    def times_s(self) -> NDArray[np.float64]:
        """The ends of the cells, where working sets are sampled."""
        return (self.first + 1 + np.arange(self.count, dtype=np.float64)) * self.step_ns / 1e9

    def cell(self, at_ns: ir.IntegerColumn) -> ir.IntegerColumn:
        """The cell of a time."""
        return divided(at_ns - self.start_ns, self.step_ns).cast("int32")

    def left(self, at_ns: ir.IntegerColumn) -> ir.IntegerColumn:
        """The time since the start of its cell, in ns."""
        return remainder(at_ns - self.start_ns, self.step_ns)

    def unfilled(self, window_ns: int | None) -> int:
        """The number of samples at the start before which the window has not yet passed."""
        if window_ns is None or window_ns >= self.count * self.step_ns:
            return 0
        return -(-window_ns // self.step_ns) - 1


def nanoseconds(window_s: float) -> int | None:
    """A window in whole nanoseconds; None if it is infinite."""
    return None if math.isinf(window_s) else max(round(window_s * 1e9), 1)


@dataclass(frozen=True)
class WorkingSets:
    """Sizes in sectors at the sample times, for each window; NaN while the window has not yet passed."""

    grid: Grid
    sectors: dict[float, NDArray[np.float64]]


def grid_for(first_ns: int, last_ns: int, windows_s: Sequence[float]) -> Grid:
    """Cells for a range of time: enough for a smooth line, and no more than can be drawn.

    If possible, the shortest window is a whole number of cells, or a cell a whole number of shortest windows.
    """
    length = max(last_ns - first_ns, 1)
    shortest = min((window for each in windows_s if (window := nanoseconds(each)) is not None), default=length)
    shortest = min(shortest, length)
    cells = max(-(-SAMPLES * shortest // length), 1)
    step = max(shortest // next((many for many in range(cells, 2 * cells) if shortest % many == 0), cells), 1)
    step *= -(-length // step // MAX_SAMPLES) or 1
    first = first_ns // step
    return Grid(step, first, last_ns // step - first + 1)


def working_sets(table: ir.Table, grid: Grid, windows_s: Sequence[float]) -> WorkingSets:
    """Samples the working sets of all windows."""
    windows = [nanoseconds(window) for window in windows_s]
    moved = transfers(table)
    sizes = np.zeros((len(windows), grid.count), np.int64)
    for part in parts(moved, ROWS_AT_ONCE):
        slices = _slices(*_requests_of(part, moved))
        for sampled in in_threads(lambda requests: _sampled(requests, grid, windows), slices):
            sizes += sampled
    found = sizes.astype(np.float64)
    for size, window in zip(found, windows, strict=True):
        size[: grid.unfilled(window)] = np.nan
    return WorkingSets(grid, dict(zip(windows_s, found, strict=True)))


def _sampled(requests: Requests, grid: Grid, windows: Sequence[int | None]) -> NDArray[np.int64]:
    """The size of each window at the end of each cell of the grid."""
    begin, end, at = requests
    if all(window is None or window % grid.step_ns == 0 for window in windows):
        cells = [grid.count if window is None else min(window // grid.step_ns, grid.count) for window in windows]
        cell = ((at - grid.start_ns) // grid.step_ns).astype(np.int32)
        sizes = [by_cells(found, grid.count, cells) for found in pieces(begin, end, cell)]
    else:
        order = np.argsort(at, kind="stable")
        number = np.arange(len(at), dtype=np.int32)
        sizes = [by_times(found, at[order], grid, windows) for found in pieces(begin[order], end[order], number)]
    total: NDArray[np.int64] = np.sum(sizes, axis=0, dtype=np.int64)
    return total


def by_cells(found: Pieces, count: int, windows: Sequence[int]) -> NDArray[np.int64]:
    """The size of each window (in cells) at the end of each of `count` cells, for windows of whole cells.

    A piece that is touched in cell i, and next in cell j, is in a window of w cells at the ends of the cells from i to
    min(j, i + w) − 1. So add its length at i and subtract it at min(j, i + w). Which of the two that is depends only on
    which windows are shorter than j − i: two histograms over (cell, that class) serve all windows.
    """
    order = np.argsort(windows)
    ascending = np.asarray(windows)[order]
    # The next touch of a piece of class k is later than the k shortest windows; one that never comes is later than all.
    class_of = np.append(np.searchsorted(ascending, np.arange(count + 1), side="left"), len(windows))
    class_ = class_of[np.minimum(found.next - found.cell, count + 1)]
    next_ = np.minimum(found.next, count)
    classes = len(windows) + 1
    length = _weights(found.length)
    touched = _sums(found.cell * np.int64(classes) + class_, length, count * classes).reshape(count, classes)
    renewed = _sums(next_ * np.int64(classes) + class_, length, (count + 1) * classes).reshape(-1, classes)[:count]
    sizes = np.empty((len(windows), count), np.int64)
    for rank, place in enumerate(order):
        window = windows[place]
        change = touched.sum(axis=1) - renewed[:, : rank + 1].sum(axis=1)
        change[window:] -= touched[: max(count - window, 0), rank + 1 :].sum(axis=1)
        sizes[place] = np.cumsum(change)
    return sizes


def by_times(found: Pieces, at: NDArray[np.int64], grid: Grid, windows: Sequence[int | None]) -> NDArray[np.int64]:
    """The same for windows of any length; `cell` and `next` of a piece are indices into the ascending times `at`.

    A piece that is touched at t, and next at u, is in a window δ that ends at T if t < T ≤ min(u, t + δ).
    """
    touched = at - grid.start_ns
    # For each time, the number of the first sample after it; all samples up to it are before that one.
    after = np.append(touched // grid.step_ns, grid.count)
    next_ = np.where(found.next == NEVER, len(at), found.next)
    begins = after[found.cell]
    length = _weights(found.length)
    added = _sums(begins, length, grid.count + 1)
    sizes = np.empty((len(windows), grid.count), np.int64)
    for place, window in enumerate(windows):
        ends = after[next_]
        if window is not None:
            passed = np.minimum((touched + window) // grid.step_ns, grid.count)
            ends = np.minimum(ends, passed[found.cell])
        change = added - _sums(ends, length, grid.count + 1)
        sizes[place] = np.cumsum(change)[:-1]
    return sizes


def _weights(lengths: NDArray[np.int64]) -> NDArray[Any]:
    """Lengths as float64 if their sums are exact as such."""
    weights = lengths.astype(np.float64)
    return weights if weights.sum() < EXACT_FLOATS else lengths


def _sums(places: NDArray[np.int64], lengths: NDArray[Any], count: int) -> NDArray[np.int64]:
    """The sum of lengths for each place."""
    if lengths.dtype == np.float64:
        return np.bincount(places, lengths, count).astype(np.int64)
    # Overflows of these sums cancel out, as a working set is no larger than the device.
    sums = np.zeros(count, np.int64)
    np.add.at(sums, places, lengths)
    return sums


def _requests_of(part: Part, moved: ir.Table) -> Requests:
    """All requests of a part, clipped to it."""
    within = part.within(moved)
    rows = within.select(
        extent=within.extent, sector=within.sector, end_sector=within.end_sector, at=within.scheduled_ns
    ).to_pyarrow()
    return (*part.addresses(rows), array_of(rows["at"]))


def _slices(begin: NDArray[np.int64], end: NDArray[np.int64], at: NDArray[np.int64]) -> Iterator[Requests]:
    """Splits the requests into ranges of addresses that fit into the processor's caches."""
    if not len(begin):
        return
    many = math.ceil(len(begin) / ROWS_IN_CACHE)
    some = np.sort(begin[:: max(len(begin) // 100_000, 1)])
    cuts = np.unique(some[len(some) * np.arange(1, many) // many])
    first = np.searchsorted(cuts, begin, side="right").astype(np.uint16)
    highest = np.append(cuts, np.iinfo(np.int64).max)[first]
    order = np.argsort(first, kind="stable")
    starts = np.searchsorted(first[order], np.arange(len(cuts) + 2))
    # Few requests reach beyond a cut.
    across = np.flatnonzero(end > highest)
    first_across, last_across = first[across], np.searchsorted(cuts, end[across] - 1, side="right")
    for number, (low, high) in enumerate(pairwise([0, *cuts.tolist(), int(end.max())])):
        reaching = across[(first_across < number) & (last_across >= number)]
        inside = np.concatenate([reaching, order[starts[number] : starts[number + 1]]])
        if len(inside):
            yield np.maximum(begin[inside], low), np.minimum(end[inside], high), at[inside]
