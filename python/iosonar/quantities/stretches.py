"""Requests of a few stretches of time, complete and in memory, for questions about what was in flight together.

All requests of small runs; of large ones, stretches at equal distances.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from iosonar.quantities.batches import array_of

if TYPE_CHECKING:
    import ibis.expr.types as ir

ROWS = 300_000
STRETCHES = 4


@dataclass(frozen=True)
class Stretch:
    """Completed requests in the order of their issue; times in ns."""

    issued_ns: NDArray[np.int64]
    completed_ns: NDArray[np.int64]
    sector: NDArray[np.int64]
    sectors: NDArray[np.int64]
    is_read: NDArray[np.bool_]
    moved: NDArray[np.bool_]

    @property
    def is_write(self) -> NDArray[np.bool_]:
        """Requests that write data."""
        found: NDArray[np.bool_] = self.moved & ~self.is_read
        return found

    @property
    def latency_ns(self) -> NDArray[np.int64]:
        """From issue to completion."""
        return self.completed_ns - self.issued_ns

    def in_flight(self, chosen: NDArray[np.bool_] | None = None) -> NDArray[np.int64]:
        """How many of the chosen requests were in flight when each request was issued, without itself."""
        begin, end = self.issued_ns, self.completed_ns
        own = np.ones(len(begin), bool) if chosen is None else chosen
        # Of requests issued at the same time, each later one counts the earlier ones.
        before = np.cumsum(own) - own
        ended = np.searchsorted(np.sort(end[own]), begin, side="right")
        found: NDArray[np.int64] = np.maximum(before - ended, 0)
        return found


def stretches(table: ir.Table, low_ns: int, high_ns: int, rows: int) -> list[Stretch]:
    """Stretches of a table with the columns of `narrow`, with about ROWS requests together."""
    known = table.filter(table.latency_ns.notnull())
    if rows <= ROWS:
        return [_read(known)]
    width = (high_ns - low_ns) // STRETCHES
    part = int(width * ROWS / rows)
    found = []
    for number in range(STRETCHES):
        first = low_ns + number * width + (width - part) // 2
        found.append(_read(known.filter((known.issued_ns >= first) & (known.issued_ns < first + part)).limit(2 * ROWS)))
    return [each for each in found if len(each.issued_ns)]


def _read(rows: ir.Table) -> Stretch:
    names = ("issued_ns", "completed_ns", "sector", "sectors", "is_read", "moved")
    found = rows.select(*names).to_pyarrow()
    columns = [array_of(found[name]) for name in names]
    order = np.argsort(columns[0], kind="stable")
    return Stretch(*(column[order] for column in columns))


@dataclass(frozen=True)
class ServiceRates:
    """For each number of requests in flight: how long it lasted, and how many requests completed meanwhile."""

    seconds: NDArray[np.float64]
    completed: NDArray[np.float64]

    def mean_depth(self, low: int, high: int) -> float:
        """The mean number of requests in flight, over the time with `low` to below `high`; `low` if there is none."""
        seconds = self.seconds[low:high]
        return float(np.average(np.arange(low, low + len(seconds)), weights=seconds)) if seconds.sum() > 0 else low

    def between(self, low: int, high: int) -> tuple[float, float]:
        """Completions per second with `low` to below `high` requests in flight, and their number."""
        seconds, number = float(self.seconds[low:high].sum()), float(self.completed[low:high].sum())
        return (number / seconds if seconds > 0 else 0.0), number


MAX_DEPTH = 4096

LARGE, LARGE_SECTORS = 16, 2048
"""A large request has so many times the usual size, and at least so many sectors."""


def service_rates(part: Stretch) -> tuple[ServiceRates, ServiceRates]:
    """How fast requests completed with so many in flight, up to the moment with the most of them, and from then on.

    More than MAX_DEPTH count as that. Times with a large request, a flush or a discard in flight are left out: others
    wait behind it.
    """
    usual = float(np.median(part.sectors)) if len(part.sectors) else 0.0
    is_ahead = (part.sectors > max(LARGE * usual, LARGE_SECTORS)) | ~part.moved
    ahead = np.concatenate([is_ahead.astype(np.int64), -is_ahead.astype(np.int64)])
    at = np.concatenate([part.issued_ns, part.completed_ns])
    step = np.concatenate([np.ones(len(part.issued_ns), np.int64), -np.ones(len(part.issued_ns), np.int64)])
    # At the same time, ends come first.
    order = np.lexsort((step, at))
    at, step, ahead = at[order], step[order], ahead[order]
    depth = np.clip(np.cumsum(step) - step, 0, MAX_DEPTH)
    lasts = np.diff(at, append=at[-1:]) / 1e9
    beside = np.cumsum(ahead) - ahead > 0
    middle = int(np.argmax(np.where(beside, -1, depth)))

    def rates(chosen: slice) -> ServiceRates:
        # The level before an event lasted since the event before.
        before = np.where(beside, 0.0, np.concatenate([[0.0], lasts[:-1]]))[chosen]
        ends = (step[chosen] < 0) & ~beside[chosen]
        return ServiceRates(
            np.bincount(depth[chosen], before, MAX_DEPTH + 1).astype(np.float64),
            np.bincount(depth[chosen][ends], minlength=MAX_DEPTH + 1).astype(np.float64),
        )

    return rates(slice(0, middle + 1)), rates(slice(middle + 1, None))


def together(parts: list[ServiceRates]) -> ServiceRates:
    """The sums of several parts."""
    nothing = np.zeros(MAX_DEPTH + 1)
    return ServiceRates(
        np.sum([nothing, *(part.seconds for part in parts)], axis=0),
        np.sum([nothing, *(part.completed for part in parts)], axis=0),
    )
