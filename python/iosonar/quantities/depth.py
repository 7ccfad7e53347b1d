"""The number of requests in flight at the issue of each request, itself included."""

from __future__ import annotations

from typing import TYPE_CHECKING

from iosonar.quantities.in_flight import counted_end
from iosonar.quantities.series import series_of

if TYPE_CHECKING:
    import ibis.expr.types as ir


def with_depth(table: ir.Table) -> ir.Table:
    """The issued requests with the column `depth`: as the replayer recorded it, else computed from the times.

    From the times: each issue counts one up, each completion one down; completions before issues in the
    same nanosecond. Only columns that diagrams need are kept then.
    """
    issued = table.filter(table.issued_ns.notnull())
    if issued.aggregate(unknown=issued.in_flight.isnull().any()).to_pyarrow()["unknown"][0].as_py():
        return _counted(issued)
    return issued.mutate(depth=issued.in_flight.cast("int64"))


def _counted(issued: ir.Table) -> ir.Table:
    import ibis

    ends = issued.filter(issued.completed_ns.notnull())
    issued = issued.mutate(series=series_of(issued))
    ends = ends.mutate(series=series_of(ends))
    kept = ("series", "latency_ns", "delay_ns", "sectors")
    events = issued.select(*kept, at=issued.issued_ns, step=ibis.literal(1)).union(
        ends.select(
            *(ibis.null().cast(ends[name].type()).name(name) for name in kept),
            at=counted_end(ends.issued_ns, ends.completed_ns),
            step=ibis.literal(-1),
        )
    )
    running = ibis.window(order_by=[events.at, events.step], preceding=None, following=0)
    return events.mutate(depth=events.step.sum().over(running)).filter(lambda counted: counted.step == 1)
