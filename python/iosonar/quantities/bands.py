"""Quantiles of a value for each cell along an axis: latency over time, by size, by position, by depth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from iosonar.quantities.batches import MAX_PLACES, array_of, batches, steps_of_log10
from iosonar.quantities.density import Cells
from iosonar.thresholds import MIN_BEYOND

if TYPE_CHECKING:
    import ibis.expr.types as ir

BINS_PER_DECADE = 200
"""Quantiles are nearest-rank quantiles of bins of 1.2 %."""

MAX_BINS = 19 * BINS_PER_DECADE
"""More than there are bins of 64-bit integers."""


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
    counted = table.filter(x.notnull() & value.notnull())
    rows = batches(counted.select(x=x.cast("float64"), value=value.cast("float64")))
    is_here = rows is not None and cells.count * MAX_BINS <= MAX_PLACES
    cell, n, total, most = _counted(rows, cells) if rows and is_here else _grouped(counted, x, value, cells)
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


def _grouped(
    counted: ir.Table, x: ir.NumericColumn, value: ir.NumericColumn, cells: Cells
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
    """For each cell and bin, in their order: the cell, the number of values, their sum, and the largest."""
    import ibis

    bin_ = (ibis.greatest(value, 1).cast("float64").log10() * BINS_PER_DECADE).floor().cast("int32")
    found = (
        counted.group_by(cell=cells.of(x), bin=bin_)
        .aggregate(n=counted.count(), total=value.cast("float64").sum(), most=value.max().cast("float64"))
        .order_by("cell", "bin")
        .to_pyarrow()
    )
    cell, n, total, most = (array_of(found[name]) for name in ("cell", "n", "total", "most"))
    return cell, n, total, most


def _counted(
    rows: Iterator[list[NDArray[Any]]], cells: Cells
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
    """The same of rows in memory."""
    n = np.zeros(cells.count * MAX_BINS, np.int64)
    total, most = np.zeros(len(n)), np.full(len(n), -np.inf)
    for x, value in rows:
        bin_ = steps_of_log10(np.maximum(value, 1.0), 0.0, BINS_PER_DECADE).astype(np.int64)
        place = cells.places(x) * MAX_BINS + bin_
        np.add.at(n, place, 1)
        np.add.at(total, place, value)
        np.maximum.at(most, place, value)
    known = np.flatnonzero(n)
    return known // MAX_BINS, n[known], total[known], most[known]
