"""S02: writes become much slower after so many written bytes: a write-back cache is full."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from iosonar import units
from iosonar.findings.ceiling import windows_of
from iosonar.findings.course import Course, course_of, sql_ns, timeline_of, without_latency
from iosonar.findings.detector import Detector
from iosonar.findings.finding import Confidence, Evidence, Finding, Severity
from iosonar.findings.thresholds import Limits, Measured, Threshold
from iosonar.quantities.steps import Step, step_of
from iosonar.quantities.timeline import Op
from iosonar.study.base import cached
from iosonar.study.requests import Study

CLEAR, ERRORS = 0.85, 8
MORE_DEMAND = 1.5
CACHE_NS = 1e6
"""A write that is faster went to memory."""

BEHIND = 0.8
"""With requests waiting for such a share of the time before, the storage was too slow from the start."""

SAME = math.log(1.05)
"""Reads whose latency rises less take as long as before."""

LEAST = 2.0
"""How many times as slow writes become, at least."""


@dataclass(frozen=True)
class Cliff:
    """The course of the writes, their step, and by how much reads rise there, as a logarithm; None without reads."""

    course: Course
    step: Step
    rise: float | None

    @property
    def at_s(self) -> float:
        """When it comes."""
        return float(self.course.from_s[self.step.at])


@cached
def cliff_of(study: Study) -> Cliff | None:
    """The step of the latency of writes, if it is clear, and neither the load nor a limit on all requests caused it."""
    course = course_of(study, Op.WRITE)
    found = step_of(course.log)
    if found is None or found.change < math.log(LEAST) or found.clear < CLEAR:
        return None
    if found.change < ERRORS * found.error:
        return None
    due = course.due
    if study.has_demand and np.median(due[found.at :]) > MORE_DEMAND * np.median(due[: found.at]):
        return None
    if _was_behind(study, float(course.from_s[found.at])):
        return None
    rise = _rise_of_reads(study, float(course.from_s[found.at]))
    is_limit = found.before > math.log(CACHE_NS) if rise is None else rise > found.change / 2
    return None if is_limit else Cliff(course, found, rise)


def _was_behind(study: Study, at_s: float) -> bool:
    """Whether requests waited all the time before: a cache that takes writes at once leaves none waiting."""
    found = windows_of(study)
    if found is None or not study.has_demand:
        return False
    before = found.wanted[found.from_s + found.width_s <= at_s]
    return len(before) >= 3 and float(before.mean()) > BEHIND


def _rise_of_reads(study: Study, at_s: float) -> float | None:
    reads = course_of(study, Op.READ)
    before, after = reads.log[reads.from_s < at_s], reads.log[reads.from_s >= at_s]
    return float(after.mean() - before.mean()) if min(len(before), len(after)) >= 3 else None


def find(study: Study, limits: Limits) -> Finding | None:
    """By the latency of writes over the bytes written before."""
    known = cliff_of(study)
    if known is None or known.step.change < math.log(limits["factor"]):
        return None
    course, step, rise, at_s = known.course, known.step, known.rise, known.at_s
    written = float(course.written[step.at])
    before_s, after_s = math.exp(step.before) / 1e9, math.exp(step.after) / 1e9
    line = timeline_of(study)
    until_s = float(line.edges_s[-1])
    taken = float(
        line.completed_bytes[Op.WRITE].sum() - line.until(line.completed_bytes[Op.WRITE], np.array([at_s]))[0]
    )
    rate = taken / max(until_s - at_s, 1e-9)
    ruled_out = ["A higher demand: the load does not demand more from then on."] if study.has_demand else []
    if rise is not None:
        reads = "as long" if rise < SAME else f"{units.number(math.exp(rise), 2)} times as long"
        ruled_out.append(
            f"A limit on all requests: reads take {reads} as before, writes "
            f"{units.number(math.exp(step.change), 2)} times."
        )
    return DETECTOR.found(
        Severity.WARNING,
        f"After {units.span(at_s)}, when {units.binary_bytes(written)} were written, a write takes "
        f"{units.span(after_s)} instead of {units.span(before_s)}; from then on {units.transferred(rate)}/s are "
        "written.",
        Evidence(
            f"op = 'write' AND issued_ns >= {sql_ns(study, at_s)}",
            "latency.realtime",
            max(study.first_s, at_s - (until_s - at_s)),
            until_s,
        ),
        sure=(
            Confidence.HIGH if rise is not None else Confidence.MEDIUM,
            f"{units.percent(step.clear)} of the windows before and after lie on their side of the step"
            f"{'' if rise is not None else '; without reads, a limit of the rate that allows a burst looks the same'}.",
        ),
        ruled_out=ruled_out,
        values={
            "at_s": at_s,
            "written": written,
            "before_s": before_s,
            "after_s": after_s,
            "bytes_per_s": rate,
        },
    )


DETECTOR = Detector[Study](
    "S02",
    "write-back-cliff",
    "Write-back cliff",
    "A cache took the writes until it was full. From then on writes wait until it has written older data to the "
    "medium. That rate lasts; the fast start does not.",
    (
        "Judge the storage by the part after the cliff, unless your real load writes less than this in one go and "
        "pauses.",
        "If the cache should be larger than what was written until then, check whether its battery is charged, whether "
        "it is "
        "in write-back mode, and who else uses it.",
    ),
    find,
    (Threshold("factor", 4.0, Measured.NUMBER, "How many times as slow writes become."),),
    why_not=without_latency,
)
