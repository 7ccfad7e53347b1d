"""S08: while requests wait in a needle, no request at all is fast: one queue for everything."""

from __future__ import annotations

import numpy as np

from iosonar import units
from iosonar.findings.course import between, sql_ns, usual_of, without_latency
from iosonar.findings.detector import Detector
from iosonar.findings.finding import Confidence, Evidence, Finding, Severity
from iosonar.findings.needles import needles_of
from iosonar.findings.thresholds import Limits, Measured, Threshold
from iosonar.study.requests import Study

LOOKED_AT = 20
"""Needles, the highest first."""

INSIDE = (0.1, 0.5)
"""The part of a needle that is looked at, as shares of its height."""


def find(study: Study, limits: Limits) -> Finding | None:
    """By the requests that were issued within needles, of which none was fast."""
    found, usual = needles_of(study), usual_of(study)
    if found is None or usual is None:
        return None
    waits = found.waits
    highest = np.argsort(-waits.peak_ns)[:LOOKED_AT]
    table = study.table
    inside = None
    for begin, peak in zip(waits.begin_ns[highest].tolist(), waits.peak_ns[highest].tolist(), strict=True):
        low, high = (begin + int(part * peak) for part in INSIDE)
        each = (table.issued_ns >= low) & (table.issued_ns < high)
        inside = each if inside is None else inside | each
    rows = table.filter(inside & table.latency_ns.notnull())
    fast = rows.latency_ns <= int(usual.p90)
    row = rows.aggregate(
        n=rows.count(), fast=fast.sum(), reads=rows.is_read.sum(), writes=(rows.moved & ~rows.is_read).sum()
    ).to_pyarrow()
    number, quick, reads, writes = (row[name][0].as_py() or 0 for name in ("n", "fast", "reads", "writes"))
    if number < limits["requests"] or quick > limits["fast"] * number:
        return None
    worst = int(highest[0])
    begin_s, peak_s = float(waits.begin_ns[worst]) / 1e9, float(waits.peak_ns[worst]) / 1e9
    kinds = "reads and writes alike" if min(reads, writes) >= 0.1 * number else "reads" if reads > writes else "writes"
    return DETECTOR.found(
        Severity.INFO,
        f"Of {units.requests(number)} that were issued while others queued ({kinds}), "
        f"{'none' if not quick else f'only {quick:,}'} completed within {units.span(usual.p90 / 1e9)}, as 90 % usually "
        "do.",
        Evidence(
            f"{between(study, begin_s, begin_s + INSIDE[1] * peak_s)} AND issued_ns > {sql_ns(study, begin_s)}",
            "latency.realtime",
            max(study.first_s, begin_s - peak_s),
            begin_s + 2 * peak_s,
        ),
        sure=(
            Confidence.HIGH if number >= 100 else Confidence.MEDIUM,
            f"{units.counted(len(highest), 'needle')} looked at.",
        ),
        values={"requests": number, "fast": quick, "needles": len(highest)},
    )


DETECTOR = Detector[Study](
    "S08",
    "global-queue",
    "One queue for everything",
    "All requests wait in one queue, so one slow request or a burst also delays those that a cache or another "
    "disk could "
    "answer at once.",
    (
        "Look for the single line: one path, one session, one lock of the controller; multipath and several queues "
        "avoid it.",
        "Put loads that must not disturb each other on different volumes, if these have queues of their own.",
    ),
    find,
    (
        Threshold("requests", 20, Measured.NUMBER, "The fewest requests issued within needles."),
        Threshold("fast", 0.02, Measured.SHARE, "The share of them that may be fast."),
    ),
    why_not=without_latency,
)
