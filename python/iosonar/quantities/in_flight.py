"""The number of requests in flight, or waiting: up at one of their times, down at another.

A request is in flight from its issue to its completion, and in the delay queue from its scheduled time to its issue. In
the same nanosecond, ends count before starts, as one request takes the place of another; but every request is counted
at its own start.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from iosonar.quantities.batches import array_of, batches, wider
from iosonar.quantities.integers import cuts, divided, remainder
from iosonar.quantities.series import series_of
from iosonar.quantities.threads import in_threads

if TYPE_CHECKING:
    import ibis.expr.types as ir

ROWS_AT_ONCE = 2_500_000
"""Times sorted at once; more are processed in segments of time."""


@dataclass(frozen=True)
class Slices:
    """`count` slices of time of `width_ns` whole nanoseconds each, from `low_ns` on."""

    low_ns: int
    width_ns: int
    count: int

    @classmethod
    def of(cls, low_ns: int, high_ns: int, limit: int, together: int = 1) -> Slices:
        """At most `limit` slices for a range of time, a multiple of `together`; fewer if they would be below 1 ns."""
        length = max(high_ns - low_ns, 1)
        width = -(-length // (max(limit // together, 1) * together))
        return cls(low_ns, width, -(-length // (width * together)) * together)

    def inside(self, at: ir.IntegerColumn) -> ir.IntegerColumn:
        """A time relative to the start; times outside count in the nearest slice."""
        return (at - self.low_ns).clip(0, self.width_ns * self.count - 1)

    def edges_ns(self) -> NDArray[np.int64]:
        """The borders of the slices."""
        return self.low_ns + np.arange(self.count + 1) * self.width_ns


@dataclass(frozen=True)
class Events:
    """Times of requests by slice: how many, and the sum of their positions within the slice (0 … 1)."""

    across: Slices
    number: dict[int, NDArray[np.float64]]
    within: dict[int, NDArray[np.float64]]


@dataclass(frozen=True)
class Levels:
    """The mean level in each of consecutive slices of time, for each series."""

    edges_s: NDArray[np.float64]
    mean: dict[int, NDArray[np.float64]]

    def joined(self, count: int) -> Levels:
        """Merges each `count` slices into one; the number of slices is a multiple of `count`."""
        return Levels(
            self.edges_s[::count], {series: mean.reshape(-1, count).mean(axis=1) for series, mean in self.mean.items()}
        )


def events(table: ir.Table, at: ir.IntegerColumn, across: Slices) -> Events:
    """Counts the times `at` (a column in ns) in each slice, for each series; skips nulls."""
    counted = table.filter(at.notnull())
    rows = batches(counted.select(series=series_of(table), at=at))
    if rows is not None:
        return _counted(rows, across)
    inside = across.inside(at)
    grouped = counted.group_by(series=series_of(table), cell=divided(inside, across.width_ns)).aggregate(
        n=counted.count(), within=(remainder(inside, across.width_ns) / across.width_ns).sum()
    )
    found = grouped.to_pyarrow()
    series, cell, n, within = (array_of(found[name]) for name in ("series", "cell", "n", "within"))

    def spread(values: NDArray[Any]) -> dict[int, NDArray[np.float64]]:
        return {
            int(number): np.bincount(cell[series == number], values[series == number], across.count).astype(np.float64)
            for number in np.unique(series)
        }

    return Events(across, spread(n), spread(within))


def _counted(rows: Iterator[list[NDArray[Any]]], across: Slices) -> Events:
    """The same of rows in memory."""
    number, within = np.zeros((0, across.count)), np.zeros((0, across.count))
    for series, at in rows:
        known = int(series.max()) + 1
        number, within = wider(number, known), wider(within, known)
        inside = np.clip(at - across.low_ns, 0, across.width_ns * across.count - 1)
        cell = inside // across.width_ns
        place = series * np.int64(across.count) + cell
        number += np.bincount(place, minlength=number.size).reshape(number.shape)
        # Whole nanoseconds: up to 2^53 their sum is exact, whatever the order of the rows.
        within += np.bincount(place, inside - cell * across.width_ns, number.size).reshape(number.shape)
    within /= across.width_ns
    present = [each for each in range(len(number)) if number[each].any()]
    return Events(across, {each: number[each] for each in present}, {each: within[each] for each in present})


def mean_levels(begins: Events, ends: Events) -> Levels:
    """The exact mean number of requests between their start and their end, over each slice of time.

    Without sorting: in a slice, a request that starts adds the time to the slice's end, and one that ends subtracts it;
    requests that started before add the whole slice. Requests without an end count to the end of the axis.
    """
    across = begins.across
    levels: dict[int, NDArray[np.float64]] = {}
    nothing = np.zeros(across.count)
    for series in sorted(begins.number):
        number, within = begins.number[series], begins.within[series]
        ended, ended_within = ends.number.get(series, nothing), ends.within.get(series, nothing)
        before = np.concatenate([[0.0], np.cumsum(number - ended)[:-1]])
        levels[series] = before + (number - within) - (ended - ended_within)
    return Levels(across.edges_ns() / 1e9, levels)


def counted_end(begin: ir.IntegerColumn, end: ir.IntegerColumn) -> ir.IntegerColumn:
    """The time from which a request no longer counts: its end, but not before its own start has been counted."""
    after: ir.IntegerColumn = (end <= begin).ifelse(begin + 1, end)
    return after


def peaks(table: ir.Table, begin: str, end: str, across: Slices) -> NDArray[np.float64]:
    """The highest level in each slice of time, of all requests together, from the column `begin` to the column `end`.

    A kernel: sorts starts and ends, one segment of time after the other.
    """
    rows = table.filter(table[begin].notnull())
    rows = rows.select(begin=rows[begin], end=counted_end(rows[begin], rows[end]))
    span = rows.aggregate(low=rows.begin.min(), high=rows.begin.max(), n=rows.count()).to_pyarrow().to_pylist()[0]
    highest = np.zeros(across.count)
    if not span["n"]:
        return highest

    def segments() -> Iterator[_Segment]:
        borders = cuts(rows, "begin", span["low"], span["high"] + 1, span["n"], ROWS_AT_ONCE)
        for number, (first, last) in enumerate(borders):
            low = first if number else None
            high = last if number < len(borders) - 1 else None
            yield _Segment(across, low, high, _times(rows, "begin", low, high), _times(rows, "end", low, high))

    level = 0
    for slices, most, change in in_threads(_Segment.peaks, segments()):
        highest[slices] = np.maximum(highest[slices], level + most)
        level += change
    return highest


@dataclass
class _Segment:
    """The starts and ends from `low` to below `high`; None means unbounded."""

    across: Slices
    low: int | None
    high: int | None
    begins: NDArray[np.int64]
    ends: NDArray[np.int64]

    def peaks(self) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
        """Slice numbers, the highest level of each above that before the segment, and the change of level over it.

        The level of a slice includes that at its start, and that after each request that starts in it.
        """
        begins, level = _levels(self.begins, self.ends)
        ends = self.ends
        edges = self.across.edges_ns()[:-1]
        first = 0 if self.low is None else int(np.searchsorted(edges, self.low))
        end_slice = len(edges) if self.high is None else int(np.searchsorted(edges, self.high))
        inside = edges[first:end_slice]
        at_edges = np.searchsorted(begins, inside) - np.searchsorted(ends, inside, side="right")
        slices = np.clip((begins - self.across.low_ns) // self.across.width_ns, 0, self.across.count - 1)
        new = np.flatnonzero(np.diff(slices, prepend=-1))
        most = np.full(len(edges), np.iinfo(np.int64).min)
        most[first:end_slice] = at_edges
        if len(new):
            most[slices[new]] = np.maximum(most[slices[new]], np.maximum.reduceat(level, new))
        has_level = np.flatnonzero(most > np.iinfo(np.int64).min)
        return has_level, most[has_level], len(begins) - len(ends)


def _levels(begins: NDArray[np.int64], ends: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The starts in order, and the level after each; sorts `ends` too."""
    ends.sort()
    low = min((int(each.min()) for each in (begins, ends) if len(each)), default=0)
    high = max((int(each.max()) for each in (begins, ends) if len(each)), default=0)
    if high - low >= 1 << 62:
        begins.sort()
        return begins, np.arange(1, len(begins) + 1) - np.searchsorted(ends, begins, side="right")
    # Time and event in one integer, as one sort takes less time than a search for each start: bit 0 is a start.
    steps = np.concatenate([(ends - low) << 1, (begins - low) << 1 | 1])
    steps.sort()
    is_start = (steps & 1).astype(np.bool_)
    place = np.flatnonzero(is_start)
    # Before the start at `place` are the earlier starts; all others are ends.
    started = np.arange(1, len(place) + 1)
    return (steps[place] >> 1) + low, 2 * started - 1 - place


def _times(rows: ir.Table, at: str, low: int | None, high: int | None) -> NDArray[np.int64]:
    """The times from `low` to below `high`, in ns, without nulls, unordered."""
    column = rows[at]
    kept = column.notnull()
    kept = kept if low is None else kept & (column >= int(low))
    kept = kept if high is None else kept & (column < int(high))
    found: NDArray[np.int64] = array_of(rows.filter(kept).select(at=column).to_pyarrow()["at"])
    return found.copy() if not found.flags.writeable else found
