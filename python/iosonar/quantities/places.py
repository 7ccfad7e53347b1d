"""The start sectors of requests on each device, exact up to 2^63 − 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ibis.expr.types as ir

MOSTLY_EMPTY = 0.2
"""The axis of an extent that begins beyond this share of its end does not begin at 0, as most of it would be empty."""


@dataclass(frozen=True)
class Extent:
    """The range of start sectors on a device, from `low` to `high`, and the number of requests."""

    device: int
    low: int
    high: int
    requests: int

    @property
    def base(self) -> int:
        """The first sector on an axis."""
        return self.low if self.low > MOSTLY_EMPTY * self.high else 0

    @property
    def sectors(self) -> int:
        """The number of sectors on an axis: at least a few."""
        return max(self.high - self.base + 1, 8)


def placed(table: ir.Table) -> ir.Table:
    """The requests that have a position: all except flushes."""
    return table.filter(table.sectors > 0)


def extents(table: ir.Table) -> list[Extent]:
    """The extent of each device that has requests in `table`, a result of `placed`, by device index."""
    device = table.device.fill_null(0)
    found = table.group_by(device=device).aggregate(
        low=table.sector.min(), high=table.sector.max(), requests=table.count()
    )
    rows = found.order_by("device").to_pyarrow().to_pylist()
    return [Extent(row["device"], row["low"], row["high"], row["requests"]) for row in rows]


def above(table: ir.Table, sector: int) -> ir.FloatingColumn:
    """The distance of each request from `sector` in sectors: subtracted as integers, then converted to float."""
    return (table.sector - sector).cast("float64")
