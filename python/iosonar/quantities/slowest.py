"""The slowest requests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import ibis.expr.types as ir

COLUMNS = ("source", "request", "device", "issued_ns", "op", "sector", "sectors", "latency_ns", "delay_ns")
MORE = ("outcome", "stream", "queued_ns", "pid", "process")


def slowest(table: ir.Table, count: int) -> list[dict[str, Any]]:
    """The requests with the highest latencies, the slowest first; of equal ones, the first issued."""
    import ibis

    known = table.filter(table.latency_ns.notnull()).select(*COLUMNS, *MORE)
    order = [ibis.desc("latency_ns"), known.issued_ns, known.source, known.request]
    rows: list[dict[str, Any]] = known.order_by(order).limit(count).to_pyarrow().to_pylist()
    return rows


def of_numbers(table: ir.Table, requests: Sequence[int]) -> dict[int, dict[str, Any]]:
    """The requests of a load with these numbers: their latency and process."""
    chosen = table.filter(table.request.isin(list(requests)))
    rows = chosen.select("request", "latency_ns", "pid", "process").to_pyarrow().to_pylist()
    return {row["request"]: row for row in rows}
