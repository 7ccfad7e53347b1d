"""The number of requests and the range of their times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ibis.expr.types as ir


@dataclass(frozen=True)
class Span:
    """The extent of a table of requests; times in seconds, None without requests.

    `first_ns` and `last_ns` are the earliest and latest of all times, zero without requests.
    """

    requests: int
    issued: int
    completed: int
    first_ns: int
    last_ns: int
    first_scheduled_ns: int | None
    last_scheduled_ns: int | None
    first_scheduled_s: float | None
    last_scheduled_s: float | None
    last_issued_s: float | None
    last_completed_s: float | None


def span(table: ir.Table) -> Span:
    """Counts the requests and finds the earliest and latest times."""
    row = (
        table.aggregate(
            requests=table.count(),
            issued=table.issued_ns.count(),
            completed=table.completed_ns.count(),
            first_scheduled=table.scheduled_ns.min(),
            last_scheduled=table.scheduled_ns.max(),
            first_issued=table.issued_ns.min(),
            first_completed=table.completed_ns.min(),
            last_issued=table.issued_ns.max(),
            last_completed=table.completed_ns.max(),
        )
        .to_pyarrow()
        .to_pylist()[0]
    )
    seconds = [
        None if row[name] is None else row[name] / 1e9
        for name in ("first_scheduled", "last_scheduled", "last_issued", "last_completed")
    ]
    known = [value for name, value in row.items() if name.startswith(("first", "last")) and value is not None] or [0]
    return Span(
        row["requests"],
        row["issued"],
        row["completed"],
        min(known),
        max(known),
        row["first_scheduled"],
        row["last_scheduled"],
        *seconds,
    )
