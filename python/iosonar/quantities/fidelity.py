"""How well a replay kept its times, for runs that say nothing about it themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from iosonar.quantities.distribution import distributions, pooled

if TYPE_CHECKING:
    import ibis.expr.types as ir

NOTHING = "nothing"
WITHIN_US = (10, 50, 100)


@dataclass(frozen=True)
class Fidelity:
    """Of the requests that were free to go at their deadline: how many, and how late they went.

    The shares (of 1) that went within 10, 50 and 100 µs of their time, and the 99th percentile in seconds. It is the
    share within 50 µs that decides.
    """

    requests: int
    within_10_us: float
    within_50_us: float
    within_100_us: float
    p99_s: float
    faithful: bool | None = None
    """The run's own verdict, where it has one."""


def fidelity(table: ir.Table) -> Fidelity:
    """Measures the delays of requests that neither an overlap nor a limit held back, where that is known."""
    free = table.filter(~table.pushed_back.fill_null(False) & (table.held_by.fill_null(NOTHING) == NOTHING))
    delays = pooled(list(distributions(free, free.delay_ns).values()))
    in_10, in_50, in_100 = (delays.share_upto(us * 1000) for us in WITHIN_US)
    return Fidelity(delays.count, in_10, in_50, in_100, delays.quantile(0.99) / 1e9)
