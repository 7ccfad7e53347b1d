"""A cloud of points as counts in the cells of a grid: one GROUP BY, or a kernel, even for a hundred million points."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from iosonar.quantities.batches import array_of, batches, steps_of_log10, wider
from iosonar.quantities.series import series_of
from iosonar.quantities.threads import in_threads

if TYPE_CHECKING:
    import ibis.expr.types as ir

MAX_DENSE = 1_000_000
"""The most cells of a grid that are counted in an array of all; those of more are sorted."""

MAX_SORTED = 12_000_000
"""So many points are sorted; if there are more, an array of all cells takes less memory, and no more time."""

MAX_CELLS = 1 << 27
"""The most cells of such an array, in half a GiB."""

_Counts = tuple[NDArray[Any], NDArray[np.int64]]
"""Cells in ascending order, and the number of points in each."""


@dataclass(frozen=True)
class Cells:
    """A linear or logarithmic axis from `low` to `high`, in its own unit, divided into `count` equal cells."""

    low: float
    high: float
    count: int
    logarithmic: bool = False

    def of(self, value: ir.NumericColumn) -> ir.IntegerColumn:
        """The cell of each value; values outside count in the nearest cell, so that none is lost."""
        import ibis

        low, high = self.low, self.high
        place = value.cast("float64")
        if self.logarithmic:
            # Zero and negative values have no logarithm: they count in the lowest cell.
            place, low, high = ibis.greatest(place, self.low).log10(), math.log10(low), math.log10(high)
        cell = ((place - low) * (self.count / (high - low))).floor()
        # Clip before the cast: values far outside exceed 32 bits.
        return cell.clip(0, self.count - 1).cast("int32")

    def places(self, value: NDArray[np.float64]) -> NDArray[np.int64]:
        """The same of values in memory."""
        if self.logarithmic:
            low, high = math.log10(self.low), math.log10(self.high)
            cell = steps_of_log10(np.maximum(value, self.low), low, self.count / (high - low))
        else:
            cell = np.floor((value - self.low) * (self.count / (self.high - self.low)))
        return np.clip(cell, 0, self.count - 1).astype(np.int64)

    def edges(self) -> NDArray[np.float64]:
        """The `count` + 1 borders of the cells."""
        if self.logarithmic:
            return np.logspace(math.log10(self.low), math.log10(self.high), self.count + 1)
        return np.linspace(self.low, self.high, self.count + 1)


@dataclass(frozen=True)
class Density:
    """The cells of a series that are not empty: column, row and number of requests."""

    columns: NDArray[np.int32]
    rows: NDArray[np.int32]
    counts: NDArray[np.int64]


def density(table: ir.Table, x: ir.NumericColumn, y: ir.NumericColumn, across: Cells, up: Cells) -> dict[int, Density]:
    """Counts the requests in each cell, for each series; skips requests where x or y is null."""
    counted = table.filter(x.notnull() & y.notnull())
    points = batches(counted.select(series=series_of(table), x=x.cast("float64"), y=y.cast("float64")))
    if points is not None:
        cells = in_threads(lambda rows: (rows[0], across.places(rows[1]) * up.count + up.places(rows[2])), points)
        size = across.count * up.count
        return _split(*(_dense(cells, size) if size <= MAX_DENSE else _sorted(cells, size)), across, up)
    grouped = counted.group_by(series=series_of(table), column=across.of(x), row=up.of(y)).aggregate(n=counted.count())
    cells = grouped.to_pyarrow()
    series, column, row, counts = (array_of(cells[name]) for name in ("series", "column", "row", "n"))
    return {
        int(number): Density(column[series == number], row[series == number], counts[series == number])
        for number in np.unique(series)
    }


def _dense(
    cells: Iterator[tuple[NDArray[Any], NDArray[np.int64]]], size: int, counts: NDArray[np.uint32] | None = None
) -> _Counts:
    """The number of points in each cell, added to `counts`; the cells of series n begin at n × `size`."""
    counts, one = np.zeros((0, size), np.uint32) if counts is None else counts, np.uint32(1)
    for series, cell in cells:
        counts = wider(counts, int(series.max()) + 1)
        np.add.at(counts.reshape(-1), series * np.int64(size) + cell, one)
    found = np.flatnonzero(counts)
    return found, counts.reshape(-1)[found].astype(np.int64)


def _sorted(cells: Iterator[tuple[NDArray[Any], NDArray[np.int64]]], size: int) -> _Counts:
    """The same for few points: those of a grid with more cells than them are sorted."""
    waiting: list[NDArray[Any]] = []
    points, known = 0, 0
    for series, cell in cells:
        known = max(known, int(series.max()) + 1)
        waiting.append((series * np.int64(size) + cell).astype(np.uint32 if known * size <= 1 << 32 else np.int64))
        points += len(cell)
        if points >= MAX_SORTED and known * size <= MAX_CELLS:
            found, many = _run_lengths(waiting)
            counts = np.zeros((known, size), np.uint32)
            counts.reshape(-1)[found] = many
            return _dense(cells, size, counts)
    return _run_lengths(waiting)


def _run_lengths(waiting: list[NDArray[Any]]) -> _Counts:
    """Each cell of the points, which are taken out of the list, and how often it is in it."""
    every = np.concatenate([np.zeros(0, np.uint32), *waiting])
    waiting.clear()
    every.sort()
    first = _firsts(every)
    counts = np.empty(len(first), np.int64)
    np.subtract(first[1:], first[:-1], out=counts[:-1])
    counts[-1:] = len(every) - first[-1:]
    return every[first], counts


def _firsts(every: NDArray[Any]) -> NDArray[np.int64]:
    """The place of the first of each of several equal numbers, of numbers in order."""
    is_first = np.ones(len(every), np.bool_)
    np.not_equal(every[1:], every[:-1], out=is_first[1:])
    return np.flatnonzero(is_first)


def _split(cells: NDArray[np.int64], counts: NDArray[np.int64], across: Cells, up: Cells) -> dict[int, Density]:
    """Ascending cells by series."""
    size = across.count * up.count
    series = int(cells[-1]) // size + 1 if len(cells) else 0
    ends = [
        0,
        *(int(np.searchsorted(cells, cells.dtype.type(number * size))) for number in range(1, series)),
        len(cells),
    ]
    found = {}
    for number, (first, end) in enumerate(pairwise(ends)):
        if first < end:
            cell = cells[first:end] - cells.dtype.type(number * size)
            column = cell // up.count
            row = cell - column * cells.dtype.type(up.count)
            found[number] = Density(column.astype(np.int32), row.astype(np.int32), counts[first:end])
    return found
