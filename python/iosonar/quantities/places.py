"""Where on each device requests begin: whole sectors, exact to 2^63 − 1, however far apart they lie."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ibis.expr.types as ir

MOSTLY_EMPTY = 0.2
"""An extent that begins beyond this share of its end doesn't begin at sector 0: most of it would be empty."""


@dataclass(frozen=True)
class Extent:
    """The sectors in which requests of a device begin: from `low` on, up to `high`; and how many requests do."""

    device: int
    low: int
    high: int
    requests: int

    @property
    def base(self) -> int:
        """Where an axis of it begins."""
        return self.low if self.low > MOSTLY_EMPTY * self.high else 0

    @property
    def sectors(self) -> int:
        """How many sectors an axis of it has: at least a few."""
        return max(self.high - self.base + 1, 8)


def placed(table: ir.Table) -> ir.Table:
    """The requests that are at some place of their device: all but flushes."""
    return table.filter(table.sectors > 0)


def extents(table: ir.Table) -> list[Extent]:
    """The extent of each device that `table`, as `placed` returns it, has requests of, by the device's index."""
    device = table.device.fill_null(0)
    found = table.group_by(device=device).aggregate(
        low=table.sector.min(), high=table.sector.max(), requests=table.count()
    )
    rows = found.order_by("device").to_pyarrow().to_pylist()
    return [Extent(row["device"], row["low"], row["high"], row["requests"]) for row in rows]


def above(table: ir.Table, sector: int) -> ir.FloatingColumn:
    """How many sectors each request lies above `sector`: taken away as whole numbers, and only then made a float."""
    return (table.sector - sector).cast("float64")
