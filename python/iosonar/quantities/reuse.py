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

from iosonar.quantities.address import transfers
from iosonar.quantities.positions import SECTORS_PER_PAGE

if TYPE_CHECKING:
    import ibis.expr.types as ir

PRIME = 2**31 - 1
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
    """Measures reuse distances of pages of 4 KiB, in the order of intended time. None if nothing moves data."""
    import ibis

    moved = transfers(table)
    first = (moved.address / SECTORS_PER_PAGE).floor().cast("int64")
    last = ((moved.address + moved.sectors - 1) / SECTORS_PER_PAGE).floor().cast("int64")
    accesses = moved.aggregate(n=(last - first + 1).sum()).to_pyarrow()["n"][0].as_py()
    if not accesses:
        return None
    rate = min(1.0, ACCESSES / accesses)
    touched = moved.select(at=moved.intended_ns, place=moved.place, page=ibis.range(first, last + 1).unnest())
    hashed = touched.mutate(hash=_hash(touched.page))
    found = hashed.filter(hashed.hash < math.ceil(rate * PRIME)).order_by("at", "place", "page").to_pyarrow()
    page, hash_ = found["page"].to_numpy(), found["hash"].to_numpy()
    sample = hash_ % SAMPLES if rate < 1 else np.zeros(len(hash_), np.int64)
    share = rate / SAMPLES if rate < 1 else 1.0
    distance = np.empty(len(page))
    for number in range(SAMPLES):
        mine = sample == number
        distance[mine] = stack_distances(page[mine]) / share
    return Reuse(distance, sample, share, int(accesses))


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


def _hash(page: ir.IntegerColumn) -> ir.IntegerColumn:
    """A number below PRIME for each page, in arithmetic that every engine has and that doesn't overflow."""
    mixed = ((page % PRIME) * 48271) % PRIME
    mixed = mixed ^ (mixed / 32768).floor().cast("int64")
    return ((mixed % PRIME) * 69621) % PRIME
