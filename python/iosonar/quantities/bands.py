"""Quantiles of a value for each cell along an axis: latency over time, by size, by position, by depth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from iosonar.quantities.density import Cells
from iosonar.thresholds import MIN_BEYOND

if TYPE_CHECKING:
    import ibis.expr.types as ir

BINS_PER_DECADE = 200
"""Quantiles are nearest-rank quantiles of bins of 1.2 %."""


@dataclass(frozen=True)
class Bands:
    """For each cell: the number of values, their mean, and quantiles by share (0 … 1).

    Units are those of the value. A quantile with fewer than MIN_BEYOND values above it is NaN: it would be determined
    by chance.
    """

    edges: NDArray[np.float64]
    counts: NDArray[np.int64]
    mean: NDArray[np.float64]
    quantiles: dict[float, NDArray[np.float64]]


def bands(
    table: ir.Table, x: ir.NumericColumn, value: ir.NumericColumn, cells: Cells, shares: Sequence[float]
) -> Bands:
    """Quantiles of `value` (in ns, or another unit in which 1 is small) for each cell of `x`."""
    import ibis

    counted = table.filter(x.notnull() & value.notnull())
    bin_ = (ibis.greatest(value, 1).cast("float64").log10() * BINS_PER_DECADE).floor().cast("int32")
    found = (
        counted.group_by(cell=cells.of(x), bin=bin_)
        .aggregate(n=counted.count(), total=value.cast("float64").sum(), most=value.max().cast("float64"))
        .order_by("cell", "bin")
        .to_pyarrow()
    )
    cell, n, total, most = (found[name].to_numpy() for name in ("cell", "n", "total", "most"))
    counts = np.bincount(cell, n, cells.count).astype(np.int64)
    with np.errstate(invalid="ignore"):
        mean = np.bincount(cell, total, cells.count) / counts
    # Rows are sorted by cell and bin: the rank within a cell, plus the counts of lower cells, is a rank within all
    # rows.
    cumulative = np.cumsum(n)
    preceding = np.concatenate([[0], np.cumsum(counts)[:-1]])
    quantiles = {}
    for share in shares:
        rank = np.maximum(np.ceil(share * counts - 1e-9), 1)
        place = np.searchsorted(cumulative, preceding + rank)
        enough = counts * (1 - share) >= MIN_BEYOND - 1e-6
        selected = most[np.minimum(place, len(most) - 1)] if len(most) else np.zeros(cells.count)
        quantiles[share] = np.where(enough, selected, np.nan)
    return Bands(cells.edges(), counts, mean, quantiles)
