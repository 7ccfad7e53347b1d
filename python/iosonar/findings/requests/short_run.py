"""S14: the run ended before the storage was steady, or soon after."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from iosonar import units
from iosonar.findings.course import between, timeline_of, without_latency
from iosonar.findings.detector import Detector
from iosonar.findings.finding import Confidence, Evidence, Finding, Severity
from iosonar.findings.requests.burst_bucket import bucket_of
from iosonar.findings.requests.saturation import behind_of
from iosonar.findings.requests.write_back_cliff import cliff_of
from iosonar.findings.thresholds import Limits, Measured, Threshold
from iosonar.quantities.steady import MIN_RATIO
from iosonar.quantities.steps import step_of
from iosonar.study.check import Topic
from iosonar.study.grades import Grade
from iosonar.study.requests import Study
from iosonar.study.steady import steadiness

WINDOWS = 60
ERRORS = 6
BEHIND_S, BEHIND = 1.0, 0.1


def find(study: Study, limits: Limits) -> Finding | None:
    """By the check of the page: whether, and from when on, latency was steady."""
    length_s = study.last_s - study.first_s
    if length_s < limits["length"] and study.completed < limits["requests"]:
        return _too_few(study, length_s)
    found = steadiness(study)
    if found.grade is not Grade.WARNING:
        return None
    if _has_other_reason(study):
        return None
    if found.since_s is None:
        step = step_of(_logs(study)[1])
        if step is None or abs(step.change) < max(math.log(limits["change"]), ERRORS * step.error):
            return None
        rest = found.text.partition(": ")[2]
        return DETECTOR.found(
            Severity.WARNING,
            f"{rest[:1].upper()}{rest[1:]}; the run took {units.span(length_s)}.",
            Evidence(between(study, study.first_s, study.last_s), "latency.bands"),
            sure=(Confidence.MEDIUM, "The means of slices of the run drift by more than their scatter explains."),
            values={"since_s": None, "length_s": length_s},
            meaning="The storage had not reached a steady state: a cache was still filling or draining, or free blocks "
            "ran out. Averages of the whole run describe neither the state before nor the one after.",
        )
    change = _change(study, found.since_s)
    factor = max(change, 1 / change)
    if factor < limits["change"]:
        return None
    how = f"{units.number(factor, 2)} times as {'high' if change > 1 else 'low'}"
    return DETECTOR.found(
        Severity.INFO,
        f"Latency was steady only from {units.span(found.since_s)} on; before, it was {how}. The run took "
        f"{units.span(length_s)}, less than {units.number(MIN_RATIO)} times its warm-up.",
        Evidence(
            between(study, study.first_s, found.since_s),
            "latency.bands",
            study.first_s,
            min(length_s, 2 * found.since_s),
        ),
        sure=(Confidence.MEDIUM, "Without the slices before, the mean of the rest is more precise (MSER)."),
        values={"since_s": found.since_s, "length_s": length_s, "before": change},
        advice=(
            f"Replay for at least {units.span(MIN_RATIO * (found.since_s - study.first_s))}, or look only at the "
            "steady part: --skip-warm-up.",
        ),
    )


def _too_few(study: Study, length_s: float) -> Finding:
    """A run that says little, whatever the storage did in it."""
    return DETECTOR.found(
        Severity.INFO,
        f"The run took {units.span(length_s)} and completed {units.counted(study.completed, 'request')}: too few for a "
        "p99, and too short for a cache to fill or free blocks to run out.",
        Evidence(between(study, study.first_s, study.last_s), "latency.realtime"),
        sure=(Confidence.HIGH, "Both are counted."),
        values={"length_s": length_s, "requests": study.completed},
        meaning="Nothing is known of the storage in the long run.",
    )


def _logs(study: Study) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The start of some windows of time, and the mean logarithm of latency in each."""
    course = timeline_of(study)
    step = max(course.cells // WINDOWS, 1)
    known, logs = (course.joined(each.sum(axis=0), step) for each in (course.known, course.logs))
    return course.edges_s[: len(known) * step : step][known > 0], logs[known > 0] / known[known > 0]


def _change(study: Study, since_s: float) -> float:
    """How many times as high latency was before, below 1 if it was lower: by the means of logarithms."""
    from_s, logs = _logs(study)
    before, after = logs[from_s < since_s], logs[from_s >= since_s]
    return math.exp(float(before.mean() - after.mean())) if min(len(before), len(after)) else 1.0


def _has_other_reason(study: Study) -> bool:
    """Whether other findings say why latency changed: a demand that is too high, a cliff, or an empty bucket."""
    if study.has_demand and float((behind_of(study).behind_s >= BEHIND_S).mean()) >= BEHIND:
        return True
    return cliff_of(study) is not None or bucket_of(study) is not None


DETECTOR = Detector[Study](
    "S14",
    "short-run",
    "The run is too short",
    "The warm-up is a large part of the run: caches that were empty or full of other data made the first requests "
    "slower or "
    "faster than the storage is in the long run.",
    (
        "Replay longer, until latency stays the same for ten times as long as it took to get there.",
        "Look at the steady part alone, if there is one: `--skip-warm-up`, or `--from`.",
    ),
    find,
    (
        Threshold("change", 1.2, Measured.NUMBER, "How many times as high or low latency was during the warm-up."),
        Threshold("length", 10.0, Measured.TIME, "A shorter run is too short if it also has too few requests."),
        Threshold("requests", 1000, Measured.NUMBER, "Fewer requests are too few."),
    ),
    about=Topic.TIMES,
    why_not=lambda study: without_latency(study) if study.requests.is_run else "a load was not replayed",
)
