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

from iosonar.quantities.address import PAGE_BITS, parts, transfers
from iosonar.quantities.threads import in_threads

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pyarrow as pa

HASH_BITS = 40
MIXERS = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
ROWS_AT_ONCE = 4_000_000
"""Requests that are held in memory at once; of more, those that begin in one part of the addresses after the other."""

BATCH = 250_000
"""Requests that are looked at together."""

PAGES_AT_ONCE = 4_000_000
"""Of those, pages that are looked at together."""

MOST_ACCESSES = 1 << 28
MOST_OF_A_REQUEST = 64
"""Each access is looked at for a moment. If requests are so long that there are more than MOST_ACCESSES, and more than
MOST_OF_A_REQUEST on average, pages are taken larger than 4 KiB."""

COARSER_BITS = 3
EXTENT_FACTOR = 0x9E3779B97F4A7C15
"""Makes the pages of one device others than those of the next: odd, and so without loss modulo 2^64."""

SAMPLES = 4
ACCESSES = 240_000
"""How many accesses are looked at, in all samples together, about."""


@dataclass(frozen=True)
class Reuse:
    """Distances in pages, scaled to all pages, of each sampled access; infinite for the first access to a page.

    `sample` is which sample an access belongs to, `rate` the share of all pages that one sample has. A page has 4 KiB,
    more only where there would be too many.
    """

    distance: NDArray[np.float64]
    sample: NDArray[np.int64]
    rate: float
    accesses: int
    page_bytes: int = 4096

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
    """Measures reuse distances of pages, in the order of scheduled time. None if nothing moves data.

    A kernel: which pages are in the sample is found request by request as they stream by.
    """
    moved = transfers(table)
    bits = PAGE_BITS
    rows, accesses = _accesses(moved, bits)
    while accesses > max(MOST_ACCESSES, MOST_OF_A_REQUEST * rows) and bits + COARSER_BITS < 63:
        bits += COARSER_BITS
        _, accesses = _accesses(moved, bits)
    if not accesses:
        return None
    rate = min(1.0, ACCESSES / accesses)
    limit = math.ceil(rate * 2**HASH_BITS)
    names = ("scheduled_ns", "place", "source", "extent", "sector", "behind")
    batches = (
        batch
        for part in parts(moved, ROWS_AT_ONCE)
        for batch in part.beginning(moved).select(*names).to_pyarrow().to_batches(BATCH)
    )
    found = list(in_threads(lambda batch: _sampled(batch, limit, bits), batches))
    at, place, source, extent, page = (np.concatenate(columns) for columns in zip(*found, strict=True))
    order = np.lexsort((page, place, source, at))
    extent, page = extent[order], page[order]
    sample = _hash(page, extent) % SAMPLES if rate < 1 else np.zeros(len(page), np.int64)
    page = _numbered(page, extent)
    share = rate / SAMPLES if rate < 1 else 1.0
    distance = np.empty(len(page))
    for number in range(SAMPLES):
        mine = sample == number
        distance[mine] = stack_distances(page[mine]) / share
    return Reuse(distance, sample, share, int(accesses), 512 << bits)


def _accesses(moved: ir.Table, bits: int) -> tuple[int, int]:
    """How many requests there are, and accesses to pages of 2^bits sectors."""
    many = ((moved.behind - 1) >> bits) - (moved.sector >> bits) + 1
    # As float64, which has room for any sum.
    found = moved.aggregate(rows=moved.count(), n=many.cast("float64").sum()).to_pyarrow().to_pylist()[0]
    return int(found["rows"]), int(found["n"] or 0)


def _sampled(batch: pa.RecordBatch, limit: int, bits: int) -> tuple[NDArray[np.int64], ...]:
    """Of some requests, a row for each page of the sample that they touch: time, place, source, extent and page."""
    at, place, source, extent, sector, behind = (column.to_numpy(zero_copy_only=False) for column in batch.columns)
    first = sector >> bits
    upto = np.cumsum(((behind - 1) >> bits) - first + 1)
    rows, pages = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for low in range(0, int(upto[-1]) if len(upto) else 0, PAGES_AT_ONCE):
        high = min(low + PAGES_AT_ONCE, int(upto[-1]))
        # The requests whose pages these are, and how many of the pages are theirs.
        touching = slice(int(np.searchsorted(upto, low, side="right")), int(np.searchsorted(upto, high)) + 1)
        ends = np.minimum(upto[touching], high)
        many = np.diff(ends, prepend=low)
        begins = np.concatenate([[0], upto])[touching]
        page = np.arange(low, high) + np.repeat(first[touching] - begins, many)
        taken = np.flatnonzero(_hash(page, np.repeat(extent[touching], many)) < limit)
        pages.append(page[taken])
        rows.append(touching.start + np.searchsorted(ends, low + taken, side="right"))
    row, page = np.concatenate(rows), np.concatenate(pages)
    return at[row], place[row], source[row], extent[row], page


def _numbered(page: NDArray[np.int64], extent: NDArray[np.int64]) -> NDArray[np.int64]:
    """A number for each page of each device, the same for the same."""
    if not len(page) or (extent == extent[0]).all():
        return page
    order = np.lexsort((page, extent))
    new = (np.diff(page[order], prepend=-1) != 0) | (np.diff(extent[order], prepend=-1) != 0)
    numbered = np.empty(len(page), np.int64)
    numbered[order] = np.cumsum(new)
    return numbered


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


def _hash(page: NDArray[np.int64], extent: NDArray[np.int64]) -> NDArray[np.int64]:
    """A number of HASH_BITS bits for each page, as good as random: the finalizer of splitmix64."""
    mixed = page.astype(np.uint64)
    if len(extent) and extent.any():
        mixed += extent.astype(np.uint64) * np.uint64(EXTENT_FACTOR)
    for factor, shift in zip(MIXERS, (30, 27), strict=True):
        mixed ^= mixed >> np.uint64(shift)
        mixed *= np.uint64(factor)
    hashed: NDArray[np.int64] = (mixed >> np.uint64(64 - HASH_BITS)).astype(np.int64)
    return hashed
