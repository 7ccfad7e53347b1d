"""Slow requests that overlap each other in time, as one wait: a stall, or a queue that formed and went away."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from iosonar.quantities.batches import array_of

if TYPE_CHECKING:
    import ibis.expr.types as ir


@dataclass(frozen=True)
class Slow:
    """The requests with at least some latency, by their issue: times in ns."""

    issued_ns: NDArray[np.int64]
    completed_ns: NDArray[np.int64]

    @property
    def latency_ns(self) -> NDArray[np.int64]:
        """From issue to completion."""
        return self.completed_ns - self.issued_ns


@dataclass(frozen=True)
class Waits:
    """Each wait: from the issue of its first slow request to the completion of the last, and its highest latency.

    `requests` is the number of its slow requests.
    """

    begin_ns: NDArray[np.int64]
    end_ns: NDArray[np.int64]
    peak_ns: NDArray[np.int64]
    requests: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.begin_ns)

    def chosen(self, which: NDArray[np.bool_]) -> Waits:
        """Some of them."""
        return Waits(self.begin_ns[which], self.end_ns[which], self.peak_ns[which], self.requests[which])


def slower_than(table: ir.Table, limit_ns: float) -> Slow:
    """The requests with at least that latency."""
    rows = table.filter(table.latency_ns >= int(limit_ns)).select("issued_ns", "completed_ns").to_pyarrow()
    issued, completed = array_of(rows["issued_ns"]), array_of(rows["completed_ns"])
    order = np.argsort(issued, kind="stable")
    return Slow(issued[order], completed[order])


def waits(slow: Slow, limit_ns: float = 0.0) -> Waits:
    """Those of the slow requests with at least that latency."""
    chosen = slow.latency_ns >= limit_ns
    issued, completed = slow.issued_ns[chosen], slow.completed_ns[chosen]
    if not len(issued):
        nothing = np.zeros(0, np.int64)
        return Waits(nothing, nothing, nothing, nothing)
    until = np.maximum.accumulate(completed)
    first = np.flatnonzero(np.concatenate([[True], issued[1:] > until[:-1]]))
    requests = np.diff(np.append(first, len(issued)))
    return Waits(
        issued[first], np.maximum.reduceat(completed, first), np.maximum.reduceat(completed - issued, first), requests
    )
