"""S16: requests complete in the order of their positions, not of their issue; or the storage idles after reads."""

from __future__ import annotations

import math

import numpy as np

from iosonar import units
from iosonar.findings.course import at_depth, stretches_of, without_latency
from iosonar.findings.detector import Detector
from iosonar.findings.finding import Confidence, Evidence, Finding, Severity
from iosonar.findings.thresholds import Limits, Measured, Threshold
from iosonar.quantities.idling import pauses
from iosonar.study.requests import Study

FEWEST = 1000
"""The fewest completions with several requests in flight."""

DEPTH = 4
ERRORS = 8


def find(study: Study, limits: Limits) -> Finding | None:
    """By the order of completions, or by pauses after reads."""
    if len(study.devices) > 1:
        return None
    return _sorted(study, limits) or _idle(study, limits)


def _sorted(study: Study, limits: Limits) -> Finding | None:
    """By the share of completions whose position is above that of the completion before."""
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


def _idle(study: Study, limits: Limits) -> Finding | None:
    """By the time from a completion to the next one while requests wait: longer after a read than after a write."""
    found = pauses(stretches_of(study))
    if found is None or found.share < limits["idle"] or found.pause_ns < ERRORS * found.error_ns:
        return None
    names = sorted({target.scheduler for file in study.files for target in file.targets if target.scheduler})
    return DETECTOR.found(
        Severity.INFO,
        f"While requests wait, the next one completes {units.span(found.pause_ns / 1e9)} later after a read than after "
        f"a write, which makes {units.span(found.after_read_ns / 1e9)} on average.",
        Evidence(f"op = 'read' AND {at_depth(study, 1)}", "latency.realtime"),
        sure=(
            Confidence.HIGH if found.pause_ns > 2 * ERRORS * found.error_ns else Confidence.MEDIUM,
            f"{found.reads:,} completions of reads beside {found.writes:,} of writes, each with others in flight."
            + (f" The scheduler of the target is {', '.join(names)}." if names else ""),
        ),
        ruled_out=(
            "Slow writes or reads: completions are compared that are followed by the same kind.",
            "A cache that answers writes: writes wait as long as reads, so both stand in the same queue.",
        ),
        values={"idle_s": found.pause_ns / 1e9, "share": found.share, "reads": found.reads, "writes": found.writes},
        meaning="After a read, the scheduler keeps the storage idle for a moment, in case the same program reads on. "
        "That saves seeks for sequential readers on a disk; with random requests, all others wait for nothing.",
        advice=(
            "Set the idle time to 0: slice_idle of bfq in /sys/block/NAME/queue/iosched, or use another scheduler.",
            *DETECTOR.advice,
        ),
    )


DETECTOR = Detector[Study](
    "S16",
    "scheduler",
    "A scheduler reorders requests or idles",
    "An I/O scheduler, or the disk itself, sorts the requests in flight by position. That saves seeks on disks, and "
    "makes "
    "single requests wait for others that came later; on flash it only costs time.",
    (
        "See /sys/block/NAME/queue/scheduler: `none` is usual for flash and for arrays with a scheduler of their own.",
        "Replay with the scheduler that production has: it is part of what is measured.",
    ),
    find,
    (
        Threshold("share", 0.1, Measured.SHARE, "How much more often completions than issues ascend."),
        Threshold("idle", 0.05, Measured.SHARE, "How much later completions follow reads than writes."),
    ),
    why_not=without_latency,
)
