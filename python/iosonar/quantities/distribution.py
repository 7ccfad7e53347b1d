"""How a quantity is distributed: exact count, mean and extremes, quantiles to a tenth of a percent, for each series.

Values are counted in the bins of a high dynamic range histogram of three digits: whole nanoseconds up to 2048, above
that 1024 bins to each power of two. So a hundred million rows become a few thousand, nothing has to be sorted, and the
counts of two runs can be added. A quantile is the upper end of the bin of its nearest rank, but never more than the
largest value. The Rust half (crates/replay/src/statistics.rs) has the same bins and the same rule, so that page and
terminal show the same number.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from iosonar.quantities.series import Series, series_of

if TYPE_CHECKING:
    import ibis.expr.types as ir

HALF = 1024
"""Bins to a power of two."""


@dataclass(frozen=True)
class Distribution:
    """The values of one series, in the unit of the column that was counted, by ascending bins.

    `bins` holds their numbers (see `bin_of`); `counts` how many are in each; `least` and `most` the extremes in each;
    `total` the sum of all.
    """

    bins: NDArray[np.int64]
    counts: NDArray[np.int64]
    least: NDArray[np.float64]
    most: NDArray[np.float64]
    total: float

    @property
    def count(self) -> int:
        """How many values there are."""
        return int(self.counts.sum())

    @property
    def mean(self) -> float:
        """Their mean; not a number if there are none."""
        return self.total / self.count if self.count else math.nan

    @property
    def minimum(self) -> float:
        """The smallest; not a number if there are none."""
        return float(self.least[0]) if len(self.least) else math.nan

    @property
    def maximum(self) -> float:
        """The largest; not a number if there are none."""
        return float(self.most[-1]) if len(self.most) else math.nan

    def quantile(self, share: float) -> float:
        """The smallest value that at least that share (0 … 1) of the values do not exceed."""
        if not self.count or share <= 0:
            return self.minimum
        rank = min(max(math.ceil(share * self.count), 1), self.count)
        upto = np.cumsum(self.counts)
        index = int(np.searchsorted(upto, rank))
        return min(_highest(int(self.bins[index])), self.maximum)


def bin_of(value: ir.NumericColumn) -> ir.IntegerColumn:
    """The number of a value's bin; higher values are in higher bins. Those below 0 are counted with 0."""
    import ibis

    value = ibis.greatest(value, 0).cast("float64")
    power = ibis.greatest(ibis.greatest(value, 1.0).log2().floor() - math.log2(HALF), 0.0)
    return (power * HALF + (value / ibis.literal(2.0) ** power).floor()).cast("int64")


def _highest(bin_: int) -> float:
    """The largest whole number in a bin."""
    power = max(bin_ // HALF - 1, 0)
    return float((bin_ - power * HALF + 1) * 2**power - 1)


def distributions(table: ir.Table, value: ir.NumericColumn) -> dict[Series, Distribution]:
    """Counts `value`, a column of `table`, for each series that has any; rows where it is null are left out."""
    counted = table.filter(value.notnull())
    grouped = counted.group_by(series=series_of(table), bin=bin_of(value)).aggregate(
        n=counted.count(),
        total=value.cast("float64").sum(),
        least=value.cast("float64").min(),
        most=value.cast("float64").max(),
    )
    columns = grouped.order_by("series", "bin").to_pyarrow()
    series = columns["series"].to_numpy()
    return {Series(number): _part(columns, series == number) for number in np.unique(series)}


def pooled(parts: list[Distribution]) -> Distribution:
    """All of the values together."""
    if not parts:
        empty = np.empty(0)
        return Distribution(empty.astype(np.int64), empty.astype(np.int64), empty, empty, 0.0)
    bins, place = np.unique(np.concatenate([part.bins for part in parts]), return_inverse=True)
    counts = np.zeros(len(bins), np.int64)
    np.add.at(counts, place, np.concatenate([part.counts for part in parts]))
    least, most = np.full(len(bins), np.inf), np.full(len(bins), -np.inf)
    np.minimum.at(least, place, np.concatenate([part.least for part in parts]))
    np.maximum.at(most, place, np.concatenate([part.most for part in parts]))
    return Distribution(bins, counts, least, most, sum(part.total for part in parts))


def _part(columns: object, rows: NDArray[np.bool_]) -> Distribution:
    import pyarrow as pa

    assert isinstance(columns, pa.Table)
    bins, counts, total, least, most = (
        columns[name].to_numpy()[rows] for name in ("bin", "n", "total", "least", "most")
    )
    return Distribution(bins, counts.astype(np.int64), least, most, float(total.sum()))
