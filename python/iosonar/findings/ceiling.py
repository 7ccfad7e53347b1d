"""A flat ceiling of the rate: what limits of requests or bytes per second look like."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from iosonar.findings.course import timeline_of
from iosonar.quantities.timeline import Op
from iosonar.study.base import cached
from iosonar.study.requests import LATENCY, Study

COMPLETIONS = 60
"""Completions in a window on average, at least."""

WINDOWS = 240
WAITING = 5
"""The fewest requests that wait or are in flight for a window to count as limited."""

FLAT = 0.12
"""The variance of completions in a window, as a share of that of independent ones."""

LONG, STEADY = 8, 0.02
"""So many windows in a row; the variance of their completions, as a share of that of independent ones."""

SLICES_S = 1.0
"""The kernel's limits let requests through in slices of 100 ms: windows of reads or writes last at least so long."""

SHARE = 0.15
"""The least share of the completions that reads, and writes, have: else their ceilings are not looked for."""

IDLE = 0.7
"""With so little to do at once, a device that needs no more than its fastest latency for each request would be idle
part of the time."""


@dataclass(frozen=True)
class Windows:
    """The course of a run in windows: completions and bytes per second, and whether more was wanted all the time."""

    from_s: NDArray[np.float64]
    width_s: float
    done: NDArray[np.float64]
    bytes: NDArray[np.float64]
    due: NDArray[np.float64]
    wanted: NDArray[np.bool_]


@cached
def windows_of(study: Study) -> Windows | None:
    """None for few requests."""
    course = timeline_of(study)
    done = course.completed.sum(axis=0)
    total = float(done.sum())
    if total < 10 * COMPLETIONS:
        return None
    step = max(int(np.ceil(COMPLETIONS * course.cells / total)), course.cells // WINDOWS, 1)
    width_s = step * course.width_s
    joined = course.joined(done, step)
    return Windows(
        course.edges_s[: len(joined) * step : step],
        width_s,
        joined / width_s,
        course.joined(course.completed_bytes[: Op.OTHER].sum(axis=0), step) / width_s,
        course.joined(course.due.sum(axis=0), step) / width_s,
        _wanted(study, step, len(joined)),
    )


def _wanted(study: Study, step: int, windows: int) -> NDArray[np.bool_]:
    """Whether requests waited or were in flight all the time, for each window of so many cells."""
    course = timeline_of(study)
    backlog = course.backlog if study.has_demand else course.in_flight.sum(axis=0)
    least = backlog[: windows * step].reshape(windows, step).min(axis=1)
    wanted: NDArray[np.bool_] = least >= (WAITING if study.has_demand else 1)
    return wanted


@dataclass(frozen=True)
class Ceiling:
    """A rate at which completions stay while more is wanted.

    `of_bytes` is whether bytes per second are the limit. `spread` is the standard deviation as a share of the rate,
    `idle` whether the device would be partly idle at this rate.
    """

    rate: float
    of_bytes: bool
    spread: float
    idle: bool
    windows: int
    op: str = ""
    """`reads` or `writes`, if only these have it."""


def ceilings_by_op(study: Study) -> list[Ceiling]:
    """The ceilings of reads and of writes, where each has its own limit; none unless there are many of both.

    What a busy device completes of one of them varies by chance, as the other takes part of its time.
    """
    course = timeline_of(study)
    total, fastest_s = float(course.completed.sum()), max(study.pooled(LATENCY).minimum, 1.0) / 1e9
    many = [(course.completed[op], name) for op, name in ((Op.READ, "reads"), (Op.WRITE, "writes"))]
    if any(done.sum() < max(SHARE * total, 10 * COMPLETIONS) for done, _ in many):
        return []
    found = []
    for done, name in many:
        step = int(np.ceil(max(COMPLETIONS * course.cells / done.sum(), SLICES_S / course.width_s)))
        number = course.joined(done, step)
        number = number[_wanted(study, step, len(number))]
        middle = float(np.median(number)) if len(number) >= 8 else 0.0
        if not middle or _variance(number) > FLAT * middle or _variance(number) ** 0.5 > 0.05 * middle:
            continue
        rate = middle / (step * course.width_s)
        if rate * fastest_s < IDLE:
            spread = _variance(number) ** 0.5 / middle
            found.append(Ceiling(rate, False, spread, True, len(number), name))
    return found


def ceiling(study: Study, found: Windows, chosen: NDArray[np.bool_]) -> Ceiling | None:
    """The ceiling of some windows; None if their rates are not flat."""
    if chosen.sum() < 8:
        return None
    done, data = found.done[chosen], found.bytes[chosen]
    rate, moved = float(np.median(done)), float(np.median(data))
    if not rate > 0:
        return None
    number = done * found.width_s
    dispersion = _variance(number) / max(float(np.median(number)), 1e-9)
    spread, of_data = _variance(done) ** 0.5 / rate, _variance(data) ** 0.5 / max(moved, 1e-9)
    fastest_s = max(study.pooled(LATENCY).minimum, 1.0) / 1e9
    idle = rate * fastest_s < IDLE
    if of_data < 0.05 and of_data < 0.5 * spread:
        return Ceiling(moved, True, of_data, idle, int(chosen.sum()))
    if dispersion <= FLAT and spread < 0.05 and _keeps_up(number):
        return Ceiling(rate, False, spread, idle, int(chosen.sum()))
    return None


def _keeps_up(number: NDArray[np.float64]) -> bool:
    """Whether completions stay flat over many windows, too.

    A limiter makes up for what it was late, so that their variance does not grow with time. That of a busy device,
    whose service times vary, does.
    """
    count = len(number) // LONG
    if count < 4:
        return True
    sums = number[: count * LONG].reshape(count, LONG).sum(axis=1)
    return _variance(sums) <= STEADY * float(np.median(sums))


def _variance(values: NDArray[np.float64]) -> float:
    """That of the middle, so that a few windows with a pause do not count."""
    low, high = np.quantile(values, (0.25, 0.75))
    return float((high - low) / 1.349) ** 2
