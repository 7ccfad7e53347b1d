"""What several detectors of requests need of a run, computed once: its course, its usual latency, its waits."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from iosonar.quantities.distribution import Distribution
from iosonar.quantities.recurrence import Recurrence, recurrence
from iosonar.quantities.stretches import ServiceRates, Stretch, service_rates, stretches
from iosonar.quantities.timeline import Op, Timeline, timeline
from iosonar.quantities.waits import Slow, Waits, slower_than, waits
from iosonar.study.base import cached
from iosonar.study.requests import LATENCY, Study

MAX_SLOW = 200_000
"""The most slow requests in memory."""

MAX_WAITS = 20_000
"""More waits than that are the usual course of a run."""

STEPS = 8
"""Limits of latency that are tried, each half of the one before."""

SIGNIFICANT = 1e-4
"""The chance below which something is no coincidence."""

REGULAR, COVERED = 0.9, 0.7
"""The regularity and the coverage of what recurs."""

LEAST_COVERED = 0.1
"""With less coverage, it is not looked up how many periods had requests."""


@cached
def timeline_of(study: Study) -> Timeline:
    """The course of the whole run. Requests that were dropped are no demand on the storage."""
    table = study.table.filter(study.table.issued_ns.notnull()) if study.requests.is_run else study.table
    return timeline(table, study.span.first_ns, study.span.last_ns, study.span.requests)


@dataclass(frozen=True)
class Usual:
    """The usual latency of a run, in ns, whatever the slowest tenth did."""

    p50: float
    p75: float
    p90: float
    requests: int

    @property
    def highest(self) -> float:
        """The highest latency to expect of so many requests, if latencies have an exponential tail, as of queues."""
        slope = (self.p90 - self.p50) / math.log(5)
        return self.p90 + slope * max(math.log(max(self.requests, 10) / 10), 0.0)


@cached
def usual_of(study: Study) -> Usual | None:
    """None for few requests."""
    found = study.pooled(LATENCY)
    if found.count < 100:
        return None
    p50, p75, p90 = (max(found.quantile(share), 1.0) for share in (0.5, 0.75, 0.9))
    return Usual(p50, p75, p90, found.count)


def limit_with(found: Distribution, most: int) -> float:
    """The lowest latency that at most so many requests have or exceed, as far as the bins tell."""
    above = np.cumsum(found.counts[::-1])
    fit = int(np.searchsorted(above, most, side="right"))
    return float(found.minima[::-1][fit - 1]) if fit else math.inf


@cached
def slow_of(study: Study) -> Slow | None:
    """The requests that took much longer than usual; None if there are none."""
    usual = usual_of(study)
    if usual is None:
        return None
    found = study.pooled(LATENCY)
    limit = max(3 * usual.p50, 1.5 * usual.p75, limit_with(found, MAX_SLOW))
    if found.maximum < limit:
        return None
    slow = slower_than(study.table, limit)
    return slow if len(slow.issued_ns) else None


@dataclass(frozen=True)
class Stalls:
    """Waits that recur: in time, or with the bytes that were written."""

    waits: Waits
    limit_ns: float
    in_time: Recurrence | None
    in_bytes: Recurrence | None

    @property
    def by_bytes(self) -> bool:
        """Whether they follow the bytes written rather than the clock."""
        if self.in_bytes is None or not is_regular(self.in_bytes):
            return False
        return self.in_time is None or not is_regular(self.in_time) or 2 * self.in_bytes.jitter < self.in_time.jitter


def is_regular(found: Recurrence) -> bool:
    """Whether a recurrence is no coincidence."""
    return found.regularity >= REGULAR and found.coverage >= COVERED and found.chance < SIGNIFICANT


@cached
def stalls_of(study: Study) -> Stalls | None:
    """The most regular waits of a run; None if none recur."""
    slow = slow_of(study)
    if slow is None:
        return None
    course, best, best_of = timeline_of(study), None, 0.0
    lowest = float(slow.latency_ns.min())
    for step in range(1, STEPS + 1):
        limit = float(slow.latency_ns.max()) / 2**step
        if limit < lowest:
            break
        found = waits(slow, limit)
        if len(found) > MAX_WAITS:
            break
        begin_s = found.begin_ns / 1e9
        in_time = _of_possible(study, recurrence(begin_s), found, limit)
        written = course.until(course.written[Op.WRITE], begin_s)
        in_bytes = recurrence(written) if written[-1:] > 0 else None
        each = Stalls(found, limit, in_time, in_bytes)
        regular = [one for one in (in_time, in_bytes) if one and is_regular(one)]
        quality = max((one.regularity * one.coverage * len(found) ** 0.25 for one in regular), default=0.0)
        if quality > best_of:
            best, best_of = each, quality
    return best


def _of_possible(study: Study, found: Recurrence | None, each: Waits, limit_ns: float) -> Recurrence | None:
    """With the coverage of those periods in which requests came that a stall would have made wait so long.

    Under a load with pauses, many stalls meet no request.
    """
    if found is None or not LEAST_COVERED <= found.coverage < COVERED or found.regularity < REGULAR:
        return found
    period = found.period * 1e9
    start = found.phase * 1e9 - period / 4
    begins, ends = (np.mod(at - start, period) for at in (each.begin_ns, each.end_ns))
    low, high = float(begins.min()), float(np.median(ends)) - limit_ns
    first, last = round(each.begin_ns[0]), round(each.begin_ns[-1] + period / 4)
    if high <= low or (last - first) / period > MAX_WAITS:
        return found
    rows = study.table.filter(study.table.issued_ns.between(first, last))
    turns = (rows.issued_ns.cast("float64") - start) / period
    turn = turns.floor()
    rows = rows.mutate(turn=turn.cast("int64"), part=turns - turn)
    met = rows.filter((rows.part >= low / period) & (rows.part <= high / period)).turn.nunique().to_pyarrow().as_py()
    return replace(found, coverage=min(found.coverage * (round((last - first) / period) + 1) / max(met, 1), 1.0))


def due_ratio(study: Study, begin_s: NDArray[np.float64], end_s: NDArray[np.float64]) -> float:
    """How many times as many requests per second are due in some stretches of time as in the whole run."""
    course = timeline_of(study)
    due = course.due.sum(axis=0)
    whole = float(due.sum()) / max(float(course.edges_s[-1] - course.edges_s[0]), 1e-9)
    inside = float((course.until(due, end_s) - course.until(due, begin_s)).sum())
    return inside / max(float((end_s - begin_s).sum()), 1e-9) / max(whole, 1e-9)


def sql_ns(study: Study, at_s: float) -> int:
    """A time on the axes of diagrams as it is in the rows of `iosonar sql`."""
    return round(at_s * 1e9) + study.origin_ns


def between(study: Study, from_s: float, to_s: float, column: str = "issued_ns") -> str:
    """A condition of `iosonar sql`: a time within a stretch."""
    return f"{column} BETWEEN {sql_ns(study, from_s)} AND {sql_ns(study, to_s)}"


def without_latency(study: Study) -> str:
    """Why findings on latency cannot be looked for."""
    return "" if study.completed >= FEWEST else f"fewer than {FEWEST} requests have a latency"


def without_demand(study: Study) -> str:
    """Why findings on what the load demanded cannot be looked for."""
    if study.requests.is_run and study.has_demand:
        return without_latency(study)
    return "the load set no times" if study.requests.is_run else "a load was not replayed"


FEWEST = 200
"""Fewer requests with a latency show nothing."""


@cached
def stretches_of(study: Study) -> list[Stretch]:
    """Stretches of the run, complete."""
    span = study.span
    return stretches(study.table, span.first_ns, span.last_ns, span.requests)


@cached
def rates_of(study: Study) -> list[ServiceRates]:
    """How fast requests completed with so many in flight, in each part of the run."""
    return [rates for part in stretches_of(study) for rates in service_rates(part)]


@dataclass(frozen=True)
class Course:
    """Means of windows of the course of a run: latencies of an operation, and written bytes up to each window."""

    from_s: NDArray[np.float64]
    width_s: float
    log: NDArray[np.float64]
    """The mean logarithm of latency in ns."""
    written: NDArray[np.float64]
    due: NDArray[np.float64]
    """Requests of all operations per second."""


def course_of(study: Study, op: Op, count: int = 200) -> Course:
    """The windows with enough requests of an operation."""
    course = timeline_of(study)
    step = max(course.cells // count, 1)
    known, logs = course.joined(course.known[op], step), course.joined(course.logs[op], step)
    edges = course.edges_s[: len(known) * step + 1 : step]
    chosen = known >= 5
    due = course.joined(course.due.sum(axis=0), step) / (step * course.width_s)
    written = course.until(course.written[Op.WRITE], edges[:-1])
    return Course(
        edges[:-1][chosen],
        step * course.width_s,
        logs[chosen] / known[chosen],
        written[chosen],
        due[chosen],
    )


def at_depth(study: Study, depth: int) -> str:
    """A condition of `iosonar sql`: at least so many in flight, as far as the files say; else all with a latency."""
    known = all("in_flight" in file.known_columns for file in study.files)
    return f"in_flight >= {depth}" if known else "latency_ns IS NOT NULL"
