"""Sizes and positions of requests, and how often each page is touched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from iosonar.quantities.address import transfers
from iosonar.quantities.series import Series, series_of

if TYPE_CHECKING:
    import ibis.expr.types as ir

SECTORS_PER_GIB = 1 << 21
SECTORS_PER_PAGE = 8


def sizes(table: ir.Table) -> dict[Series, dict[int, int]]:
    """How many requests have which length in sectors."""
    moved = transfers(table)
    found = moved.group_by(series=series_of(moved), sectors=moved.sectors).aggregate(n=moved.count()).to_pyarrow()
    return _by_series(found.to_pylist(), "sectors")


def gibibytes(table: ir.Table) -> dict[Series, dict[int, int]]:
    """How many requests begin in which GiB of their device."""
    moved = transfers(table)
    gib = (moved.sector / SECTORS_PER_GIB).floor().cast("int64")
    found = moved.group_by(series=series_of(moved), gib=gib).aggregate(n=moved.count()).to_pyarrow()
    return _by_series(found.to_pylist(), "gib")


def _by_series(rows: list[dict[str, int]], key: str) -> dict[Series, dict[int, int]]:
    found: dict[Series, dict[int, int]] = {}
    for row in rows:
        found.setdefault(Series(row["series"]), {})[row[key]] = row["n"]
    return {series: dict(sorted(found[series].items())) for series in sorted(found)}


@dataclass(frozen=True)
class Popularity:
    """How often pages of 4 KiB are touched: `accesses[i]` times each of `pages[i]` pages, the most popular first."""

    accesses: NDArray[np.int64]
    pages: NDArray[np.int64]

    @property
    def ranks(self) -> NDArray[np.int64]:
        """The rank of the last page with that many accesses; the most popular page has rank 1."""
        return np.cumsum(self.pages)

    @property
    def total(self) -> int:
        """Accesses to all pages."""
        return int((self.accesses * self.pages).sum())

    def pages_for(self, share: float) -> float:
        """How many of the most popular pages together get that share (0 … 1) of the accesses."""
        upto = np.concatenate([[0], np.cumsum(self.accesses * self.pages)])
        target = share * self.total
        index = min(int(np.searchsorted(upto, target, side="left")), len(self.pages)) - 1
        before = int(self.pages[:index].sum()) if index > 0 else 0
        index = max(index, 0)
        return before + float(target - upto[index]) / float(self.accesses[index])


def popularity(table: ir.Table) -> dict[str, Popularity]:
    """How often pages are touched by `read`, `write` and `all` requests; a request touches every page it overlaps.

    Requests are not cut into their pages: sorted by where they begin and end, the pages between two such places have
    the same number of accesses, that of the requests which began and didn't end before.
    """
    import ibis

    moved = transfers(table)
    first = (moved.address / SECTORS_PER_PAGE).floor().cast("int64")
    behind = ((moved.address + moved.sectors - 1) / SECTORS_PER_PAGE).floor().cast("int64") + 1
    is_read = (moved["op"] == "read").cast("int64")
    begins = moved.select(page=first, read=is_read, write=1 - is_read)
    ends = moved.select(page=behind, read=-is_read, write=is_read - 1)
    steps = begins.union(ends).group_by("page").aggregate(read=ibis._.read.sum(), write=ibis._.write.sum())
    upto = ibis.window(order_by=steps.page, preceding=None, following=0)
    runs = steps.mutate(
        pages=steps.page.lead().over(order_by=steps.page) - steps.page,
        read=steps.read.sum().over(upto),
        write=steps.write.sum().over(upto),
    )
    found = runs.filter(runs.pages.notnull()).group_by("read", "write").aggregate(pages=ibis._.pages.sum()).to_pyarrow()
    read, write, pages = (found[name].to_numpy().astype(np.int64) for name in ("read", "write", "pages"))
    counts = {"read": read, "write": write, "all": read + write}
    return {name: _ranked(count, pages) for name, count in counts.items() if (count > 0).any()}


def _ranked(accesses: NDArray[np.int64], pages: NDArray[np.int64]) -> Popularity:
    values, place = np.unique(-accesses[accesses > 0], return_inverse=True)
    together = np.bincount(place, pages[accesses > 0]).astype(np.int64)
    return Popularity(-values, together)
