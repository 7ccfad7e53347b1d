"""Where requests go, as one space of addresses: several files and devices lie in it without overlap."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import ibis.expr.types as ir

STRIDE = 1 << 42
"""Sectors between the beginnings of two devices: two PiB, more than any has."""

DEVICES = 1 << 10
"""Most devices of a file that are told apart."""

BLOCK = 1 << 16
"""Sectors: where an address space may be cut."""

MOVES_DATA = ("read", "write")


def moves_data(table: ir.Table) -> ir.BooleanColumn:
    """Whether a request touches the device's data; what was skipped does not. All requests of loads count."""
    if "moved" in table.columns:
        return table.moved
    # Loads have no outcome.
    skipped = table.outcome.notnull() & table.issued_ns.isnull()
    return table["op"].isin(MOVES_DATA) & (table.sectors > 0) & ~skipped


def transfers(table: ir.Table) -> ir.Table:
    """The requests that move data, with `address` (of their first sector) and `extent` (which device of which file)."""
    kept = table.filter(moves_data(table))
    extent = kept.source.cast("int64") * DEVICES + kept.device.fill_null(0)
    return kept.mutate(extent=extent, address=extent * STRIDE + kept.sector)


def ranges(moved: ir.Table, rows_at_once: int) -> list[tuple[int, int]]:
    """Ranges of addresses that together hold all transfers, each of at most about so many. Inner borders are round."""
    import ibis

    ends = moved.address + moved.sectors
    extent = moved.aggregate(low=moved.address.min(), high=ends.max(), n=moved.count()).to_pyarrow().to_pylist()[0]
    if not extent["n"]:
        return []
    if extent["n"] <= rows_at_once:
        return [(extent["low"], extent["high"])]
    block = moved.mutate(block=(moved.address / BLOCK).floor().cast("int64"))
    found = block.group_by("block").aggregate(n=ibis._.count()).order_by("block").to_pyarrow()
    upto = np.cumsum(found["n"].to_numpy())
    parts = math.ceil(extent["n"] / rows_at_once)
    cuts = np.searchsorted(upto, upto[-1] * np.arange(1, parts) / parts)
    borders = sorted({extent["low"], *(found["block"].to_numpy()[cuts] * BLOCK).tolist(), extent["high"]})
    return [(low, high) for low, high in pairwise(borders) if low < high]
