"""Reuse distances, and the miss ratio of caches of any size.

The reuse distance of an access to a page is the number of distinct pages accessed since the last access to the same
page. An LRU cache of C pages hits if the distance is below C. Distances are measured on a sample of pages, selected by
a hash of their number, and scaled up: SHARDS (Waldspurger et al., "Efficient MRC construction with SHARDS", FAST 2015).
The sample is split by hash into several samples, whose variation gives the standard error.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from iosonar.quantities.address import PAGE_BITS, parts, transfers
from iosonar.quantities.batches import array_of
from iosonar.quantities.threads import in_threads

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pyarrow as pa

HASH_BITS = 40
MIXERS = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
ROWS_AT_ONCE = 4_000_000
"""Requests in memory at once; more are processed by the part of the address space in which they begin."""

BATCH = 250_000
"""Requests processed together."""

PAGES_AT_ONCE = 4_000_000
"""Pages of those requests processed together."""

MAX_ACCESSES = 1 << 28
MAX_ACCESSES_PER_REQUEST = 64
"""Hashing takes time for each access: if there are more than MAX_ACCESSES, and more than MAX_ACCESSES_PER_REQUEST on
average, pages are larger than 4 KiB."""

COARSER_BITS = 3
EXTENT_FACTOR = 0x9E3779B97F4A7C15
"""Distinguishes pages of different devices in the hash: odd, so multiplication modulo 2^64 is invertible."""

EXTENT = 3
"""The place of the extent among the columns after the end sector."""

SAMPLES = 4
SAMPLED_ACCESSES = 240_000
"""The approximate number of accesses in all samples together."""


@dataclass(frozen=True)
class Reuse:
    """The reuse distance in pages of each sampled access, scaled to all pages; infinite for the first access to a page.

    `sample` is the sample of an access, `rate` the share of all pages in one sample. A page has 4 KiB, or more if there
    would be too many.
    """

    distance: NDArray[np.float64]
    sample: NDArray[np.int64]
    rate: float
    accesses: int
    page_bytes: int = 4096
    more: tuple[NDArray[Any], ...] = ()
    """Other columns of the requests that made these accesses."""

    def miss_ratio(self, pages: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The miss ratios of caches of these sizes, and their standard errors.

        A cache has whole pages: of 10.5 pages it holds 10.
        """
        pages = np.floor(pages)
        parts = []
        for number in range(SAMPLES):
            mine = np.sort(self.distance[self.sample == number])
            if len(mine):
                parts.append(1 - np.searchsorted(mine, pages, side="left") / len(mine))
        curves = np.array(parts)
        whole = np.sort(self.distance)
        mean: NDArray[np.float64] = 1 - np.searchsorted(whole, pages, side="left") / max(len(whole), 1)
        # A sample of all pages has no error.
        has_error = len(curves) > 1 and self.rate * SAMPLES < 1
        error = curves.std(axis=0, ddof=1) / math.sqrt(len(curves)) if has_error else np.zeros(len(pages))
        return mean, error


@dataclass(frozen=True)
class Accesses:
    """Accesses to sampled pages, in the order of scheduled time: those with a hash below `limit`.

    `rows` of them have the page, the extent, and other columns of the request; `all` is the number of accesses to all
    pages, which have 2^`bits` sectors.
    """

    rows: tuple[NDArray[Any], ...]
    limit: int
    all: int
    bits: int


def accesses(table: ir.Table, more: Sequence[str] = ()) -> Accesses | None:
    """About SAMPLED_ACCESSES accesses, with these columns, which have no nulls. None if nothing moves data.

    A kernel: selects the pages request by request, in a stream.
    """
    moved = transfers(table)
    bits = PAGE_BITS
    rows, many = _accesses(moved, bits)
    while many > max(MAX_ACCESSES, MAX_ACCESSES_PER_REQUEST * rows) and bits + COARSER_BITS < 63:
        bits += COARSER_BITS
        _, many = _accesses(moved, bits)
    if not many:
        return None
    limit = math.ceil(_rate(many) * 2**HASH_BITS)
    names = ("sector", "end_sector", "scheduled_ns", "place", "source", "extent", *more)
    batches = (
        batch
        for part in parts(moved, ROWS_AT_ONCE)
        for batch in part.beginning(moved).select(*names).to_pyarrow().to_batches(BATCH)
    )
    found = list(in_threads(lambda batch: _sampled(batch, limit, bits), batches))
    page, at, place, source, extent, *others = (np.concatenate(columns) for columns in zip(*found, strict=True))
    order = np.lexsort((page, place, source, at))
    return Accesses(tuple(each[order] for each in (page, extent, *others)), limit, many, bits)


def _rate(many: int, sampled: int | None = None) -> float:
    """The share of pages in all samples, for so many accesses to all pages."""
    return min(1.0, (sampled or SAMPLED_ACCESSES) / many)


def reuse_of(found: Accesses, sampled: int | None = None) -> Reuse:
    """The reuse distances of about `sampled` accesses: of all of them, or of fewer."""
    page, extent, *others = found.rows
    rate = _rate(found.all, sampled)
    limit = math.ceil(rate * 2**HASH_BITS)
    if limit < found.limit:
        chosen = _hash(page, extent) < limit
        page, extent, *others = (each[chosen] for each in found.rows)
    sample = _hash(page, extent) % SAMPLES if rate < 1 else np.zeros(len(page), np.int64)
    page = _numbered(page, extent)
    share = rate / SAMPLES if rate < 1 else 1.0
    distance = np.empty(len(page))
    for number in range(SAMPLES):
        mine = sample == number
        distance[mine] = stack_distances(page[mine]) / share
    return Reuse(distance, sample, share, found.all, 512 << found.bits, tuple(others))


def reuse(table: ir.Table) -> Reuse | None:
    """Measures reuse distances of pages, in order of scheduled time. None if nothing moves data."""
    found = accesses(table)
    return None if found is None else reuse_of(found)


def _accesses(moved: ir.Table, bits: int) -> tuple[int, int]:
    """The number of requests, and of accesses to pages of 2^bits sectors."""
    many = ((moved.end_sector - 1) >> bits) - (moved.sector >> bits) + 1
    # As float64, which holds any sum.
    found = moved.aggregate(rows=moved.count(), n=many.cast("float64").sum()).to_pyarrow().to_pylist()[0]
    return int(found["rows"]), int(found["n"] or 0)


def _sampled(batch: pa.RecordBatch, limit: int, bits: int) -> tuple[NDArray[Any], ...]:
    """A row for each sampled page that the requests touch: the page, and the columns of the request after its end."""
    sector, end_sector, *others = (array_of(column) for column in batch.columns)
    extent = others[EXTENT]
    first = sector >> bits
    upto = np.cumsum(((end_sector - 1) >> bits) - first + 1)
    rows, pages = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for low in range(0, int(upto[-1]) if len(upto) else 0, PAGES_AT_ONCE):
        high = min(low + PAGES_AT_ONCE, int(upto[-1]))
        # The requests of these pages, and the number of pages of each.
        touching = slice(int(np.searchsorted(upto, low, side="right")), int(np.searchsorted(upto, high)) + 1)
        ends = np.minimum(upto[touching], high)
        many = np.diff(ends, prepend=low)
        begins = np.concatenate([[0], upto])[touching]
        page = np.arange(low, high) + np.repeat(first[touching] - begins, many)
        taken = np.flatnonzero(_hash(page, np.repeat(extent[touching], many)) < limit)
        pages.append(page[taken])
        rows.append(touching.start + np.searchsorted(ends, low + taken, side="right"))
    row, page = np.concatenate(rows), np.concatenate(pages)
    return page, *(each[row] for each in others)


def _numbered(page: NDArray[np.int64], extent: NDArray[np.int64]) -> NDArray[np.int64]:
    """Numbers the pages of all devices."""
    if not len(page) or (extent == extent[0]).all():
        return page
    order = np.lexsort((page, extent))
    new = (np.diff(page[order], prepend=-1) != 0) | (np.diff(extent[order], prepend=-1) != 0)
    numbered = np.empty(len(page), np.int64)
    numbered[order] = np.cumsum(new)
    return numbered


def stack_distances(pages: NDArray[np.int64]) -> NDArray[np.float64]:
    """The number of distinct pages between each access and the last one to its page; infinite for a first access."""
    n = len(pages)
    if not n:
        return np.empty(0)
    order = np.argsort(pages, kind="stable")
    previous = np.full(n, -1)
    same = pages[order][1:] == pages[order][:-1]
    previous[order[1:][same]] = order[:-1][same]
    # Between i and its previous access p, a page counts at its first access there: the one whose own previous access is
    # at p or before. Every access up to p also has its previous access at p or before; subtract those p + 1.
    distance: NDArray[np.float64] = _lower_before(previous).astype(np.float64) - (previous + 1)
    distance[previous < 0] = np.inf
    return distance


def _lower_before(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each value, how many earlier values are not larger: a merge sort that counts, a whole level at a time."""
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
    """A pseudo-random hash of HASH_BITS bits for each page: the finalizer of splitmix64."""
    mixed = page.astype(np.uint64)
    if len(extent) and extent.any():
        mixed += extent.astype(np.uint64) * np.uint64(EXTENT_FACTOR)
    for factor, shift in zip(MIXERS, (30, 27), strict=True):
        mixed ^= mixed >> np.uint64(shift)
        mixed *= np.uint64(factor)
    hashed: NDArray[np.int64] = (mixed >> np.uint64(64 - HASH_BITS)).astype(np.int64)
    return hashed
