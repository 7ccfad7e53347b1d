"""How well a replay kept the times of calls: delay E = issue − scheduled, and E divided by the trace's gap.

Calls that are kept are those that nothing held but the replayer itself, which may read the trace too late (`input`), or
have delayed the call that must come before (`backlog`).
The Rust half (crates/files/src/replay/statistics.rs) has the same rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from iosonar.quantities.distribution import Distribution, distributions, pooled

if TYPE_CHECKING:
    import ibis.expr.types as ir

RATIO_UNIT = 1e-6
"""The unit of a distribution of ratios: a millionth."""

OWN_REASONS = ("none", "input", "backlog")
"""Values of `delay_reason` of calls that are not held back."""

WITHIN_US = (10, 25, 50, 100)


@dataclass(frozen=True)
class Delays:
    """Delays of the calls that were not held back, in ns, and of all others; shares within limits."""

    not_held_back: Distribution
    held_back: Distribution
    within: dict[int, float]
    """The share of the first within 10, 25, 50 and 100 µs."""


def delays(issued: ir.Table) -> Delays:
    """The delays of issued calls."""
    not_held_back = issued.delay_reason.isin(OWN_REASONS)
    table = issued.mutate(
        series=not_held_back.ifelse(1, 0).cast("int8"), error_ns=issued.begin_ns - issued.scheduled_ns
    )
    found = distributions(table, table.error_ns)
    kept = table.filter(table.series == 1)
    row = (
        kept.aggregate(n=kept.count(), **{f"in_{us}": (kept.error_ns <= us * 1000).sum() for us in WITHIN_US})
        .to_pyarrow()
        .to_pylist()[0]
    )
    within = {us: (row[f"in_{us}"] or 0) / row["n"] if row["n"] else 1.0 for us in WITHIN_US}
    return Delays(found.get(1, pooled([])), found.get(0, pooled([])), within)


def compute_time_errors(issued: ir.Table) -> Distribution:
    """E / (B₂ − E₁) in millionths, of calls not held back that began after their latest predecessor ended."""
    kept = issued.filter(issued.delay_reason.isin(OWN_REASONS) & (issued.gap_ns > 0))
    ratio = (kept.begin_ns - kept.scheduled_ns).cast("float64") / kept.gap_ns.cast("float64") / RATIO_UNIT
    table = kept.mutate(series=kept.instance * 0, ratio=ratio)
    return distributions(table, table.ratio).get(0, pooled([]))
