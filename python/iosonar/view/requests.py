"""The requests of a run, sorted by time, and how to find those of a window."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from iosonar.view.scales import Measure, Order

BLOCK = 1024
"""Requests whose last completion is known."""

MAX_SEARCHES = 4096
"""So many times, or fewer, are searched for by the samples."""


@dataclass
class Requests:
    """Requests that were issued: a row each, in the order of issue. Times are in ns; arrays may be mapped files.

    `latency` is `never(latency)` where a request did not complete. `place` is a request's row in its file. The columns
    with `of_end` are sorted by completion, and have only requests that completed.
    """

    begin: NDArray[np.int64]
    latency: NDArray[Any]
    delay: NDArray[Any]
    sector: NDArray[Any]
    sectors: NDArray[Any]
    kind: NDArray[np.uint8]
    place: NDArray[Any]
    end: NDArray[np.int64]
    latency_of_end: NDArray[Any]
    kind_of_end: NDArray[np.uint8]
    last_end: NDArray[np.int64]
    """The last completion of each BLOCK of requests, in the order of issue."""
    low_ns: int = 0
    high_ns: int = 1
    """The time axis."""
    top: int = 1
    """The sector after the last one."""
    not_issued: int = 0
    samples: dict[Order, NDArray[np.int64]] = field(default_factory=dict)
    """Of large tables, each BLOCK-th time: a search then touches one page of a mapped file, not one for each step."""
    ranges: dict[str, tuple[int, int]] = field(default_factory=dict)
    """The least positive and the greatest value of each column."""

    def __len__(self) -> int:
        return len(self.begin)

    def between(self, order: Order, low_ns: int, high_ns: int) -> slice:
        """The requests issued or completed from one time to before another."""
        first, last = self.before(order, np.array([low_ns, high_ns]))
        return slice(int(first), int(last))

    def before(self, order: Order, times_ns: NDArray[np.int64], *, with_equal: bool = False) -> NDArray[np.int64]:
        """How many requests were issued or completed before each of these times, or until them."""
        times, side = self.begin if order is Order.ISSUE else self.end, "right" if with_equal else "left"
        sample = self.samples.get(order)
        if sample is None or len(times_ns) > MAX_SEARCHES:
            return np.searchsorted(times, times_ns, side=side)  # type: ignore[call-overload,no-any-return]
        firsts = np.maximum(np.searchsorted(sample, times_ns, side=side) - 1, 0) * BLOCK  # type: ignore[call-overload]
        found = np.empty(len(times_ns), np.int64)
        for number, (first, at) in enumerate(zip(firsts.tolist(), times_ns.tolist(), strict=True)):
            found[number] = first + np.searchsorted(_block(times, first), at, side=side)  # type: ignore[call-overload]
        return found

    def times(self, order: Order, part: slice) -> NDArray[np.int64]:
        """The times of some requests in their order."""
        return (self.begin if order is Order.ISSUE else self.end)[part]

    def values(self, measure: Measure, part: slice) -> NDArray[Any]:
        """The values of some requests, in the measure's order."""
        if measure.order is Order.COMPLETION:
            return self.latency_of_end[part]
        found: NDArray[Any] = getattr(self, measure.column)[part]
        return found

    def kinds(self, order: Order, part: slice) -> NDArray[np.uint8]:
        """The series of some requests."""
        return (self.kind if order is Order.ISSUE else self.kind_of_end)[part]

    def in_flight(self, times_ns: NDArray[np.int64]) -> NDArray[np.int64]:
        """How many requests are in flight at these times."""
        issued = self.before(Order.ISSUE, times_ns, with_equal=True)
        return issued - self.before(Order.COMPLETION, times_ns, with_equal=True)

    def overlapping(self, low_ns: int, high_ns: int) -> NDArray[np.int64]:
        """The rows of requests that are in flight at some time of a window, in the order of issue."""
        part = self.between(Order.ISSUE, low_ns, high_ns)
        blocks = np.flatnonzero(self.last_end[: -(-part.start // BLOCK)] >= low_ns) * BLOCK
        earlier = [self._alive(first, min(first + BLOCK, part.start), low_ns) for first in blocks.tolist()]
        return np.concatenate([*earlier, np.arange(part.start, part.stop)])

    def _alive(self, first: int, last: int, at_ns: int) -> NDArray[np.int64]:
        latency = self.latency[first:last]
        # Those that never completed may have been in flight until the run ended, or not.
        alive = (latency != never(latency)) & (self.begin[first:last] + latency.astype(np.int64) >= at_ns)
        return first + np.flatnonzero(alive)


def never(latencies: NDArray[Any]) -> int:
    """The latency that stands for none."""
    return int(np.iinfo(latencies.dtype).max)


def last_ends(begin: NDArray[np.int64], latency: NDArray[Any]) -> NDArray[np.int64]:
    """The last completion of each block."""
    if not len(begin):
        return np.empty(0, np.int64)
    ends = np.where(latency == never(latency), np.iinfo(np.int64).min, begin + latency.astype(np.int64))
    found: NDArray[np.int64] = np.maximum.reduceat(ends, np.arange(0, len(ends), BLOCK))
    return found


def _block(times: NDArray[np.int64], first: int) -> NDArray[np.int64]:
    """A block of times, read: to map it would map megabytes around it."""
    if isinstance(times, np.memmap) and times.filename:
        with suppress(OSError):
            found: NDArray[np.int64] = np.fromfile(
                times.filename, times.dtype, BLOCK, offset=times.offset + first * times.itemsize
            )  # type: ignore[assignment]
            return found
    return times[first : first + BLOCK]
