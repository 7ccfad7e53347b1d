"""A cloud of points as counts in the cells of a grid, computed by one GROUP BY even for a hundred million points."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

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
    grouped = counted.group_by(series=series_of(table), column=across.of(x), row=up.of(y)).aggregate(n=counted.count())
    cells = grouped.to_pyarrow()
    series, column, row, counts = (cells[name].to_numpy() for name in ("series", "column", "row", "n"))
    return {
        int(number): Density(column[series == number], row[series == number], counts[series == number])
        for number in np.unique(series)
    }
