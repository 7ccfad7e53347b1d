"""Latency histograms by blocks of time, from which the comparison of runs resamples.

Successive latencies are not independent, but blocks of time nearly are. A block keeps only the counts by bin (a
thousandth of a decade), so a quantile of any selection of blocks is computed from a sum of counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from iosonar.quantities.batches import array_of

if TYPE_CHECKING:
    import ibis.expr.types as ir

BINS_PER_DECADE = 1000

BLOCKS = 60
"""Blocks in a run. With more, a block would be shorter than a device's memory effects; with fewer, there is little to
resample."""


@dataclass(frozen=True)
class Blocks:
    """`counts[block, bin]`, where bin 0 is `first` thousandths of a decade above 1 ns, and sums `total_ns[block]`."""

    first: int
    counts: NDArray[np.float64]
    total_ns: NDArray[np.float64]


def blocks(table: ir.Table, low_ns: int, high_ns: int, column: str = "latency_ns") -> Blocks:
    """Counts the latencies of requests by the block of [low_ns, high_ns] in which they were scheduled.

    Also the values of another column, for which 1 is small.
    """
    import ibis

    width = max((high_ns - low_ns) / BLOCKS, 1.0)
    counted = table.filter(table[column].notnull())
    block = ((counted.scheduled_ns - low_ns) / width).floor().cast("int32").clip(0, BLOCKS - 1)
    value = counted[column]
    bin_ = (ibis.greatest(value, 1).cast("float64").log10() * BINS_PER_DECADE).floor().cast("int32")
    found = (
        counted.group_by(block=block, bin=bin_)
        .aggregate(n=counted.count(), total=value.cast("float64").sum())
        .to_pyarrow()
    )
    return of_cells(*(array_of(found[name]) for name in ("block", "bin", "n", "total")))


def rates(table: ir.Table, origin_ns: int | None = None) -> NDArray[np.float64]:
    """Completed requests per second in each block of a run; their mean is the run's rate (`quantities.work`).

    From `origin_ns`, else the earliest scheduled time, to the last completion. Empty if nothing completed.
    """
    low, high = table.scheduled_ns.min(), table.completed_ns.max()
    span = table.aggregate(low=low, high=high).to_pyarrow().to_pylist()[0]
    if span["high"] is None:
        return np.zeros(0)
    completed = table.filter(table.completed_ns.notnull())
    low_ns = span["low"] if origin_ns is None else origin_ns
    width = max((span["high"] - low_ns) / BLOCKS, 1.0)
    block = ((completed.completed_ns - low_ns) / width).floor().cast("int32").clip(0, BLOCKS - 1)
    found = completed.group_by(block=block).aggregate(n=completed.count()).to_pyarrow()
    counts = np.bincount(array_of(found["block"]), array_of(found["n"]), minlength=BLOCKS)
    result: NDArray[np.float64] = counts / (width / 1e9)
    return result


def of_values(block: NDArray[np.int64], latency_ns: NDArray[np.float64]) -> Blocks:
    """Blocks of values in memory."""
    bins = np.floor(np.log10(np.maximum(latency_ns, 1)) * BINS_PER_DECADE).astype(np.int64)
    return of_cells(block, bins, np.ones(len(bins)), latency_ns)


def of_cells(
    block: NDArray[np.int64], bin_: NDArray[np.int64], n: NDArray[np.float64], total: NDArray[np.float64]
) -> Blocks:
    """Blocks from the cells that are not empty."""
    first, last = (int(bin_.min()), int(bin_.max())) if len(bin_) else (0, 0)
    counts = np.zeros((BLOCKS, last - first + 1))
    np.add.at(counts, (block, bin_ - first), n)
    return Blocks(first, counts, np.bincount(block, total, minlength=BLOCKS).astype(np.float64))


def aligned(runs: list[Blocks]) -> list[NDArray[np.float64]]:
    """The counts of several runs over common bins."""
    first = min(run.first for run in runs)
    last = max(run.first + run.counts.shape[1] for run in runs)
    return [np.pad(run.counts, ((0, 0), (run.first - first, last - run.first - run.counts.shape[1]))) for run in runs]


def quantiles(counts: NDArray[np.float64], shares: list[float]) -> NDArray[np.float64]:
    """For each row of counts by bin, and each share: the decimal logarithm of the quantile, relative to bin 0."""
    cumulative = counts.cumsum(axis=1)
    target = np.maximum(cumulative[:, -1:] * np.array(shares), 0.5)
    places = np.array([np.searchsorted(row, rank) for row, rank in zip(cumulative, target, strict=True)])
    places = np.minimum(places, counts.shape[1] - 1)
    rows = np.arange(len(counts))[:, None]
    inside = np.maximum(counts[rows, places], 1e-9)
    within = (target - (cumulative[rows, places] - inside)) / inside
    found: NDArray[np.float64] = (places + np.clip(within, 0, 1)) / BINS_PER_DECADE
    return found
