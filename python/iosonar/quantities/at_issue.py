"""What each request saw at its issue: the queue length, and the requests of the last second.

The queue length is the number of requests in flight, itself included; the other number is that of the requests issued
in the second before, itself included. Of requests that are issued in the same nanosecond, each later one counts the
earlier ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from iosonar.quantities.in_flight import counted_end

if TYPE_CHECKING:
    import ibis.expr.types as ir

SECOND_NS = 1_000_000_000


def at_issue(table: ir.Table) -> ir.Table:
    """The issued requests of a table: `source`, `scheduled_ns`, `issued_ns`, `queue` and `last_second`."""
    import ibis

    issued = table.filter(table.issued_ns.notnull())
    ends = issued.filter(issued.completed_ns.notnull())
    nothing = ibis.null().cast("int64")

    def steps(of: ir.Table, at: ir.Value, queue: int, rate: int, *, is_issue: bool) -> ir.Table:
        return of.select(
            source=of.source.cast("int32"),
            scheduled_ns=of.scheduled_ns if is_issue else nothing,
            at=at,
            # At the same time, what ends does not count any more.
            is_issue=ibis.literal(int(is_issue)),
            in_flight=ibis.literal(queue),
            in_second=ibis.literal(rate),
        )

    events = (
        steps(issued, issued.issued_ns, 1, 1, is_issue=True)
        .union(steps(ends, counted_end(ends.issued_ns, ends.completed_ns), -1, 0, is_issue=False))
        .union(steps(issued, issued.issued_ns + SECOND_NS, 0, -1, is_issue=False))
    )
    # Several files are runs of their own.
    so_far = ibis.window(group_by="source", order_by=[events.at, events.is_issue], preceding=None, following=0)
    counted = events.mutate(
        # DuckDB's sums have 128 bits.
        queue=events.in_flight.sum().over(so_far).cast("int32"),
        last_second=events.in_second.sum().over(so_far).cast("int32"),
    )
    seen = counted.filter(counted.is_issue == 1)
    return seen.select("source", "scheduled_ns", "queue", "last_second", issued_ns=seen.at)
