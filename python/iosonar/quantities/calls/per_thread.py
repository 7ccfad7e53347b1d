"""The share of calls that each thread made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ibis.expr.types as ir


@dataclass(frozen=True)
class ThreadShare:
    """A thread; shares are of all calls of the table, of their number and of their time."""

    thread: int
    calls: int
    seconds: float
    share: float
    time_share: float


def shares_of_threads(table: ir.Table) -> list[ThreadShare]:
    """Each thread, the most active first."""
    rows = (
        table.group_by("thread")
        .aggregate(n=table.count(), ns=table.duration_ns.cast("float64").sum())
        .to_pyarrow()
        .to_pylist()
    )
    calls = sum(row["n"] for row in rows)
    took = sum(row["ns"] or 0.0 for row in rows)
    found = [
        ThreadShare(
            row["thread"],
            row["n"],
            (row["ns"] or 0.0) / 1e9,
            row["n"] / calls,
            (row["ns"] or 0.0) / took if took else 0.0,
        )
        for row in rows
    ]
    return sorted(found, key=lambda each: (-each.calls, each.thread))
