"""S03: the load demands more than the storage delivers, and delays run away."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from iosonar import units
from iosonar.findings.course import between, timeline_of, without_demand
from iosonar.findings.detector import Detector
from iosonar.findings.finding import Confidence, Evidence, Finding, Severity
from iosonar.findings.thresholds import Limits, Measured, Threshold
from iosonar.quantities.timeline import Timeline
from iosonar.study.base import cached
from iosonar.study.requests import Study

WINDOWS = 400
FEWEST_BEHIND = 30
"""The fewest requests that are due and not done while the storage is behind."""

GROWING_WINDOWS = 12
"""Where it falls behind only at the end: for at least so many windows, 3 % of the load."""

GROWS = 0.8
"""In that share of them it falls further behind."""

STEADY = 0.5
"""In each of them it completes at least so much of the usual: a stall completes nothing."""


class Behind:
    """How far completions are behind the demand, at the end of each of some hundred windows of time."""

    def __init__(self, course: Timeline) -> None:
        step = max(course.cells // WINDOWS, 1)
        edges = course.edges_s
        due, done = course.due.sum(axis=0), course.completed.sum(axis=0)
        self.at_s = edges[step::step]
        self.width_s = step * course.width_s
        count = len(self.at_s)
        self.due = course.joined(due, step)[:count] / self.width_s
        """Requests per second."""
        self.done = course.joined(done, step)[:count] / self.width_s
        due_sum, done_sum = np.cumsum(due), np.cumsum(done)
        self.backlog = np.maximum(due_sum - done_sum, 0.0)[step - 1 :: step][:count]
        # The time at which as many requests were due as have completed by now.
        reached = np.interp(done_sum[step - 1 :: step][:count], due_sum, edges[1:])
        self.behind_s: NDArray[np.float64] = np.where(self.backlog >= 1, np.maximum(self.at_s - reached, 0), 0.0)
        self.last_due_s = float(edges[int(np.flatnonzero(due)[-1]) + 1]) if due.any() else float(edges[0])


@cached
def behind_of(study: Study) -> Behind:
    """Computed once."""
    return Behind(timeline_of(study))


def find(study: Study, limits: Limits) -> Finding | None:
    """By the demand and the completions of windows of time."""
    found = behind_of(study)
    demanded = found.at_s <= found.last_due_s + found.width_s
    least = limits["behind"]
    is_behind, share = _is_behind(found, demanded, least)
    if share < limits["share"]:
        # At the end of the load, half of it suffices.
        least /= 2
        is_behind, share = _is_behind(found, demanded, least)
        if not is_behind.any() or not _runs_away(found, demanded, least):
            return None
    most = int(np.argmax(np.where(demanded & is_behind, found.backlog, 0.0)))
    # It falls behind from the last moment on at which it was up to date.
    before = np.flatnonzero(found.behind_s[:most] < least / 4)
    begin = int(before[-1]) + 1 if len(before) else 0
    begin_s = float(found.at_s[begin] - found.width_s)
    capacity = float(np.mean(found.done[is_behind]))
    if not capacity > 0:
        return None
    asked = float(np.mean(found.due[begin : most + 1])) if most > begin else float(found.due[begin])
    worst_s = float(np.max(np.where(demanded, found.behind_s, 0.0)))
    ends_behind = not (found.behind_s[most:] < least / 4)[demanded[most:]].any()
    severity = Severity.BAD if worst_s > study.options.bad_delay_s else Severity.WARNING
    depth, last_s = _depth(study), float(found.at_s[most])
    ruled_out = (
        [
            f"A replay with too few requests in flight: up to {depth} may be, so look whether latency grows with the "
            "depth (latency.depth) before you blame the storage."
        ]
        if depth and depth < 16
        else []
    )
    return DETECTOR.found(
        severity,
        f"From {'the start' if begin_s <= study.first_s else units.span(begin_s)} on, the load demands "
        f"{units.count(asked)} requests/s, and the storage "
        f"completes {units.count(capacity)}: completions fall up to {units.span(worst_s)} behind the demand"
        f"{', and do not catch up while the load lasts' if ends_behind else ''}.",
        Evidence(
            f"completed_ns - scheduled_ns >= {round(least * 1e9)} "
            f"AND {between(study, begin_s, last_s, 'scheduled_ns')}",
            "overview.thrp",
            max(begin_s - 20 * found.width_s, study.first_s),
            float(found.at_s[-1]),
        ),
        sure=(
            Confidence.HIGH if share >= 0.2 else Confidence.MEDIUM,
            f"Completions were more than {units.span(least)} behind the demand during {units.percent(share)} of the "
            f"load; {units.requests(int(found.backlog.max()))} waited or were in flight at the worst moment.",
        ),
        ruled_out=ruled_out,
        values={
            "from_s": begin_s,
            "demand_per_s": asked,
            "capacity_per_s": capacity,
            "behind_s": worst_s,
            "share": share,
            "backlog": float(found.backlog.max()),
        },
    )


def _is_behind(found: Behind, demanded: NDArray[np.bool_], least: float) -> tuple[NDArray[np.bool_], float]:
    """The windows in which it is so far behind, and their share of the load."""
    chosen = (found.behind_s >= least) & (found.backlog >= FEWEST_BEHIND)
    return chosen, float((chosen & demanded).sum()) / max(int(demanded.sum()), 1)


def _runs_away(found: Behind, demanded: NDArray[np.bool_], least: float) -> bool:
    """Whether it falls behind more and more until the end of the load, while it completes requests as before."""
    last = int(np.flatnonzero(demanded)[-1]) if demanded.any() else 0
    up_to_date = np.flatnonzero(found.behind_s[: last + 1] < least / 2)
    begin = int(up_to_date[-1]) + 1 if len(up_to_date) else 0
    behind, done = found.behind_s[begin : last + 1], found.done[begin : last + 1]
    if len(behind) < GROWING_WINDOWS or behind[-1] < least:
        return False
    return bool((np.diff(behind) > 0).mean() >= GROWS and done.min() >= STEADY * np.median(done))


def _depth(study: Study) -> int | None:
    found = [depth for file in study.files if isinstance(depth := file.option("depth"), int)]
    return min(found, default=None)


DETECTOR = Detector[Study](
    "S03",
    "saturation",
    "Saturation",
    "The storage is too slow for this load. Requests arrive faster than they complete, so the queue grows until the "
    "demand ends, and latencies only show how long it grew.",
    (
        "Plan for at most the rate that was completed, with a reserve for peaks; `iosonar sweep` finds the rate at "
        "which "
        "latency begins to rise.",
        "Compare this rate with that of the data sheet for such requests: far below it, look for a limit on the way, "
        "such as "
        "one path, one queue or a cap on requests per second.",
    ),
    find,
    (
        Threshold("behind", 1.0, Measured.TIME, "How far completions are behind the demand."),
        Threshold("share", 0.1, Measured.SHARE, "For which share of the load."),
    ),
    why_not=without_demand,
)
