"""Where requests go, as one space of addresses: several files and devices lie in it without overlap."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ibis.expr.types as ir

STRIDE = 1 << 42
"""Sectors between the beginnings of two devices: two PiB, more than any has."""

DEVICES = 1 << 10
"""Most devices of a file that are told apart."""

MOVES_DATA = ("read", "write")


def transfers(table: ir.Table) -> ir.Table:
    """The requests that move data, with `address` (of their first sector) and `extent` (which device of which file).

    What was skipped touched nothing and is left out; loads have no outcome, and all of their requests count.
    """
    skipped = table.outcome.notnull() & table.issued_ns.isnull()
    kept = table.filter(table["op"].isin(MOVES_DATA) & (table.sectors > 0) & ~skipped)
    extent = kept.source.cast("int64") * DEVICES + kept.device.fill_null(0)
    return kept.mutate(extent=extent, address=extent * STRIDE + kept.sector)
