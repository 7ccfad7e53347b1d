"""S10: reads are slower while writes are in flight, more than by their number."""

from __future__ import annotations

import math

import numpy as np

from iosonar import units
from iosonar.findings.course import stretches_of, without_latency
from iosonar.findings.detector import Detector
from iosonar.findings.finding import Confidence, Evidence, Finding, Severity
from iosonar.findings.thresholds import Limits, Measured, Threshold
from iosonar.study.requests import Study

FEWEST = 100
"""The fewest reads with, and without, writes in flight, at the same depth."""

ERRORS = 6
CLUMPED = 10
"""Latencies of neighbours are alike: so many count as one."""


def find(study: Study, limits: Limits) -> Finding | None:
    """By the latencies of reads at the same number of requests in flight, with writes among them and without."""
    parts = stretches_of(study)
    depth, has_writes, log = [], [], []
    for part in parts:
        reads, writes = part.is_read, part.in_flight(part.is_write)
        depth.append(part.in_flight()[reads])
        has_writes.append(writes[reads] > 0)
        log.append(np.log(np.maximum(part.latency_ns[reads], 1)))
    if not log:
        return None
    depths, beside, logs = (np.concatenate(each) for each in (depth, has_writes, log))
    class_ = np.floor(2 * np.log2(np.maximum(depths, 1))).astype(np.int64)
    changes, weights, errors = [], [], []
    for number in np.unique(class_[depths > 0]):
        own = (class_ == number) & (depths > 0)
        a, b = logs[own & ~beside], logs[own & beside]
        if min(len(a), len(b)) < FEWEST:
            continue
        changes.append(float(b.mean() - a.mean()))
        weights.append(len(a) * len(b) / (len(a) + len(b)))
        errors.append(CLUMPED * (float(a.var()) / len(a) + float(b.var()) / len(b)))
    if not weights:
        return None
    share = np.array(weights) / sum(weights)
    change = float(share @ np.array(changes))
    error = math.sqrt(float(share**2 @ np.array(errors)))
    if change < math.log(limits["factor"]) or change < ERRORS * error:
        return None
    factor, alone, with_writes = math.exp(change), logs[(depths > 0) & ~beside], logs[(depths > 0) & beside]
    return DETECTOR.found(
        Severity.WARNING,
        f"With writes in flight, a read takes {units.number(factor, 2)} times as long as with as many reads in flight: "
        f"{units.span(math.exp(float(with_writes.mean())) / 1e9)} on average, instead of "
        f"{units.span(math.exp(float(alone.mean())) / 1e9)}.",
        Evidence("op = 'read'", "latency.depth"),
        sure=(
            Confidence.HIGH if change > 2 * ERRORS * error else Confidence.MEDIUM,
            f"{len(with_writes):,} reads with writes in flight beside {len(alone):,} without, compared at the same "
            "depth.",
        ),
        ruled_out=("More requests in flight: only reads that met the same number of requests are compared.",),
        values={"factor": factor, "reads_beside_writes": len(with_writes), "reads_alone": len(alone)},
    )


DETECTOR = Detector[Study](
    "S10",
    "read-write-interference",
    "Writes slow reads down",
    "Writes keep the medium busy for longer than reads do, and reads wait behind them: erasing and programming of "
    "flash, "
    "parity of a RAID, or destaging of a write cache.",
    (
        "Spread writes over time, or limit them, if reads matter more: io.max or io.latency of cgroups, or the "
        "scheduler "
        "mq-deadline, which prefers reads.",
        "Put what writes much, such as logs, on another device.",
    ),
    find,
    (Threshold("factor", 1.5, Measured.NUMBER, "How many times as long a read takes."),),
    why_not=without_latency,
)
