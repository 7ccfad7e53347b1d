"""Latencies of reads of places that this run had written before, and of those that it had not touched at all.

No cache of the run can have what it touches for the first time. So if such reads are fast, and reads of what was
written are slow, the fast ones did not reach the medium: the place was never written.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from iosonar.quantities.batches import array_of

if TYPE_CHECKING:
    import ibis.expr.types as ir

BINS_PER_E = 10
BINS = 10 * 44
SLICES = 16
"""Times are compared with themselves: what is new is early in a run, and what was written is late."""


@dataclass(frozen=True)
class FirstUse:
    """For slices of the run, the number of reads in each bin of the logarithm of latency.

    Of places that were written before, and of new ones.
    """

    written: NDArray[np.float64]
    new: NDArray[np.float64]

    def shares_below(self, latency_ns: float) -> tuple[float, float]:
        """Which share of either is faster at the same time, of written places first."""
        at = round(np.log(max(latency_ns, 1.0)) * BINS_PER_E)
        many = [each.sum(axis=1) for each in (self.written, self.new)]
        weight = many[0] * many[1] / np.maximum(many[0] + many[1], 1)
        written, new = (
            float(weight @ (each[:, :at].sum(axis=1) / np.maximum(number, 1))) / max(float(weight.sum()), 1e-9)
            for each, number in zip((self.written, self.new), many, strict=True)
        )
        return written, new


def first_use(table: ir.Table, chunk_sectors: int, low_ns: int, high_ns: int) -> FirstUse:
    """Of a table with the columns of `narrow`, by chunks of the address space."""
    import ibis

    rows = table.filter(table.moved & table.issued_ns.notnull())
    rows = rows.mutate(chunk=(rows.sector / chunk_sectors).floor().cast("int64"))
    chunks = rows.group_by("device", "chunk").aggregate(
        first_ns=rows.issued_ns.min(),
        written_ns=(~rows.is_read).ifelse(rows.completed_ns, ibis.null("int64")).min(),
    )
    reads = rows.filter(rows.is_read & rows.latency_ns.notnull())
    joined = reads.join(chunks, ["device", "chunk"])
    was_written = (joined.written_ns < joined.issued_ns).fill_null(False)
    is_new = joined.first_ns == joined.issued_ns
    bin_ = (ibis.greatest(joined.latency_ns, 1).cast("float64").ln() * BINS_PER_E).floor().cast("int64")
    kind = was_written.ifelse(1, is_new.ifelse(2, 0)).cast("int64")
    width = max(high_ns - low_ns, 1) / SLICES
    slice_ = ((joined.issued_ns - low_ns).cast("float64") / width).floor().clip(0, SLICES - 1).cast("int64")
    found = joined.group_by(kind=kind, slice=slice_, bin=bin_).aggregate(n=joined.count()).to_pyarrow()
    kinds, slices, bins, number = (array_of(found[name]) for name in ("kind", "slice", "bin", "n"))
    place = slices * BINS + np.minimum(bins, BINS - 1)
    counted = [
        np.bincount(place[kinds == each], number[kinds == each], SLICES * BINS).astype(float).reshape(SLICES, BINS)
        for each in (1, 2)
    ]
    return FirstUse(*counted)
