"""The mix of calls: how many of each, how many failed, and the time and bytes of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ibis.expr.types as ir


@dataclass(frozen=True)
class CallShare:
    """A system call; shares are of all calls of the table, of their number and of their time."""

    call: str
    calls: int
    failed: int
    seconds: float
    bytes: int
    share: float
    time_share: float


def mix(table: ir.Table) -> list[CallShare]:
    """Each call of the table, the most frequent first. Calls that did not return take no time."""
    rows = (
        table.group_by("call")
        .aggregate(
            n=table.count(),
            failed=table.has_failed.sum(),
            ns=table.duration_ns.cast("float64").sum(),
            moved=table.bytes.cast("float64").sum(),
        )
        .to_pyarrow()
        .to_pylist()
    )
    calls = sum(row["n"] for row in rows)
    took = sum(row["ns"] or 0.0 for row in rows)
    found = [
        CallShare(
            row["call"],
            row["n"],
            int(row["failed"] or 0),
            (row["ns"] or 0.0) / 1e9,
            int(row["moved"] or 0),
            row["n"] / calls,
            (row["ns"] or 0.0) / took if took else 0.0,
        )
        for row in rows
    ]
    return sorted(found, key=lambda each: (-each.calls, each.call))
