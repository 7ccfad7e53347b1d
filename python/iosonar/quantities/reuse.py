"""Reuse distances, and what a cache of any size would have held.

The reuse distance of an access to a page is the number of different pages that were accessed since the last access to
the same page. A cache of C pages that replaces the least recently used holds it if the distance is below C. Distances
are measured on a sample of the pages, by a hash of their number, and scaled up: SHARDS (Waldspurger et al., "Efficient
MRC construction with SHARDS", FAST 2015). The sample is split into several by the hash; how far apart their answers are
is the error that is given.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from iosonar.quantities.address import ranges, transfers
from iosonar.quantities.positions import SECTORS_PER_PAGE
from iosonar.quantities.threads import in_threads

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pyarrow as pa

HASH_BITS = 40
MIXERS = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
ROWS_AT_ONCE = 4_000_000
"""Requests that are held in memory at once; of more, those that begin in one range of addresses after the other."""

BATCH = 250_000
"""Requests whose pages are looked at together."""

SAMPLES = 4
ACCESSES = 240_000
"""How many accesses are looked at, in all samples together, about."""


@dataclass(frozen=True)
class Reuse:
    """Distances in pages, scaled to all pages, of each sampled access; infinite for the first access to a page.

    `sample` is which sample an access belongs to, `rate` the share of all pages that one sample has.
    """

    distance: NDArray[np.float64]
    sample: NDArray[np.int64]
    rate: float
    accesses: int

    def miss_ratio(self, pages: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The share of accesses that caches of these sizes would have missed, and the standard error of that."""
        parts = []
        for number in range(SAMPLES):
            mine = np.sort(self.distance[self.sample == number])
            if len(mine):
                parts.append(1 - np.searchsorted(mine, pages, side="left") / len(mine))
        curves = np.array(parts)
        whole = np.sort(self.distance)
        mean: NDArray[np.float64] = 1 - np.searchsorted(whole, pages, side="left") / max(len(whole), 1)
        # A sample of everything has no error.
        known = len(curves) > 1 and self.rate * SAMPLES < 1
        error = curves.std(axis=0, ddof=1) / math.sqrt(len(curves)) if known else np.zeros(len(pages))
        return mean, error


def reuse(table: ir.Table) -> Reuse | None:
    """Measures reuse distances of pages of 4 KiB, in the order of intended time. None if nothing moves data.

    A kernel: which pages are in the sample is found request by request as they stream by.
    """
    moved = transfers(table)
    first = (moved.address / SECTORS_PER_PAGE).floor().cast("int64")
    last = ((moved.address + moved.sectors - 1) / SECTORS_PER_PAGE).floor().cast("int64")
    accesses = moved.aggregate(n=(last - first + 1).sum()).to_pyarrow()["n"][0].as_py()
    if not accesses:
        return None
    rate = min(1.0, ACCESSES / accesses)
    limit = math.ceil(rate * 2**HASH_BITS)
    rows = moved.select(
        at=moved.intended_ns, place=moved.place, source=moved.source, address=moved.address, first=first, last=last
    )
    batches = (
        batch
        for low, high in ranges(moved, ROWS_AT_ONCE)
        for batch in rows.filter((rows.address >= low) & (rows.address < high)).to_pyarrow().to_batches(BATCH)
    )
    parts = list(in_threads(lambda batch: _sampled(batch, limit), batches))
    at, place, source, page = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    order = np.lexsort((page, place, source, at))
    page = page[order]
    sample = _hash(page) % SAMPLES if rate < 1 else np.zeros(len(page), np.int64)
    share = rate / SAMPLES if rate < 1 else 1.0
    distance = np.empty(len(page))
    for number in range(SAMPLES):
        mine = sample == number
        distance[mine] = stack_distances(page[mine]) / share
    return Reuse(distance, sample, share, int(accesses))


def _sampled(batch: pa.RecordBatch, limit: int) -> tuple[NDArray[np.int64], ...]:
    """Of some requests, a row for each page of the sample that they touch: time, place, source and page."""
    at, place, source, first, last = (
        batch.column(name).to_numpy(zero_copy_only=False) for name in ("at", "place", "source", "first", "last")
    )
    many = last - first + 1
    behind = np.cumsum(many)
    page = np.arange(int(behind[-1]) if len(behind) else 0) + np.repeat(first - (behind - many), many)
    taken = np.flatnonzero(_hash(page) < limit)
    row = np.searchsorted(behind, taken, side="right")
    return at[row], place[row], source[row], page[taken]


def stack_distances(pages: NDArray[np.int64]) -> NDArray[np.float64]:
    """The number of different pages between each access and the last one to the same page; infinite for a first."""
    n = len(pages)
    if not n:
        return np.empty(0)
    order = np.argsort(pages, kind="stable")
    previous = np.full(n, -1)
    same = pages[order][1:] == pages[order][:-1]
    previous[order[1:][same]] = order[:-1][same]
    # Between i and its previous access p, a page counts at its first access there: where its own previous access is
    # at p or before. Every access up to p has an earlier previous one as well, so those p + 1 are taken away.
    distance: NDArray[np.float64] = _lower_before(previous).astype(np.float64) - (previous + 1)
    distance[previous < 0] = np.inf
    return distance


def _lower_before(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each value, how many before it are not larger: merge sort's comparisons, a whole level at a time."""
    n = len(values)
    found = np.zeros(n, np.int64)
    index = np.arange(n)
    spread = values - values.min()
    stride = int(spread.max()) + 1
    half = 1
    while half < n:
        block = index // half
        pair = block // 2
        key = pair * stride + spread
        left, right = np.flatnonzero(block % 2 == 0), np.flatnonzero(block % 2 == 1)
        ordered = np.sort(key[left])
        lower = np.searchsorted(ordered, key[right], side="right")
        found[right] += lower - np.searchsorted(ordered, pair[right] * stride, side="left")
        half *= 2
    return found


def _hash(page: NDArray[np.int64]) -> NDArray[np.int64]:
    """A number of HASH_BITS bits for each page, as good as random: the finalizer of splitmix64."""
    mixed = page.astype(np.uint64)
    for factor, shift in zip(MIXERS, (30, 27), strict=True):
        mixed ^= mixed >> np.uint64(shift)
        mixed *= np.uint64(factor)
    hashed: NDArray[np.int64] = (mixed >> np.uint64(64 - HASH_BITS)).astype(np.int64)
    return hashed
