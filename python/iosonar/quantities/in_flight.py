"""How many requests are in flight, or waiting: up at one of their times, down at another.

A request is in flight from its issue to its completion, and in the delay queue from its scheduled time to its issue. An
end in the same nanosecond as a beginning counts after it, so that every request is counted at its own beginning.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from iosonar.quantities.series import Series, series_of
from iosonar.quantities.threads import in_threads
from iosonar.quantities.whole import cuts, divided, remainder

if TYPE_CHECKING:
    import ibis.expr.types as ir

ROWS_AT_ONCE = 2_500_000
"""Times that are sorted at once; of more, one stretch of time after the other."""


@dataclass(frozen=True)
class Slices:
    """`count` slices of time, each of `width_ns` whole nanoseconds, from `low_ns` on."""

    low_ns: int
    width_ns: int
    count: int

    @classmethod
    def of(cls, low_ns: int, high_ns: int, many: int, together: int = 1) -> Slices:
        """At most so many for a stretch of time, a multiple of `together`; fewer where they'd be below a nanosecond."""
        length = max(high_ns - low_ns, 1)
        width = -(-length // (max(many // together, 1) * together))
        return cls(low_ns, width, -(-length // (width * together)) * together)

    def inside(self, at: ir.IntegerColumn) -> ir.IntegerColumn:
        """A time after the beginning; what lies outside counts in the slice at that end."""
        return (at - self.low_ns).clip(0, self.width_ns * self.count - 1)

    def edges_ns(self) -> NDArray[np.int64]:
        """The borders of the slices."""
        return self.low_ns + np.arange(self.count + 1) * self.width_ns


@dataclass(frozen=True)
class Events:
    """When one of the times of requests lies in which slice: how many, and the sum of how far within it (0 … 1)."""

    across: Slices
    number: dict[Series, NDArray[np.float64]]
    within: dict[Series, NDArray[np.float64]]


@dataclass(frozen=True)
class Levels:
    """The mean level in each of consecutive slices of time, for each series."""

    edges_s: NDArray[np.float64]
    mean: dict[Series, NDArray[np.float64]]

    def joined(self, many: int) -> Levels:
        """The mean levels of so many slices together; their number is a multiple of it."""
        return Levels(
            self.edges_s[::many], {series: mean.reshape(-1, many).mean(axis=1) for series, mean in self.mean.items()}
        )


def events(table: ir.Table, at: ir.IntegerColumn, across: Slices) -> Events:
    """Counts the times `at` (a column in ns) in each slice, for each series; null ones don't count."""
    counted = table.filter(at.notnull())
    inside = across.inside(at)
    grouped = counted.group_by(series=series_of(table), cell=divided(inside, across.width_ns)).aggregate(
        n=counted.count(), within=(remainder(inside, across.width_ns) / across.width_ns).sum()
    )
    found = grouped.to_pyarrow()
    series, cell, n, within = (found[name].to_numpy() for name in ("series", "cell", "n", "within"))

    def spread(values: NDArray[Any]) -> dict[Series, NDArray[np.float64]]:
        return {
            Series(number): np.bincount(cell[series == number], values[series == number], across.count).astype(
                np.float64
            )
            for number in np.unique(series)
        }

    return Events(across, spread(n), spread(within))


def mean_levels(begins: Events, ends: Events) -> Levels:
    """The exact mean of how many requests are between their beginning and their end, over each slice of time.

    No sorting: in a slice, a request that begins adds the time from there to the slice's end, one that ends takes away
    the same; those that began before add the whole slice. Requests without an end count to the end of the axis.
    """
    across = begins.across
    levels: dict[Series, NDArray[np.float64]] = {}
    nothing = np.zeros(across.count)
    for series in sorted(begins.number):
        number, within = begins.number[series], begins.within[series]
        ended, ended_within = ends.number.get(series, nothing), ends.within.get(series, nothing)
        before = np.concatenate([[0.0], np.cumsum(number - ended)[:-1]])
        levels[series] = before + (number - within) - (ended - ended_within)
    return Levels(across.edges_ns() / 1e9, levels)


def peaks(table: ir.Table, begin: str, end: str, across: Slices) -> NDArray[np.float64]:
    """The highest level in each slice of time, of all requests together, from the column `begin` to the column `end`.

    A kernel: beginnings and ends are sorted, one stretch of time after the other.
    """
    rows = table.filter(table[begin].notnull())
    span = rows.aggregate(low=rows[begin].min(), high=rows[begin].max(), n=rows.count()).to_pyarrow().to_pylist()[0]
    highest = np.zeros(across.count)
    if not span["n"]:
        return highest

    def stretches() -> Iterator[_Stretch]:
        borders = cuts(rows, begin, span["low"], span["high"] + 1, span["n"], ROWS_AT_ONCE)
        for number, (first, last) in enumerate(borders):
            low = first if number else None
            high = last if number < len(borders) - 1 else None
            yield _Stretch(across, low, high, _times(rows, begin, low, high), _times(rows, end, low, high))

    level = 0
    for slices, most, rise in in_threads(_Stretch.peaks, stretches()):
        highest[slices] = np.maximum(highest[slices], level + most)
        level += rise
    return highest


@dataclass
class _Stretch:
    """What begins and ends from `low` to before `high`; None is the beginning or the end of all time."""

    across: Slices
    low: int | None
    high: int | None
    begins: NDArray[np.int64]
    ends: NDArray[np.int64]

    def peaks(self) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
        """Slices, how far above the level before the stretch each comes at most, and the rise of that level behind it.

        A slice has the level that is there when it begins, and that after each request which begins in it.
        """
        begins, ends = self.begins, self.ends
        begins.sort()
        ends.sort()
        level = np.arange(1, len(begins) + 1) - np.searchsorted(ends, begins)
        edges = self.across.edges_ns()[:-1]
        first = 0 if self.low is None else int(np.searchsorted(edges, self.low))
        behind = len(edges) if self.high is None else int(np.searchsorted(edges, self.high))
        at_edges = np.searchsorted(begins, edges[first:behind]) - np.searchsorted(ends, edges[first:behind])
        slices = np.clip((begins - self.across.low_ns) // self.across.width_ns, 0, self.across.count - 1)
        new = np.flatnonzero(np.diff(slices, prepend=-1))
        most = np.full(len(edges), np.iinfo(np.int64).min)
        most[first:behind] = at_edges
        if len(new):
            most[slices[new]] = np.maximum(most[slices[new]], np.maximum.reduceat(level, new))
        known = np.flatnonzero(most > np.iinfo(np.int64).min)
        return known, most[known], len(begins) - len(ends)


def _times(rows: ir.Table, at: str, low: int | None, high: int | None) -> NDArray[np.int64]:
    """The times that are not null from `low` to below `high`, in ns, in no order."""
    column = rows[at]
    kept = column.notnull()
    kept = kept if low is None else kept & (column >= int(low))
    kept = kept if high is None else kept & (column < int(high))
    found: NDArray[np.int64] = rows.filter(kept).select(at=column).to_pyarrow()["at"].to_numpy()
    return found.copy() if not found.flags.writeable else found
