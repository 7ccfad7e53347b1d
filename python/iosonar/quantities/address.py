"""Where requests go: the space of addresses in which the devices of all files lie without overlap, part by part.

Sectors and devices may be any numbers, so that not all devices fit into one space of 64 bits. What needs an address
works on parts: some whole devices moved close together, or a range of the sectors of one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from iosonar.quantities.whole import cuts

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pyarrow as pa

DEVICES = 1 << 32
"""Devices of a file are told apart by 32 bits."""

LAST_SECTOR = 2**63 - 1
"""No request reaches further: where a sum of position and length would, it is cut off."""

SECTORS_PER_PAGE = 8
PAGE_BITS = 3

MOST_ADDRESSES = 1 << 60
"""Sectors of several devices in one part."""

MOVES_DATA = ("read", "write")


def moves_data(table: ir.Table) -> ir.BooleanColumn:
    """Whether a request touches the device's data; what was skipped does not. All requests of loads count."""
    if "moved" in table.columns:
        return table.moved
    # Loads have no outcome.
    skipped = table.outcome.notnull() & table.issued_ns.isnull()
    return table["op"].isin(MOVES_DATA) & (table.sectors > 0) & ~skipped


def transfers(table: ir.Table) -> ir.Table:
    """The requests that move data, with `extent` (which device of which file) and `behind`, the first sector after."""
    import ibis

    kept = table.filter(moves_data(table))
    extent = kept.source.cast("int64") * DEVICES + kept.device.fill_null(0)
    behind = kept.sector + ibis.least(kept.sectors.cast("int64"), LAST_SECTOR - kept.sector)
    return kept.mutate(extent=extent, behind=behind)


@dataclass(frozen=True)
class Part:
    """Some whole extents, or the sectors from `low` to below `high` of one.

    `extents` are in ascending order; an address is a sector plus its extent's `bases`, and is not negative. Pages of
    4 KiB of an extent remain pages.
    """

    extents: NDArray[np.int64]
    bases: NDArray[np.int64]
    low: int | None = None
    high: int | None = None

    def within(self, moved: ir.Table) -> ir.Table:
        """The transfers that touch the part."""
        rows = self._of_extents(moved)
        if self.low is None or self.high is None:
            return rows
        return rows.filter((rows.sector < self.high) & (rows.behind > self.low))

    def beginning(self, moved: ir.Table) -> ir.Table:
        """The transfers that begin in the part: each transfer does in exactly one."""
        rows = self._of_extents(moved)
        if self.low is None or self.high is None:
            return rows
        return rows.filter((rows.sector >= self.low) & (rows.sector < self.high))

    def _of_extents(self, moved: ir.Table) -> ir.Table:
        return moved.filter(moved.extent.between(int(self.extents[0]), int(self.extents[-1])))

    def addresses(self, rows: pa.Table) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Of rows with `extent`, `sector`, `behind`: from which address to before which each lies within the part."""
        begin, end = rows["sector"].to_numpy(), rows["behind"].to_numpy()
        if self.low is not None and self.high is not None:
            begin, end = np.maximum(begin, self.low), np.minimum(end, self.high)
        if len(self.extents) == 1:
            return begin + self.bases[0], end + self.bases[0]
        base = self.bases[np.searchsorted(self.extents, rows["extent"].to_numpy())]
        return begin + base, end + base


def parts(moved: ir.Table, rows_at_once: int) -> Iterator[Part]:
    """Parts that together hold all transfers, each touched by about so many. Inner borders are those of pages."""
    found = (
        moved.group_by("extent")
        .aggregate(low=moved.sector.min(), high=moved.behind.max(), last=moved.sector.max(), n=moved.count())
        .order_by("extent")
        .to_pyarrow()
    )
    extent, low, high, last, n = (found[name].to_numpy() for name in ("extent", "low", "high", "last", "n"))
    low = low // SECTORS_PER_PAGE * SECTORS_PER_PAGE
    begun, rows, length = 0, 0, 0
    bases = np.zeros(len(extent), np.int64)
    for place in range(len(extent)):
        size = int(high[place]) - int(low[place])
        if place > begun and (rows + int(n[place]) > rows_at_once or length + size > MOST_ADDRESSES):
            yield Part(extent[begun:place], bases[begun:place])
            begun, rows, length = place, 0, 0
        if n[place] > rows_at_once:
            mine = moved.filter(moved.extent == int(extent[place]))
            ranges = cuts(mine, "sector", int(low[place]), int(last[place]) + 1, int(n[place]), rows_at_once)
            for first, behind in on_pages(ranges, int(high[place])):
                yield Part(extent[place : place + 1], -low[place : place + 1], first, behind)
            begun = place + 1
            continue
        bases[place] = length - int(low[place])
        rows, length = rows + int(n[place]), length + -(-size // SECTORS_PER_PAGE) * SECTORS_PER_PAGE
    if begun < len(extent):
        yield Part(extent[begun:], bases[begun:])


def on_pages(ranges: list[tuple[int, int]], end: int) -> list[tuple[int, int]]:
    """The same ranges with inner borders at the page's beginning, the last one up to `end`."""
    borders = sorted({first // SECTORS_PER_PAGE * SECTORS_PER_PAGE for first, _ in ranges})
    return list(zip(borders, [*borders[1:], end], strict=True))
