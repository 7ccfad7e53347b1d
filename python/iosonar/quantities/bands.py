"""Quantiles of a value for each cell of something else: latency over time, by size, by place, by depth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from iosonar.quantities.density import Cells

if TYPE_CHECKING:
    import ibis.expr.types as ir

BINS_PER_DECADE = 200
"""Quantiles are those of bins of 1.2 %, by the nearest rank."""

LEAST_BEYOND = 10
"""Values that a quantile leaves above itself at least: the 99th percentile takes 1000 values."""


@dataclass(frozen=True)
class Bands:
    """For each cell: how many values, their mean, and the quantiles by their share (0 … 1).

    Units are those of the value. A quantile is not a number where fewer than LEAST_BEYOND values of a cell are above
    it: chance alone would decide where it is.
    """

    edges: NDArray[np.float64]
    counts: NDArray[np.int64]
    mean: NDArray[np.float64]
    quantiles: dict[float, NDArray[np.float64]]


def bands(
    table: ir.Table, x: ir.NumericColumn, value: ir.NumericColumn, cells: Cells, shares: Sequence[float]
) -> Bands:
    """Quantiles of `value` (in ns, or anything else where 1 is small) for each cell of `x`."""
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
    # The rows are in the order of cell and bin: a rank within a cell is a rank within all, after those of lower cells.
    upto = np.cumsum(n)
    before = np.concatenate([[0], np.cumsum(counts)[:-1]])
    quantiles = {}
    for share in shares:
        rank = np.maximum(np.ceil(share * counts - 1e-9), 1)
        place = np.searchsorted(upto, before + rank)
        enough = counts * (1 - share) >= LEAST_BEYOND - 1e-6
        picked = most[np.minimum(place, len(most) - 1)] if len(most) else np.zeros(cells.count)
        quantiles[share] = np.where(enough, picked, np.nan)
    return Bands(cells.edges(), counts, mean, quantiles)
