"""How many requests are in flight, or waiting: up at one of their times, down at another.

A request is in flight from its issue to its completion, and in the delay queue from its intended time to its issue. An
end in the same nanosecond as a beginning counts after it, so that every request is counted at its own beginning.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from iosonar.quantities.density import Cells
from iosonar.quantities.series import Series, series_of

if TYPE_CHECKING:
    import ibis.expr.types as ir


@dataclass(frozen=True)
class Levels:
    """The mean level in each of consecutive cells of time, for each series."""

    edges_s: NDArray[np.float64]
    mean: dict[Series, NDArray[np.float64]]


def mean_levels(table: ir.Table, begin: ir.IntegerColumn, end: ir.IntegerColumn, across: Cells) -> Levels:
    """The exact mean of how many requests are between `begin` and `end` (columns in ns), over each cell of time.

    No sorting: in a cell, a request that begins adds the time from there to the cell's end, one that ends takes away
    the same; those that began before add the whole cell. Requests without an end count to the end of the axis.
    """
    edges = across.edges()
    width = (across.high - across.low) / across.count
    levels: dict[Series, NDArray[np.float64]] = {}
    begins, ends = _cells(table, begin, across), _cells(table.filter(begin.notnull()), end, across)
    for series in sorted(begins):
        number, time = begins[series]
        ended, time_ended = ends.get(series, (np.zeros(across.count), np.zeros(across.count)))
        before = np.concatenate([[0.0], np.cumsum(number - ended)[:-1]])
        levels[series] = before + (number * edges[1:] - time - (ended * edges[1:] - time_ended)) / width
    return Levels(edges, levels)


def _cells(
    table: ir.Table, at: ir.IntegerColumn, across: Cells
) -> dict[Series, tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """For each series and cell: how many events, and the sum of their times in seconds."""
    counted = table.filter(at.notnull())
    at_s = at / 1e9
    grouped = counted.group_by(series=series_of(table), cell=across.of(at_s)).aggregate(
        n=counted.count(), time=at_s.sum()
    )
    found = grouped.to_pyarrow()
    series, cell, n, time = (found[name].to_numpy() for name in ("series", "cell", "n", "time"))
    result = {}
    for number in np.unique(series):
        numbers, times = np.zeros(across.count), np.zeros(across.count)
        numbers[cell[series == number]] = n[series == number]
        times[cell[series == number]] = time[series == number]
        result[Series(number)] = (numbers, times)
    return result


def peaks(table: ir.Table, begin: ir.IntegerColumn, end: ir.IntegerColumn, across: Cells) -> NDArray[np.float64]:
    """The highest level in each cell of time, of all requests together."""
    begins = _sorted(table, begin)
    ends = _sorted(table.filter(begin.notnull()), end)
    level = levels_at_begins(begins, ends)
    edges_ns = across.edges() * 1e9
    first = np.searchsorted(begins, edges_ns)
    # What is there when a cell begins is its level until something happens.
    highest = (first - np.searchsorted(ends, edges_ns))[:-1].astype(np.float64)
    busy = first[:-1] < first[1:]
    if busy.any():
        highest[busy] = np.maximum(highest[busy], np.maximum.reduceat(level, first[:-1][busy]))
    return highest


def levels_at_begins(begins: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """The level that each request sees at its own beginning, itself included; both arrays are sorted, in ns."""
    return np.arange(1, len(begins) + 1) - np.searchsorted(ends, begins, side="left")


def _sorted(table: ir.Table, at: ir.IntegerColumn) -> NDArray[np.int64]:
    values: NDArray[np.int64] = table.filter(at.notnull()).select(at=at).to_pyarrow()["at"].to_numpy().copy()
    values.sort()
    return values
