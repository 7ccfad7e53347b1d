"""How many requests are in flight, or waiting: up at one of their times, down at another.

A request is in flight from its issue to its completion, and in the delay queue from its intended time to its issue. An
end in the same nanosecond as a beginning counts after it, so that every request is counted at its own beginning.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from iosonar.quantities.density import Cells
from iosonar.quantities.series import Series, series_of
from iosonar.quantities.threads import in_threads

if TYPE_CHECKING:
    import ibis.expr.types as ir

ROWS_AT_ONCE = 2_500_000
"""Times that are sorted at once; of more, one stretch of cells after the other."""


@dataclass(frozen=True)
class Events:
    """When one of the times of requests lies in which cell of time: how many, and the sum of their times in seconds."""

    across: Cells
    number: dict[Series, NDArray[np.float64]]
    time_s: dict[Series, NDArray[np.float64]]


@dataclass(frozen=True)
class Levels:
    """The mean level in each of consecutive cells of time, for each series."""

    edges_s: NDArray[np.float64]
    mean: dict[Series, NDArray[np.float64]]

    def joined(self, many: int) -> Levels:
        """The mean levels of so many cells together; their number is a multiple of it."""
        return Levels(
            self.edges_s[::many], {series: mean.reshape(-1, many).mean(axis=1) for series, mean in self.mean.items()}
        )


def events(table: ir.Table, at: ir.IntegerColumn, across: Cells) -> Events:
    """Counts the times `at` (a column in ns) in each cell of time, for each series; null ones don't count."""
    counted = table.filter(at.notnull())
    at_s = at / 1e9
    grouped = counted.group_by(series=series_of(table), cell=across.of(at_s)).aggregate(
        n=counted.count(), time=at_s.sum()
    )
    found = grouped.to_pyarrow()
    series, cell, n, time = (found[name].to_numpy() for name in ("series", "cell", "n", "time"))

    def spread(values: NDArray[Any]) -> dict[Series, NDArray[np.float64]]:
        return {
            Series(number): np.bincount(cell[series == number], values[series == number], across.count).astype(
                np.float64
            )
            for number in np.unique(series)
        }

    return Events(across, spread(n), spread(time))


def mean_levels(begins: Events, ends: Events) -> Levels:
    """The exact mean of how many requests are between their beginning and their end, over each cell of time.

    No sorting: in a cell, a request that begins adds the time from there to the cell's end, one that ends takes away
    the same; those that began before add the whole cell. Requests without an end count to the end of the axis.
    """
    across = begins.across
    edges = across.edges()
    width = (across.high - across.low) / across.count
    levels: dict[Series, NDArray[np.float64]] = {}
    nothing = np.zeros(across.count)
    for series in sorted(begins.number):
        number, time = begins.number[series], begins.time_s[series]
        ended, time_ended = ends.number.get(series, nothing), ends.time_s.get(series, nothing)
        before = np.concatenate([[0.0], np.cumsum(number - ended)[:-1]])
        levels[series] = before + (number * edges[1:] - time - (ended * edges[1:] - time_ended)) / width
    return Levels(edges, levels)


def peaks(table: ir.Table, begin: str, end: str, begins: Events) -> NDArray[np.float64]:
    """The highest level in each cell of time, of all requests together, from the column `begin` to the column `end`.

    A kernel: beginnings and ends are sorted together. `begins` are the events of `begin`.
    """
    across = begins.across
    edges = np.floor(across.edges() * 1e9).astype(np.int64)
    rows = table.filter(table[begin].notnull())
    highest = np.zeros(across.count)

    def stretches() -> Iterator[_Stretch]:
        for first, last in _stretches(np.sum(list(begins.number.values()), axis=0)):
            low = edges[first] if first else None
            high = edges[last] if last < across.count else None
            inner = edges[first + 1 : last]
            yield _Stretch(first, last, _times(rows, begin, low, high), _times(rows, end, low, high), inner)

    level = 0
    for stretch, most, rise in in_threads(_Stretch.peaks, stretches()):
        highest[stretch.first : stretch.last] = level + most
        level += rise
    return highest


@dataclass
class _Stretch:
    """Some cells of time in a row, from `first` to before `last`: what begins and ends in them, and their borders."""

    first: int
    last: int
    begins: NDArray[np.int64]
    ends: NDArray[np.int64]
    inner: NDArray[np.int64]

    def peaks(self) -> tuple[_Stretch, NDArray[np.int32], int]:
        """How far above the level before it each cell comes at most, and by how much the level has risen behind it.

        The times themselves are gone then. In place, where that can be: fresh memory costs more than adding.
        """
        steps = np.empty(len(self.begins) + len(self.ends), np.int64)
        np.multiply(self.begins, 2, out=steps[: len(self.begins)])
        np.multiply(self.ends, 2, out=steps[len(self.begins) :])
        # An end is one more than a beginning at the same time, and so comes after it.
        steps[len(self.begins) :] += 1
        self.begins = self.ends = np.empty(0, np.int64)
        steps.sort()
        # A cell has the level that is there when it begins, and those after each of its steps.
        at = np.concatenate([[0], np.searchsorted(steps, 2 * self.inner), [len(steps)]])
        levels = np.zeros(len(steps) + 1, np.int32)
        np.bitwise_and(steps, 1, out=levels[1:], casting="unsafe")
        levels[1:] *= -2
        levels[1:] += 1
        np.cumsum(levels, out=levels)
        return self, np.maximum(np.maximum.reduceat(levels, at[:-1]), levels[at[1:]]), int(levels[-1])


def _times(rows: ir.Table, at: str, low: int | None, high: int | None) -> NDArray[np.int64]:
    """The times that are not null from `low` to below `high`, in ns, in no order."""
    column = rows[at]
    kept = column.notnull()
    kept = kept if low is None else kept & (column >= int(low))
    kept = kept if high is None else kept & (column < int(high))
    found: NDArray[np.int64] = rows.filter(kept).select(at=column).to_pyarrow()["at"].to_numpy()
    return found


def _stretches(number: NDArray[np.float64]) -> list[tuple[int, int]]:
    """Stretches of cells, each with about ROWS_AT_ONCE events."""
    upto = np.cumsum(number)
    parts = math.ceil(max(upto[-1], 1) / ROWS_AT_ONCE)
    cuts = np.searchsorted(upto, upto[-1] * np.arange(1, parts) / parts) + 1
    return list(pairwise(sorted({0, *cuts.tolist(), len(number)})))
