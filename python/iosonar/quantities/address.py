"""An address space in which the devices of all files lie without overlap, processed part by part.

Sectors and devices may be any numbers, so all devices may not fit into one space of 64 bits. Code that needs addresses
therefore works on parts: several whole devices moved close together, or a range of sectors of one device.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from iosonar.quantities.batches import array_of
from iosonar.quantities.integers import cuts

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pyarrow as pa

DEVICES = 1 << 32
"""Devices of a file; their numbers have 32 bits."""

LAST_SECTOR = 2**63 - 1
"""The highest end of a request; an end beyond it is cut off."""

SECTORS_PER_PAGE = 8
PAGE_BITS = 3

MAX_ADDRESSES = 1 << 60
"""The most sectors of several devices in one part."""

MOVES_DATA = ("read", "write")


def moves_data(table: ir.Table) -> ir.BooleanColumn:
    """Whether a request transfers data of the device. Skipped requests do not; requests of loads always count."""
    if "moved" in table.columns:
        return table.moved
    # Loads have no outcome.
    skipped = table.outcome.notnull() & table.issued_ns.isnull()
    return table["op"].isin(MOVES_DATA) & (table.sectors > 0) & ~skipped


def transfers(table: ir.Table) -> ir.Table:
    """The requests that move data, with columns `extent` (number of the device) and `end_sector` (first after it)."""
    import ibis

    kept = table.filter(moves_data(table))
    extent = kept.source.cast("int64") * DEVICES + kept.device.fill_null(0)
    end_sector = kept.sector + ibis.least(kept.sectors.cast("int64"), LAST_SECTOR - kept.sector)
    return kept.mutate(extent=extent, end_sector=end_sector)


@dataclass(frozen=True)
class Part:
    """Several whole extents, or the sectors from `low` to below `high` of one.

    `extents` are ascending. An address is a sector plus its extent's base in `bases`, and is not negative. Addresses
    keep the alignment of pages of 4 KiB.
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
        return rows.filter((rows.sector < self.high) & (rows.end_sector > self.low))

    def beginning(self, moved: ir.Table) -> ir.Table:
        """The transfers that begin in the part; each begins in exactly one part."""
        rows = self._of_extents(moved)
        if self.low is None or self.high is None:
            return rows
        return rows.filter((rows.sector >= self.low) & (rows.sector < self.high))

    def _of_extents(self, moved: ir.Table) -> ir.Table:
        return moved.filter(moved.extent.between(int(self.extents[0]), int(self.extents[-1])))

    def addresses(self, rows: pa.Table) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """For each row, the addresses [begin, end) that it covers within the part."""
        begin, end = array_of(rows["sector"]), array_of(rows["end_sector"])
        if self.low is not None and self.high is not None:
            begin, end = np.maximum(begin, self.low), np.minimum(end, self.high)
        if len(self.extents) == 1:
            return begin + self.bases[0], end + self.bases[0]
        base = self.bases[np.searchsorted(self.extents, array_of(rows["extent"]))]
        return begin + base, end + base


def parts(moved: ir.Table, rows_at_once: int) -> Iterator[Part]:
    """Parts that together hold all transfers, each with about `rows_at_once`. Inner borders are page-aligned."""
    found = (
        moved.group_by("extent")
        .aggregate(low=moved.sector.min(), high=moved.end_sector.max(), last=moved.sector.max(), n=moved.count())
        .order_by("extent")
        .to_pyarrow()
    )
    extent, low, high, last, n = (array_of(found[name]) for name in ("extent", "low", "high", "last", "n"))
    low = low // SECTORS_PER_PAGE * SECTORS_PER_PAGE
    part_start, rows, length = 0, 0, 0
    bases = np.zeros(len(extent), np.int64)
    for place in range(len(extent)):
        size = int(high[place]) - int(low[place])
        if place > part_start and (rows + int(n[place]) > rows_at_once or length + size > MAX_ADDRESSES):
            yield Part(extent[part_start:place], bases[part_start:place])
            part_start, rows, length = place, 0, 0
        if n[place] > rows_at_once:
            of_extent = moved.filter(moved.extent == int(extent[place]))
            ranges = cuts(of_extent, "sector", int(low[place]), int(last[place]) + 1, int(n[place]), rows_at_once)
            for first, end_sector in on_pages(ranges, int(high[place])):
                yield Part(extent[place : place + 1], -low[place : place + 1], first, end_sector)
            part_start = place + 1
            continue
        bases[place] = length - int(low[place])
        rows, length = rows + int(n[place]), length + -(-size // SECTORS_PER_PAGE) * SECTORS_PER_PAGE
    if part_start < len(extent):
        yield Part(extent[part_start:], bases[part_start:])


def on_pages(ranges: list[tuple[int, int]], end: int) -> list[tuple[int, int]]:
    """Aligns the inner borders of ranges to pages; the last range ends at `end`."""
    borders = sorted({first // SECTORS_PER_PAGE * SECTORS_PER_PAGE for first, _ in ranges})
    return list(zip(borders, [*borders[1:], end], strict=True))
