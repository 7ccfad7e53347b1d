"""What a box in a diagram selects: which requests, the slowest of them, and those in flight beside these."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from iosonar.view.figures import MEASURE_OF, Figures
from iosonar.view.lattice import Window
from iosonar.view.requests import Requests, never
from iosonar.view.scales import SECTOR, Kind, Measure, Order

AT_ONCE = 1 << 20
SLOWEST = 10
NEIGHBOURS = 10
NANO = 10**9
SQL_COLUMNS = {"latency": "latency_ns", "delay": "delay_ns", "sector": "sector"}


@dataclass(frozen=True)
class Box:
    """Ranges of time, in ns, and of a value, in the unit of its column; without a measure, only of time."""

    order: Order
    from_ns: int
    to_ns: int
    measure: Measure | None = None
    low: int | None = None
    high: int | None = None

    @classmethod
    def of(cls, figures: Figures, name: str, window: Window) -> Box:
        """The box of a window. A window that reaches an end of the value's axis is not bounded there."""
        measure, (_, axis) = MEASURE_OF.get(name), figures.axes(name)
        low, high = math.ceil(window.x_low * NANO), math.ceil(window.x_high * NANO)
        if measure is None:
            return cls(Order.ISSUE, low, high)
        each = NANO if measure.is_log else 1 / SECTOR
        near = 1e-9 * (axis.high - axis.low)
        return cls(
            measure.order,
            low,
            high,
            measure,
            None if window.y_low <= axis.low + min(near, 1e-9 * axis.low or near) else math.ceil(window.y_low * each),
            None if window.y_high >= axis.high - near else math.floor(window.y_high * each),
        )

    def sql(self, *, is_run: bool) -> str:
        """The same as a condition for `iosonar sql`."""
        time = "completed_ns" if self.order is Order.COMPLETION else "issued_ns" if is_run else "at_ns"
        parts = [f"{time} >= {self.from_ns}", f"{time} < {self.to_ns}"]
        if self.measure:
            column = SQL_COLUMNS[self.measure.column]
            parts += [f"{column} >= {self.low}"] if self.low is not None else []
            parts += [f"{column} <= {self.high}"] if self.high is not None else []
            if self.low is None and self.high is None and column == "latency_ns":
                parts.append("latency_ns IS NOT NULL")
        return " AND ".join(parts)

    def rows(self, requests: Requests) -> Iterator[NDArray[np.int64]]:
        """The rows of the requests in it, some at a time."""
        part = requests.between(Order.ISSUE, self.from_ns, self.to_ns)
        first = part.start
        if self.order is Order.COMPLETION:
            longest = requests.ranges["latency"][1]
            first = requests.between(Order.ISSUE, self.from_ns - longest - 1, self.to_ns).start
        for start in range(first, part.stop, AT_ONCE):
            some = slice(start, min(start + AT_ONCE, part.stop))
            chosen = np.ones(some.stop - some.start, np.bool_)
            latency = requests.latency[some]
            if self.order is Order.COMPLETION:
                end = requests.begin[some] + latency.astype(np.int64)
                chosen &= (end >= self.from_ns) & (end < self.to_ns)
            if self.measure:
                values = getattr(requests, self.measure.column)[some]
                if self.measure.column == "latency":
                    chosen &= latency != never(latency)
                if self.low is not None:
                    chosen &= values >= self.low
                if self.high is not None:
                    chosen &= values <= self.high
            yield start + np.flatnonzero(chosen)


def selected(requests: Requests, box: Box) -> dict[str, Any]:
    """What is in a box, and what was in flight beside its slowest request."""
    by_kind, moved, total, completed = np.zeros(len(Kind), np.int64), 0, 0, 0
    slowest = np.empty(0, np.int64)
    for rows in box.rows(requests):
        by_kind += np.bincount(requests.kind[rows], minlength=len(Kind))
        moved += int(requests.sectors[rows].astype(np.int64).sum()) * SECTOR
        slowest = _slowest(requests, np.concatenate([slowest, rows]))
        latency = requests.latency[rows]
        latency = latency[latency != never(latency)]
        total, completed = total + int(latency.astype(np.int64).sum()), completed + len(latency)
    count = int(by_kind.sum())
    found: dict[str, Any] = {
        "count": count,
        "share": count / len(requests),
        "kinds": {kind.name.lower(): int(number) for kind, number in zip(Kind, by_kind, strict=True) if number},
        "bytes": moved,
        "mean_latency": total / completed / NANO if completed else None,
        "slowest": [request(requests, row) for row in slowest.tolist()],
    }
    if len(slowest):
        row = int(slowest[0])
        begin = int(requests.begin[row])
        others = requests.overlapping(begin, begin + int(requests.latency[row]))
        others = others[others != row]
        before = others[requests.begin[others] <= begin]
        found["beside"] = {
            "of": request(requests, row),
            "count": len(others),
            "before": len(before),
            "slowest": [request(requests, each) for each in _slowest(requests, others)[:NEIGHBOURS].tolist()],
        }
    return found


def _slowest(requests: Requests, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    latency = requests.latency[rows]
    rows, latency = rows[latency != never(latency)], latency[latency != never(latency)]
    if len(rows) > 4 * SLOWEST:
        few = np.argpartition(latency, len(rows) - SLOWEST)[-SLOWEST:]
        rows, latency = rows[few], latency[few]
    found: NDArray[np.int64] = rows[np.argsort(latency, kind="stable")[::-1][:SLOWEST]]
    return found


def request(requests: Requests, row: int) -> dict[str, Any]:
    """What the index knows of a request; times in seconds."""
    latency = int(requests.latency[row])
    begin, delay = int(requests.begin[row]), int(requests.delay[row])
    completes = latency != never(requests.latency)
    return {
        "row": row,
        "place": int(requests.place[row]),
        "kind": Kind(int(requests.kind[row])).name.lower(),
        "offset": int(requests.sector[row]) * SECTOR,
        "size": int(requests.sectors[row]) * SECTOR,
        "due": (begin - delay) / NANO,
        "issued": begin / NANO,
        "completed": (begin + latency) / NANO if completes else None,
        "latency": latency / NANO if completes else None,
        "delay": delay / NANO,
    }
