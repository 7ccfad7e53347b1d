"""Writes that must reach the storage at once: what each sync of a file makes durable, and writes that are synchronous.

The writes of a file since its sync before belong to a sync. A sync without any is not counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ibis.expr.types as ir

SYNCS = ("fsync", "fdatasync")
"""Calls that make the data of one file durable; sync_file_range does not."""

AT_ONCE = 2
"""Writes that one sync makes durable without a batch: the head of a record and its body are one record."""

O_DSYNC = 0o10000
"""The flag of opening that O_SYNC has, too."""
RWF_SYNCS = 0x2 | 0x4
"""RWF_DSYNC and RWF_SYNC of pwritev2."""


def syncs_by_file(table: ir.Table) -> ir.Table:
    """A row for each file with its syncs: their number, those of at most `AT_ONCE` writes, writes, bytes, time."""
    import ibis

    is_sync = table.call.isin(SYNCS)
    is_write = (table.family == "write") & table.bytes.notnull()
    events = table.filter(table.path.notnull() & ~table.has_failed & (is_sync | is_write))
    before = ibis.window(
        group_by=["instance", "path"], order_by=[events.begin_ns, events.number], preceding=(None, 1), following=None
    )
    is_sync = events.call.isin(SYNCS)
    numbered = events.select(
        "instance",
        "path",
        "begin_ns",
        is_sync=is_sync.cast("int64"),
        written=is_sync.ifelse(0, events.bytes),
        took_ns=is_sync.ifelse(events.duration_ns, 0).fill_null(0).cast("float64"),
        batch=is_sync.cast("int64").sum().over(before).fill_null(0),
    )
    batches = numbered.group_by("instance", "path", "batch").aggregate(
        syncs=numbered.is_sync.sum(),
        writes=(1 - numbered.is_sync).sum(),
        bytes=numbered.written.sum(),
        took_ns=numbered.took_ns.sum(),
        first_ns=numbered.begin_ns.min(),
        last_ns=numbered.begin_ns.max(),
    )
    full = batches.filter((batches.syncs > 0) & (batches.writes > 0))
    return full.group_by("path").aggregate(
        syncs=full.count(),
        at_once=(full.writes <= AT_ONCE).sum(),
        writes=full.writes.sum(),
        bytes=full.bytes.sum().cast("int64"),
        took_ns=full.took_ns.sum(),
        first_ns=full.first_ns.min(),
        last_ns=full.last_ns.max(),
    )


def synchronous_writes(table: ir.Table, below: float) -> ir.Table:
    """A row for each file with its synchronous writes of fewer bytes; an expression."""
    opens = table.filter((table.family == "open") & ~table.has_failed & table.path.notnull())
    opened = opens.filter((opens.flags & O_DSYNC) != 0).select("path").distinct()
    writes = table.filter(
        (table.family == "write") & table.bytes.notnull() & table.path.notnull() & (table.bytes < below)
    )
    kept = ("path", "bytes", "duration_ns", "begin_ns")
    is_flagged = (writes.call == "pwritev2") & ((writes.flags & RWF_SYNCS) != 0)
    flagged = writes.filter(is_flagged).select(*kept)
    others = writes.filter(~is_flagged.fill_null(False)).semi_join(opened, "path").select(*kept)
    every = flagged.union(others)
    return every.group_by("path").aggregate(
        writes=every.count(),
        bytes=every.bytes.sum().cast("int64"),
        took_ns=every.duration_ns.cast("float64").sum().fill_null(0.0),
        first_ns=every.begin_ns.min(),
        last_ns=every.begin_ns.max(),
    )
