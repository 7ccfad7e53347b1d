"""The distribution of a quantity by series: exact count, mean and extremes, and quantiles to a tenth of a percent.

Values are counted in the bins of a high dynamic range histogram of three digits: whole nanoseconds up to 2048, above
that 1024 bins for each power of two. A hundred million rows become a few thousand, nothing is sorted, and the counts of
two runs can be added. A quantile is the upper end of the bin of its nearest rank, but at most the largest value. The
Rust half (crates/replay/src/result/statistics.rs) uses the same bins and rule, so that page and terminal show the same
numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from iosonar.quantities.batches import Batches, array_of, batches, wider
from iosonar.quantities.series import series_of
from iosonar.thresholds import MIN_BEYOND

if TYPE_CHECKING:
    import ibis.expr.types as ir

HALF = 1024
"""Bins for each power of two."""

DIGITS_BELOW = 42
"""Binary digits of the fraction of a float64 without those that distinguish HALF bins."""

FIRST_OF_FLOAT = (1023 + 10 - 1) * HALF
"""What the float64 HALF is there, less its bin."""

MAX_BINS = 56 * HALF
"""More than there are bins of 64-bit integers."""

MAX_KERNEL_SERIES = 64
"""The most series that the kernel counts; it has place for all bins of each."""


@dataclass(frozen=True)
class Distribution:
    """The values of one series, in the unit of the counted column, by ascending bins.

    `bins` has their numbers (see `bin_of`), `counts` the number of values in each, `minima` and `maxima` the extremes
    in each, `total` the sum of all values.
    """

    bins: NDArray[np.int64]
    counts: NDArray[np.int64]
    minima: NDArray[np.float64]
    maxima: NDArray[np.float64]
    total: float

    @property
    def count(self) -> int:
        """The number of values."""
        return int(self.counts.sum())

    @property
    def mean(self) -> float:
        """The mean; NaN without values."""
        return self.total / self.count if self.count else math.nan

    @property
    def minimum(self) -> float:
        """The smallest value; NaN without values."""
        return float(self.minima[0]) if len(self.minima) else math.nan

    @property
    def maximum(self) -> float:
        """The largest value; NaN without values."""
        return float(self.maxima[-1]) if len(self.maxima) else math.nan

    def quantile(self, share: float) -> float:
        """The smallest value that is not exceeded by at least that share (0 … 1) of the values."""
        if not self.count or share <= 0:
            return self.minimum
        rank = min(max(math.ceil(share * self.count), 1), self.count)
        cumulative = np.cumsum(self.counts)
        index = int(np.searchsorted(cumulative, rank))
        return min(_highest(int(self.bins[index])), self.maximum)

    def above(self, value: float) -> int:
        """How many values are above one, as far as the bins tell."""
        return sum(int(n) for place, n in zip(self.bins, self.counts, strict=True) if _highest(int(place)) > value)

    def percentile(self, share: float) -> float:
        """The same for a report: NaN if fewer than MIN_BEYOND values are above it."""
        return self.quantile(share) if enough_for(share, self.count) else math.nan


def enough_for(share: float, count: int) -> bool:
    """Whether so many values have MIN_BEYOND above that quantile; the maximum needs none."""
    return share >= 1 or count * (1 - share) >= MIN_BEYOND - 1e-6


def bin_of(value: ir.NumericColumn) -> ir.IntegerColumn:
    """The number of a value's bin, which increases with the value. Values below 0 count as 0."""
    import ibis

    value = ibis.greatest(value, 0).cast("float64")
    power = ibis.greatest(ibis.greatest(value, 1.0).log2().floor() - math.log2(HALF), 0.0)
    return (power * HALF + (value / ibis.literal(2.0) ** power).floor()).cast("int64")


def _bins_of(value: NDArray[np.float64]) -> NDArray[np.int64]:
    """The same of values in memory: exponent and first ten digits of a float64 are the number of its bin."""
    value = np.maximum(value, 0.0)
    found: NDArray[np.int64] = (value.view(np.int64) >> DIGITS_BELOW) - FIRST_OF_FLOAT
    return np.where(value < HALF, value, found).astype(np.int64)


def _highest(bin_: int) -> float:
    """The largest integer in a bin."""
    power = max(bin_ // HALF - 1, 0)
    return float((bin_ - power * HALF + 1) * 2**power - 1)


def distributions(table: ir.Table, value: ir.NumericColumn) -> dict[int, Distribution]:
    """Counts `value`, a column of `table`, for each series that has values; skips nulls."""
    counted = table.filter(value.notnull())
    found = batches(counted.select(series=series_of(table), value=value.cast("float64")))
    if found is not None and (each := _counted(found)) is not None:
        return each
    grouped = counted.group_by(series=series_of(table), bin=bin_of(value)).aggregate(
        n=counted.count(),
        total=value.cast("float64").sum(),
        minima=value.cast("float64").min(),
        maxima=value.cast("float64").max(),
    )
    columns = grouped.order_by("series", "bin").to_pyarrow()
    series = array_of(columns["series"])
    return {int(number): _part(columns, series == number) for number in np.unique(series)}


def _counted(rows: Batches) -> dict[int, Distribution] | None:
    """The same of rows in memory; None if there are too many series."""
    counts, totals = np.zeros((0, MAX_BINS), np.int64), np.zeros(0)
    minima, maxima = np.zeros((0, MAX_BINS)), np.zeros((0, MAX_BINS))
    for series, value in rows:
        known = int(series.max()) + 1
        if known > MAX_KERNEL_SERIES:
            rows.close()
            return None
        counts, totals = wider(counts, known), wider(totals, known)
        minima, maxima = wider(minima, known, np.inf), wider(maxima, known, -np.inf)
        place = series * np.int64(MAX_BINS) + _bins_of(value)
        np.add.at(counts.reshape(-1), place, 1)
        np.minimum.at(minima.reshape(-1), place, value)
        np.maximum.at(maxima.reshape(-1), place, value)
        np.add.at(totals, series, value)
    found = {}
    for number, of_series in enumerate(counts):
        bins = np.flatnonzero(of_series)
        if len(bins):
            found[number] = Distribution(
                bins, of_series[bins], minima[number, bins], maxima[number, bins], float(totals[number])
            )
    return found


def pooled(parts: list[Distribution]) -> Distribution:
    """Merges distributions."""
    if not parts:
        empty = np.empty(0)
        return Distribution(empty.astype(np.int64), empty.astype(np.int64), empty, empty, 0.0)
    bins, place = np.unique(np.concatenate([part.bins for part in parts]), return_inverse=True)
    counts = np.zeros(len(bins), np.int64)
    np.add.at(counts, place, np.concatenate([part.counts for part in parts]))
    minima, maxima = np.full(len(bins), np.inf), np.full(len(bins), -np.inf)
    np.minimum.at(minima, place, np.concatenate([part.minima for part in parts]))
    np.maximum.at(maxima, place, np.concatenate([part.maxima for part in parts]))
    return Distribution(bins, counts, minima, maxima, sum(part.total for part in parts))


def _part(columns: object, rows: NDArray[np.bool_]) -> Distribution:
    import pyarrow as pa

    assert isinstance(columns, pa.Table)
    bins, counts, total, minima, maxima = (
        array_of(columns[name])[rows] for name in ("bin", "n", "total", "minima", "maxima")
    )
    return Distribution(bins, counts.astype(np.int64), minima, maxima, float(total.sum()))
