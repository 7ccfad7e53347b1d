"""A cloud of points as counts in the cells of a grid: one GROUP BY, or a kernel, even for a hundred million points."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from iosonar.quantities.batches import MAX_PLACES, array_of, batches, steps_of_log10, wider
from iosonar.quantities.series import series_of

if TYPE_CHECKING:
    import ibis.expr.types as ir


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
    points = counted.select(series=series_of(table), x=x.cast("float64"), y=y.cast("float64"))
    if (found := batches(points)) is not None and across.count * up.count <= MAX_PLACES:
        return _counted(found, across, up)
    grouped = counted.group_by(series=series_of(table), column=across.of(x), row=up.of(y)).aggregate(n=counted.count())
    cells = grouped.to_pyarrow()
    series, column, row, counts = (array_of(cells[name]) for name in ("series", "column", "row", "n"))
    return {
        int(number): Density(column[series == number], row[series == number], counts[series == number])
        for number in np.unique(series)
    }


def _counted(points: Iterator[list[NDArray[Any]]], across: Cells, up: Cells) -> dict[int, Density]:
    """The same of points in memory."""
    counts = np.zeros((0, across.count * up.count), np.int64)
    for series, x, y in points:
        counts = wider(counts, int(series.max()) + 1)
        cell = series * np.int64(counts.shape[1]) + across.places(x) * up.count + up.places(y)
        np.add.at(counts.reshape(-1), cell, 1)
    found = {}
    for number, of_series in enumerate(counts):
        place = np.flatnonzero(of_series)
        if len(place):
            column, row = np.divmod(place.astype(np.int32), np.int32(up.count))
            found[number] = Density(column, row, of_series[place])
    return found
