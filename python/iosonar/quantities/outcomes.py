"""Counts of requests by outcome and by operation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ibis.expr.types as ir


@dataclass(frozen=True)
class Outcomes:
    """Number of requests by outcome (empty for loads), and by operation."""

    by_outcome: dict[str, int]
    by_op: dict[str, int]

    def of(self, *outcomes: str) -> int:
        """Number of requests with one of these outcomes."""
        return sum(self.by_outcome.get(outcome, 0) for outcome in outcomes)


FAILED = ("error", "short", "corrupt", "unfinished")
"""Outcomes of requests that were submitted, and did not complete as they should."""

FAILED_SHARE = 0.001
"""From this share of failed requests on, latencies say nothing about the storage: errors take other times."""

SKIPPED = ("dropped", "beyond_end", "unaligned", "too_large", "unsupported", "excluded")
"""Outcomes of requests that were never submitted to the target."""


def outcomes(table: ir.Table) -> Outcomes:
    """Counts outcomes and operations."""
    found = table.group_by("outcome", op=table["op"]).aggregate(n=table.count()).to_pyarrow().to_pylist()
    by_outcome: dict[str, int] = {}
    by_op: dict[str, int] = {}
    for row in found:
        by_op[row["op"]] = by_op.get(row["op"], 0) + row["n"]
        if row["outcome"] is not None:
            by_outcome[row["outcome"]] = by_outcome.get(row["outcome"], 0) + row["n"]
    return Outcomes(by_outcome, by_op)
