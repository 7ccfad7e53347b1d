"""What each request saw at its issue: the queue length, and the requests of the last second.

The queue length is the number of requests in flight, itself included; the other number is that of the requests issued
in the second before, itself included. Of requests that are issued in the same nanosecond, each later one counts the
earlier ones.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from iosonar.quantities.batches import batches
from iosonar.quantities.in_flight import counted_end

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pyarrow as pa

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


def seen(table: ir.Table) -> pa.Table | None:
    """The same, by a kernel that sorts; None if the rows are not in this process."""
    import pyarrow as pa

    issued = table.filter(table.issued_ns.notnull())
    rows = batches(
        issued.select(
            source=issued.source.cast("int32"),
            scheduled=issued.scheduled_ns.fill_null(0),
            is_scheduled=issued.scheduled_ns.notnull(),
            issued=issued.issued_ns,
            end=counted_end(issued.issued_ns, issued.completed_ns).fill_null(0),
            has_end=issued.completed_ns.notnull(),
        )
    )
    if rows is None:
        return None
    parts = list(rows)
    if not parts:
        return None
    source, scheduled, is_scheduled, at, end, has_end = (np.concatenate(each) for each in zip(*parts, strict=True))
    parts.clear()
    order = np.argsort(at, kind="stable")
    order = order if (source == source[0]).all() else order[np.argsort(source[order], kind="stable")]
    source, at = source[order], at[order]
    queue, last_second = np.empty(len(at), np.int32), np.empty(len(at), np.int32)
    # Several files are runs of their own.
    borders = [0, *(np.flatnonzero(source[1:] != source[:-1]) + 1).tolist(), len(at)]
    for first, last in pairwise(borders):
        own = order[first:last]
        times, ends = at[first:last], np.sort(end[own][has_end[own]])
        number = np.arange(1, last - first + 1)
        queue[first:last] = number - _up_to(ends, times)
        last_second[first:last] = number - _up_to(times, times - SECOND_NS)
    columns = {
        "source": pa.array(source),
        "scheduled_ns": pa.array(scheduled[order], mask=~is_scheduled[order]),
        "queue": pa.array(queue),
        "last_second": pa.array(last_second),
        "issued_ns": pa.array(at),
    }
    return pa.table(columns)


def _up_to(values: NDArray[np.int64], limits: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many values are at most each limit; both are in order."""
    found: NDArray[np.int64] = np.searchsorted(values, limits, side="right")
    return found
