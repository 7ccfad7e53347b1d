"""The requests of each stream of a program: number, operations, data, latency, delay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from iosonar.quantities.distribution import Distribution, distributions, pooled

if TYPE_CHECKING:
    import ibis.expr.types as ir

WITHIN_US = (10, 50)


@dataclass(frozen=True)
class StreamValues:
    """The requests of a stream, whatever their outcome; `data` are the bytes that they moved.

    `latency` and `delay` are in ns.
    """

    requests: int
    reads: int
    writes: int
    data: int
    latency: Distribution
    delay: Distribution


@dataclass(frozen=True)
class CauseValues:
    """The requests of a stream that waited for another one and were issued.

    A request is scheduled when the one that it waits for has completed, so the time from cause to issue is its delay,
    in ns. The shares within 10 and 50 µs are of those that were not held back (see `not_held_back`); NaN without any.
    """

    delay: Distribution
    not_held_back: int
    within_10_us: float
    within_50_us: float


def stream_values(table: ir.Table) -> dict[int, StreamValues]:
    """The values of each stream by its number, which is the column `series`."""
    op = table["op"]
    counted = (
        table.group_by("series")
        .aggregate(
            n=table.count(),
            reads=(op == "read").sum(),
            writes=(op == "write").sum(),
            # As float64: no overflow beyond 9 EB.
            data=table.bytes_moved.cast("float64").sum(),
        )
        .order_by("series")
        .to_pyarrow()
        .to_pylist()
    )
    latencies, delays = distributions(table, table.latency_ns), distributions(table, table.delay_ns)
    nothing = pooled([])
    return {
        row["series"]: StreamValues(
            row["n"],
            row["reads"],
            row["writes"],
            int(row["data"] or 0),
            latencies.get(row["series"], nothing),
            delays.get(row["series"], nothing),
        )
        for row in counted
    }


def cause_values(table: ir.Table) -> dict[int, CauseValues]:
    """The time from the completion of its cause to the issue of each request that has one, for each stream."""
    caused = table.filter(table.cause.notnull() & table.issued_ns.notnull())
    own = caused.filter(caused.not_held_back)
    counted = (
        own.group_by("series")
        .aggregate(n=own.count(), **{f"within_{us}": (own.delay_ns <= us * 1000).sum() for us in WITHIN_US})
        .to_pyarrow()
        .to_pylist()
    )
    rows = {row["series"]: row for row in counted}
    found = {}
    for number, delay in distributions(caused, caused.delay_ns).items():
        row = rows.get(number, {"n": 0})
        shares = [row[f"within_{us}"] / row["n"] if row["n"] else float("nan") for us in WITHIN_US]
        found[number] = CauseValues(delay, row["n"], *shares)
    return found
