"""Sizes and positions of requests, and the popularity of pages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from iosonar.quantities.address import PAGE_BITS, Part, parts, transfers
from iosonar.quantities.batches import array_of
from iosonar.quantities.series import Series, operation_of
from iosonar.quantities.threads import in_threads

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pyarrow as pa

ROWS_AT_ONCE = 2_500_000
"""Requests whose pages are sorted at once; more are processed in parts of the address space."""

MAX_BINS = 256


def sizes(table: ir.Table) -> dict[Series, dict[int, int]]:
    """The number of requests by length in sectors."""
    moved = transfers(table)
    found = moved.group_by(series=operation_of(moved), sectors=moved.sectors).aggregate(n=moved.count()).to_pyarrow()
    return _by_series(found.to_pylist(), "sectors")


@dataclass(frozen=True)
class Places:
    """The number of requests that begin in each bin of their device, of `sectors_per_bin` sectors each."""

    sectors_per_bin: int
    requests: dict[Series, dict[int, int]]


def places(table: ir.Table, device_sectors: int) -> Places | None:
    """Counts requests in at most MAX_BINS bins that cover all requests and the device; their size is a power of two."""
    moved = transfers(table)
    last = moved.aggregate(last=moved.sector.max()).to_pyarrow()["last"][0].as_py()
    if last is None:
        return None
    # At least a page.
    bits = max((max(last, device_sectors - 1) // MAX_BINS).bit_length(), PAGE_BITS)
    by = operation_of(moved)
    found = moved.group_by(series=by, bin=moved.sector >> bits).aggregate(n=moved.count()).to_pyarrow()
    return Places(1 << bits, _by_series(found.to_pylist(), "bin"))


def _by_series(rows: list[dict[str, int]], key: str) -> dict[Series, dict[int, int]]:
    found: dict[Series, dict[int, int]] = {}
    for row in rows:
        found.setdefault(Series(row["series"]), {})[row[key]] = row["n"]
    return {series: dict(sorted(found[series].items())) for series in sorted(found)}


@dataclass(frozen=True)
class Popularity:
    """Accesses to pages of 4 KiB: each of `pages[i]` pages has `accesses[i]` accesses, the most popular first."""

    accesses: NDArray[np.int64]
    pages: NDArray[np.int64]

    @property
    def ranks(self) -> NDArray[np.int64]:
        """The rank of the last page with that many accesses; the most popular page has rank 1."""
        return np.cumsum(self.pages)

    @property
    def total(self) -> float:
        """Accesses to all pages."""
        return float(self._accesses.sum())

    @property
    def _accesses(self) -> NDArray[np.float64]:
        """For each number of accesses, the total of all pages with that number."""
        return self.accesses.astype(np.float64) * self.pages

    def pages_for(self, share: float) -> float:
        """The number of most popular pages that together have that share (0 … 1) of the accesses."""
        cumulative = np.concatenate([[0], np.cumsum(self._accesses)])
        target = share * self.total
        index = min(int(np.searchsorted(cumulative, target, side="left")), len(self.pages)) - 1
        before = int(self.pages[:index].sum()) if index > 0 else 0
        index = max(index, 0)
        return before + float(target - cumulative[index]) / float(self.accesses[index])


def popularity(table: ir.Table) -> dict[str, Popularity]:
    """The popularity of pages for `read`, `write` and `all` requests; a request accesses every page that it overlaps.

    A kernel: requests are not split into pages. Between two successive borders of requests, all pages have the same
    number of accesses: that of the requests that began before and end later.
    """
    moved = transfers(table)
    is_read = moved.is_read if "is_read" in moved.columns else moved["op"] == "read"
    rows = moved.select(extent=moved.extent, sector=moved.sector, end_sector=moved.end_sector, is_read=is_read)
    pages: dict[str, NDArray[np.int64]] = {}

    def chunks() -> Iterator[_Chunk]:
        for part in parts(rows, ROWS_AT_ONCE):
            yield _Chunk(part, [part.within(rows).to_pyarrow()])

    for touched in in_threads(_touched, chunks()):
        for kind, found in touched.items():
            known = pages.get(kind, np.zeros(0, np.int64))
            longer, shorter = (found, known) if len(found) > len(known) else (known, found)
            longer[: len(shorter)] += shorter
            pages[kind] = longer
    return {kind: _ranked(count) for kind, count in pages.items() if count[1:].any()}


@dataclass(frozen=True)
class _Chunk:
    """The requests of a part, in a list from which they are removed when used, so that their memory is freed."""

    part: Part
    rows: list[pa.Table]


def _touched(chunks: _Chunk) -> dict[str, NDArray[np.int64]]:
    """For each kind: the number of pages of the part with 0, 1, 2, … accesses."""
    rows = chunks.rows.pop()
    begin, end = chunks.part.addresses(rows)
    first, end_sector = begin >> PAGE_BITS, ((end - 1) >> PAGE_BITS) + 1
    # Page and event in one integer, for a fast sort: bit 0 is a read, bit 1 an end.
    read = array_of(rows["is_read"]).astype(np.int64)
    steps = np.concatenate([first * 4 + read, end_sector * 4 + read + 2])
    del rows, begin, end, first, end_sector, read
    steps.sort()
    page = steps >> 2
    changes = np.flatnonzero(page[1:] != page[:-1])
    weights = (page[changes + 1] - page[changes]).astype(np.float64)
    del page
    # Both levels in one sum: that of reads in the lower half, that of writes in the upper.
    steps = (1 - (steps & 2)) << ((~steps & 1) << 5)
    np.cumsum(steps, out=steps)
    both = steps[changes]
    del steps
    level = {"read": both & (2**32 - 1), "write": both >> 32}
    level["all"] = level["read"] + level["write"]
    return {kind: np.bincount(counts, weights).astype(np.int64) for kind, counts in level.items()}


def _ranked(pages: NDArray[np.int64]) -> Popularity:
    """The popularity, from the number of pages with 0, 1, 2, … accesses."""
    accesses = np.flatnonzero(pages[1:])[::-1] + 1
    return Popularity(accesses, pages[accesses])
