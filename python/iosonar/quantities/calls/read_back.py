"""Reads of data that the same process wrote shortly before.

Files are seen in cells. A read is one of data just written if the last write of its process to the cell of its first
byte overlaps it, and began within a time before it. So it is never counted too often.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ibis.expr.types as ir

CELL = 64 << 10
LARGEST_CELLS = 1 << 14
"""Cells of a write that are looked at: those of 1 GiB."""


def read_back(table: ir.Table, within_ns: float) -> ir.Table:
    """A row for each file with such reads: their number, bytes and mean age in ns, and the file's reads and bytes.

    `table` has `owner`, and no negative offsets; an expression.
    """
    import ibis

    moved = table.filter(
        table.path.notnull()
        & table.bytes.notnull()
        & table.offset.notnull()
        & (table.offset >= 0)
        & table.family.isin(["read", "write"])
    )
    kept = ("instance", "owner", "path", "begin_ns", "number")
    each = moved.select(
        *kept,
        is_write=(moved.family == "write").cast("int64"),
        low=moved.offset,
        high=moved.offset + moved.bytes,
        cell=moved.offset // CELL,
        last=ibis.least((moved.offset + moved.bytes - 1) // CELL, moved.offset // CELL + LARGEST_CELLS),
    )
    writes = each.filter(each.is_write == 1)
    spread = writes.mutate(cell=ibis.range(writes.cell, writes.last + 1).unnest())
    columns = (*kept, "is_write", "low", "high", "cell")
    events = spread.select(*columns).union(each.filter(each.is_write == 0).select(*columns))
    keys = ["instance", "owner", "path", "cell"]
    past = ibis.window(group_by=keys, order_by=[events.begin_ns, events.number], preceding=(None, 0), following=None)
    turns = events.mutate(turn=events.is_write.sum().over(past))
    is_write = turns.is_write == 1
    turn = ibis.window(group_by=[*keys, "turn"])

    def of_write(column: ir.Value) -> ir.Value:
        return column.max(where=is_write).over(turn)

    known = turns.mutate(
        w_low=of_write(turns.low), w_high=of_write(turns.high), age_ns=turns.begin_ns - of_write(turns.begin_ns)
    )
    reads = known.filter(known.is_write == 0)
    back = ((reads.age_ns <= within_ns) & (reads.low < reads.w_high) & (reads.high > reads.w_low)).fill_null(False)
    overlap = ibis.least(reads.high, reads.w_high) - ibis.greatest(reads.low, reads.w_low)
    found = reads.group_by("path").aggregate(
        reads=back.sum(),
        bytes=overlap.sum(where=back).fill_null(0).cast("int64"),
        age_ns=reads.age_ns.cast("float64").sum(where=back).fill_null(0.0),
        first_ns=reads.begin_ns.min(where=back),
        last_ns=reads.begin_ns.max(where=back),
    )
    return found.filter(found.reads > 0)
