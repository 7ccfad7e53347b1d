"""S16: requests complete in the order of their positions, not of their issue."""

from __future__ import annotations

import math

import numpy as np

from iosonar import units
from iosonar.findings.course import at_depth, stretches_of, without_latency
from iosonar.findings.detector import Detector
from iosonar.findings.finding import Confidence, Evidence, Finding, Severity
from iosonar.findings.thresholds import Limits, Measured, Threshold
from iosonar.study.requests import Study

FEWEST = 1000
"""The fewest completions with several requests in flight."""

DEPTH = 4
ERRORS = 8


def find(study: Study, limits: Limits) -> Finding | None:
    """By the share of completions whose position is above that of the completion before."""
    if len(study.devices) > 1:
        return None
    steps = [0, 0]
    ascending = [0, 0]
    for part in stretches_of(study):
        chosen = part.moved & (part.in_flight() >= DEPTH)
        sector, end = part.sector[chosen], part.completed_ns[chosen]
        for number, order in enumerate((np.arange(len(sector)), np.argsort(end, kind="stable"))):
            change = np.diff(sector[order])
            steps[number] += int((change != 0).sum())
            ascending[number] += int((change > 0).sum())
    if min(steps) < FEWEST:
        return None
    issued, completed = (up / many for up, many in zip(ascending, steps, strict=True))
    usual = max(issued, 0.5)
    if completed - usual < limits["share"] or completed - usual < ERRORS * math.sqrt(0.25 / steps[1]):
        return None
    names = sorted({target.scheduler for file in study.files for target in file.targets if target.scheduler})
    return DETECTOR.found(
        Severity.INFO,
        f"With at least {DEPTH} requests in flight, {units.percent(completed)} of the completions are at a higher "
        "position "
        f"than the one before; in the order of issue, {units.percent(issued)} are.",
        Evidence(at_depth(study, DEPTH), "turns.completed"),
        sure=(
            Confidence.MEDIUM,
            f"{steps[1]:,} completions; of requests in random order, half are at a higher position."
            + (f" The scheduler of the target is {', '.join(names)}." if names else ""),
        ),
        ruled_out=("A load in ascending order: the order of issue is compared.",),
        values={"completed_ascending": completed, "issued_ascending": issued, "completions": steps[1]},
    )


DETECTOR = Detector[Study](
    "S16",
    "scheduler",
    "A scheduler reorders requests",
    "An I/O scheduler, or the disk itself, sorts the requests in flight by position. That saves seeks on disks, and "
    "makes "
    "single requests wait for others that came later; on flash it only costs time.",
    (
        "See /sys/block/NAME/queue/scheduler: `none` is usual for flash and for arrays with a scheduler of their own.",
        "Replay with the scheduler that production has: it is part of what is measured.",
    ),
    find,
    (Threshold("share", 0.1, Measured.SHARE, "How much more of the completions than of the issues are ascending."),),
    why_not=without_latency,
)
