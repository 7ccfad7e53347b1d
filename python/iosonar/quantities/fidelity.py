"""How well a replay kept its times, for runs that say nothing about it themselves."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from iosonar.quantities.distribution import distributions, pooled

if TYPE_CHECKING:
    import ibis.expr.types as ir

WITHIN_US = (10, 50, 100)


@dataclass(frozen=True)
class Fidelity:
    """Requests that were not held back: how many, and their delay.

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
    """Measures the delay of requests that were not held back (the column `not_held_back`)."""
    free = table.filter(table.not_held_back)
    row = (
        free.aggregate(all=free.count(), **{f"within_{us}": (free.delay_ns <= us * 1000).sum() for us in WITHIN_US})
        .to_pyarrow()
        .to_pylist()[0]
    )
    shares = [(row[f"within_{us}"] or 0) / row["all"] if row["all"] else math.nan for us in WITHIN_US]
    delays = pooled(list(distributions(free, free.delay_ns).values()))
    within_10_us, within_50_us, within_100_us = shares
    return Fidelity(row["all"], within_10_us, within_50_us, within_100_us, delays.quantile(0.99) / 1e9)
