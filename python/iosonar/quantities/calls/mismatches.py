"""What became of the calls of a run: outcomes by call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ibis.expr.types as ir


@dataclass(frozen=True)
class Outcome:
    """Calls of a name with the same outcome."""

    call: str
    outcome: str
    calls: int
    is_mismatch: bool
    """Whether the results differ from the original's."""
    is_issued: bool


def outcomes_of_calls(table: ir.Table) -> list[Outcome]:
    """Each outcome of each call, the most frequent first."""
    known = table.filter(table.outcome.notnull())
    rows = (
        known.group_by("outcome", "call", "is_mismatch")
        .aggregate(n=known.count(), issued=known.begin_ns.count())
        .to_pyarrow()
        .to_pylist()
    )
    found = [Outcome(row["call"], row["outcome"], row["n"], row["is_mismatch"], row["issued"] > 0) for row in rows]
    return sorted(found, key=lambda each: (-each.calls, each.outcome, each.call))
