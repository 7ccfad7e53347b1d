"""The shares of all calls by call and by thread: how many, how many failed, and their time and bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    import ibis.expr.types as ir

Key = TypeVar("Key", str, int)


@dataclass(frozen=True)
class Share(Generic[Key]):
    """A part of the calls; shares are of all calls of the table, of their number and of their time."""

    of: Key
    """The system call, or the thread."""
    calls: int
    failed: int
    seconds: float
    bytes: int
    share: float
    time_share: float


def mix(table: ir.Table) -> list[Share[str]]:
    """Each call of the table, the most frequent first. Calls that did not return take no time."""
    return _shares(table, "call")


def shares_of_threads(table: ir.Table) -> list[Share[int]]:
    """Each thread, the most active first."""
    return _shares(table, "thread")


def _shares(table: ir.Table, column: str) -> list[Share[Any]]:
    rows = (
        table.group_by(column)
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
        Share(
            row[column],
            row["n"],
            int(row["failed"] or 0),
            (row["ns"] or 0.0) / 1e9,
            int(row["moved"] or 0),
            row["n"] / calls,
            (row["ns"] or 0.0) / took if took else 0.0,
        )
        for row in rows
    ]
    return sorted(found, key=lambda each: (-each.calls, each.of))
