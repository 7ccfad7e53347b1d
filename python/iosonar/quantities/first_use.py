"""Latencies of reads of places that this run had written before, and of those that it had not touched at all.

No cache of the run can have what it touches for the first time. So if such reads are fast, and reads of what was
written are slow, the fast ones did not reach the medium: the place was never written.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from iosonar.quantities.batches import NEAR, array_of, batches

if TYPE_CHECKING:
    import ibis.expr.types as ir

BINS_PER_E = 10
BINS = 10 * 44
SLICES = 16
"""Times are compared with themselves: what is new is early in a run, and what was written is late."""

MAX_CHUNKS = 1 << 24
"""The most chunks of the smallest size that the kernel has places for, at 16 bytes each: 1 TiB in chunks of 64 KiB."""

MAX_SECTOR = 1 << 53
"""Lower sectors are exact as float64, by which the expression divides them."""

LATEST = 1 << 62
"""The kernel keeps a time t as LATEST − t: the highest of several is the first time, 0 is none.

So its arrays begin as zeros, and places that no request touches take no memory.
"""


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


def first_uses(table: ir.Table, chunks: Sequence[int], low_ns: int, high_ns: int) -> list[FirstUse]:
    """Of a table with the columns of `narrow`, by chunks of the address space, for each of these numbers of sectors.

    They ascend, and each divides the next.
    """
    rows = table.filter(table.moved & table.issued_ns.notnull())
    reads = rows.filter(rows.is_read & rows.latency_ns.notnull())
    slice_ns = max(high_ns - low_ns, 1) / SLICES
    return _counted(rows, reads, chunks, low_ns, slice_ns) or [
        _grouped(rows, reads, chunk, low_ns, slice_ns) for chunk in chunks
    ]


def _grouped(rows: ir.Table, reads: ir.Table, chunk_sectors: int, low_ns: int, slice_ns: float) -> FirstUse:
    """For one size of chunks."""
    import ibis

    rows = rows.mutate(chunk=(rows.sector / chunk_sectors).floor().cast("int64"))
    reads = reads.mutate(chunk=(reads.sector / chunk_sectors).floor().cast("int64"))
    chunks = rows.group_by("device", "chunk").aggregate(
        first_ns=rows.issued_ns.min(),
        written_ns=(~rows.is_read).ifelse(rows.completed_ns, ibis.null("int64")).min(),
    )
    joined = reads.join(chunks, ["device", "chunk"])
    was_written = (joined.written_ns < joined.issued_ns).fill_null(False)
    is_new = joined.first_ns == joined.issued_ns
    bin_ = (ibis.greatest(joined.latency_ns, 1).cast("float64").ln() * BINS_PER_E).floor().cast("int64")
    kind = was_written.ifelse(1, is_new.ifelse(2, 0)).cast("int64")
    slice_ = ((joined.issued_ns - low_ns).cast("float64") / slice_ns).floor().clip(0, SLICES - 1).cast("int64")
    found = joined.group_by(kind=kind, slice=slice_, bin=bin_).aggregate(n=joined.count()).to_pyarrow()
    kinds, slices, bins, number = (array_of(found[name]) for name in ("kind", "slice", "bin", "n"))
    place = slices * BINS + np.minimum(bins, BINS - 1)
    counted = [
        np.bincount(place[kinds == each], number[kinds == each], SLICES * BINS).astype(float).reshape(SLICES, BINS)
        for each in (1, 2)
    ]
    return FirstUse(*counted)


def _counted(
    rows: ir.Table, reads: ir.Table, chunks: Sequence[int], low_ns: int, slice_ns: float
) -> list[FirstUse] | None:
    """For all sizes, in two passes over the rows in memory; None if they are not there, or have too many chunks.

    The first times of large chunks are those of the small ones in them.
    """
    if (bases := _bases(rows, chunks)) is None:
        return None
    first, written = (np.zeros(bases.size, np.int64) for _ in range(2))
    found = batches(rows.select("device", "sector", "issued_ns", "is_read", done=rows.completed_ns.fill_null(LATEST)))
    if found is None:
        return None
    for device, sector, issued, is_read, done in found:
        place = bases.places(device, sector)
        np.maximum.at(first, place, LATEST - issued)
        writes = np.flatnonzero(~is_read)
        np.maximum.at(written, place[writes], LATEST - done[writes])
    ratios = [chunk // chunks[0] for chunk in chunks]
    times = [[_joined(each, ratio) for each in (written, first)] for ratio in ratios]
    counts = np.zeros((len(chunks), 3, SLICES * BINS))
    for device, sector, issued, latency in batches(reads.select("device", "sector", "issued_ns", "latency_ns")) or ():
        place = bases.places(device, sector)
        slices = np.clip(np.floor((issued - low_ns).astype(np.float64) / slice_ns), 0, SLICES - 1).astype(np.int64)
        at = slices * BINS + np.minimum(_bins(latency), BINS - 1)
        since = LATEST - issued
        for number, (ratio, (first_write, first_touch)) in enumerate(zip(ratios, times, strict=True)):
            chunk = place // ratio if ratio > 1 else place
            # An earlier time is higher.
            was_written = first_write[chunk] > since
            kind = np.where(was_written, 1, 2 * (first_touch[chunk] == since))
            counts[number] += np.bincount(kind * (SLICES * BINS) + at, minlength=counts[0].size).reshape(3, -1)
    return [FirstUse(*each[1:].reshape(2, SLICES, BINS)) for each in counts]


@dataclass(frozen=True)
class _Bases:
    """Where the smallest chunks of each device begin in an array of all, which has `size` places.

    `devices` ascend.
    """

    devices: NDArray[np.int64]
    bases: NDArray[np.int64]
    sectors: int
    size: int

    def places(self, device: NDArray[Any], sector: NDArray[np.int64]) -> NDArray[np.int64]:
        """The place of each request."""
        place: NDArray[np.int64] = sector // self.sectors
        base = self.bases[0] if len(self.devices) == 1 else self.bases[np.searchsorted(self.devices, device)]
        return place + base


def _bases(rows: ir.Table, chunks: Sequence[int]) -> _Bases | None:
    """Places for all chunks; None if there are too many."""
    grouped = rows.group_by("device").aggregate(low=rows.sector.min(), high=rows.sector.max()).order_by("device")
    found = grouped.to_pyarrow()
    devices, low, high = (array_of(found[name]) for name in ("device", "low", "high"))
    if not len(devices) or low.min() < 0 or high.max() >= MAX_SECTOR:
        return None
    # Whole chunks of the largest size, so that those of all sizes begin at multiples.
    first, last = low // chunks[-1], high // chunks[-1] + 1
    ratio, ends = chunks[-1] // chunks[0], np.cumsum(last - first)
    if ends[-1] * ratio > MAX_CHUNKS:
        return None
    return _Bases(devices.astype(np.int64), (ends - last) * ratio, chunks[0], int(ends[-1]) * ratio)


def _joined(times: NDArray[np.int64], ratio: int) -> NDArray[np.int64]:
    """The highest of each `ratio` times."""
    found: NDArray[np.int64] = times if ratio == 1 else times.reshape(-1, ratio).max(axis=1)
    return found


def _bins(latency: NDArray[np.int64]) -> NDArray[np.int64]:
    """The bin of each latency, exactly as the engine computes it: see `steps_of_log10`."""
    value = np.maximum(latency, 1).astype(np.float64)
    place = np.log(value) * BINS_PER_E
    unsure = np.flatnonzero(np.abs(place - np.rint(place)) < NEAR)
    if len(unsure):
        place[unsure] = [math.log(each) * BINS_PER_E for each in value[unsure].tolist()]
    bins: NDArray[np.int64] = np.floor(place).astype(np.int64)
    return bins
