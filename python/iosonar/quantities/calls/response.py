"""Response times, from the start of a call to its end: by series, by call, and by concurrency."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from iosonar.quantities.distribution import Distribution, distributions
from iosonar.quantities.in_flight import counted_end

if TYPE_CHECKING:
    import ibis.expr.types as ir


def by_call(table: ir.Table, calls: Sequence[str]) -> dict[str, Distribution]:
    """The distribution of response times in ns for each of these calls that returned."""
    import ibis

    chosen = table.filter(table.call.isin(calls))
    number = ibis.cases(*((chosen.call == name, index) for index, name in enumerate(calls)), else_=0)
    numbered = chosen.mutate(series=number.cast("int32"))
    return {calls[index]: found for index, found in distributions(numbered, numbered.duration_ns).items()}


def with_concurrency(table: ir.Table, least_series: int) -> ir.Table:
    """The calls that returned, with `concurrency`: the number of calls in progress at their start, themselves included.

    Only calls of series below `least_series` count. Ends count before begins of the same nanosecond.
    """
    import ibis

    calls = table.filter(table.duration_ns.notnull() & (table.series < least_series))
    kept = ("series", "duration_ns")
    events = calls.select(*kept, at=calls.begin_ns, step=ibis.literal(1)).union(
        calls.select(
            *(ibis.null().cast(calls[name].type()).name(name) for name in kept),
            at=counted_end(calls.begin_ns, calls.end_ns),
            step=ibis.literal(-1),
        )
    )
    running = ibis.window(order_by=[events.at, events.step], preceding=None, following=0)
    return events.mutate(concurrency=events.step.sum().over(running)).filter(lambda counted: counted.step == 1)


def ecdf(values: Distribution, unit: float = 1e-9) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The empirical distribution function: values in `unit`, and the share in percent that does not exceed each."""
    return values.maxima * unit, 100.0 * np.cumsum(values.counts) / max(values.count, 1)
