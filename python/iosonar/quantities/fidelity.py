"""How faithful a replay was, for runs without a verdict of their own."""

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
    """Number and delay of the requests that were not held back.

    The shares (of 1) issued within 10, 50 and 100 µs of the scheduled time, and the 99th percentile of the delay in
    seconds. The verdict depends on the share within 50 µs.
    """

    requests: int
    within_10_us: float
    within_50_us: float
    within_100_us: float
    p99_s: float
    faithful: bool | None = None
    """The run's own verdict, if it has one."""
    unknown: str = ""
    """Why nothing is known of the fidelity, as a clause; empty if it is known."""


def fidelity(table: ir.Table) -> Fidelity:
    """Measures the delay of requests that were not held back (the column `not_held_back`)."""
    not_held_back = table.filter(table.not_held_back)
    row = (
        not_held_back.aggregate(
            all=not_held_back.count(),
            **{f"within_{us}": (not_held_back.delay_ns <= us * 1000).sum() for us in WITHIN_US},
        )
        .to_pyarrow()
        .to_pylist()[0]
    )
    shares = [(row[f"within_{us}"] or 0) / row["all"] if row["all"] else math.nan for us in WITHIN_US]
    delays = pooled(list(distributions(not_held_back, not_held_back.delay_ns).values()))
    within_10_us, within_50_us, within_100_us = shares
    return Fidelity(row["all"], within_10_us, within_50_us, within_100_us, delays.percentile(0.99) / 1e9)
