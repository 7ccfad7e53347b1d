"""Requests, bytes and duration of a whole run, counted as in the run's own statistics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ibis.expr.types as ir


@dataclass(frozen=True)
class Work:
    """Requests, bytes moved, and seconds; 0 seconds if nothing took time."""

    requests: int
    data: int
    seconds: float


def work(table: ir.Table) -> Work:
    """The completed requests, with or without error, from the first request's time to the last completion."""
    return _work(table, table.completed_ns)


def demand(table: ir.Table) -> Work:
    """The requests of a load, from its first request to its last."""
    return _work(table, table.scheduled_ns)


def _work(table: ir.Table, end: ir.IntegerColumn) -> Work:
    # As float64: exact up to 9 PB, and no overflow beyond 9 EB.
    row = (
        table.aggregate(
            n=end.count(),
            data=table.bytes_moved.cast("float64").sum(),
            first=table.scheduled_ns.min(),
            last=end.max(),
        )
        .to_pyarrow()
        .to_pylist()[0]
    )
    length = (row["last"] - row["first"]) / 1e9 if row["n"] else 0.0
    return Work(row["n"], int(row["data"] or 0), max(length, 0.0))
