"""Compares the latency of the same requests in two groups of runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from iosonar.quantities.outcomes import FAILED

if TYPE_CHECKING:
    import ibis.expr.types as ir


@dataclass(frozen=True)
class Pairs:
    """Requests completed on both sides, the median of b ÷ a of their latencies, and the share slower in b.

    A side's latency of a request is the median over its runs.
    """

    requests: int
    median_ratio: float
    slower_share: float


def pairs(a: ir.Table, b: ir.Table) -> Pairs | None:
    """Compares requests by their number and iteration; None if no request is in both."""
    sides = [_by_request(table).rename({f"log_{name}": "log"}) for name, table in (("a", a), ("b", b))]
    joined = sides[0].join(sides[1], ["request", "iteration"])
    change = joined.log_b - joined.log_a
    row = (
        joined.aggregate(n=joined.count(), median=change.median(), slower=(change > 0).mean())
        .to_pyarrow()
        .to_pylist()[0]
    )
    if not row["n"]:
        return None
    return Pairs(row["n"], 10 ** row["median"], row["slower"])


def without_failures(table: ir.Table) -> ir.Table:
    """The requests that did not fail: the latency of an error is no latency of the storage."""
    return table.filter(~table.outcome.isin(FAILED).fill_null(False))


def _by_request(table: ir.Table) -> ir.Table:
    import ibis

    completed = table.filter(table.latency_ns.notnull())
    log = ibis.greatest(completed.latency_ns, 1).cast("float64").log10()
    return completed.group_by("request", "iteration").aggregate(log=log.median())


def latencies_of_both(original: ir.Table, run: ir.Table) -> ir.Table:
    """The requests of a run that completed, also in the original: with `original_ns`, the latency there."""
    known = original.filter(original.latency_ns.notnull()).select("request", original_ns=original.latency_ns)
    return run.filter(run.latency_ns.notnull()).join(known, "request")
