"""Gaps between the begins of successive calls, and within a thread from the end of a call to the next begin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from iosonar.quantities.distribution import Distribution, distributions

if TYPE_CHECKING:
    import ibis.expr.types as ir

ARRIVAL, THINK = 0, 1
"""The two kinds of gaps: between begins of all calls, and within a thread."""


def gaps(table: ir.Table) -> dict[int, Distribution]:
    """The distributions of gaps in ns, by kind. A call that begins before its thread's last one ended has none."""
    import ibis

    all_calls = ibis.window(group_by=[table.instance], order_by=[table.begin_ns, table.number])
    thread = ibis.window(group_by=[table.instance, table.thread], order_by=[table.begin_ns, table.number])
    timed = table.select(
        arrival=table.begin_ns - table.begin_ns.lag().over(all_calls),
        think=table.begin_ns - table.end_ns.lag().over(thread),
    )
    both = timed.select(series=ibis.literal(ARRIVAL), gap=timed.arrival).union(
        timed.filter(timed.think >= 0).select(series=ibis.literal(THINK), gap=timed.think)
    )
    return distributions(both, both.gap)
