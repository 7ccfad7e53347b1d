"""S07: the storage stops at equal distances of time."""

from __future__ import annotations

import numpy as np

from iosonar import units
from iosonar.findings.course import due_ratio, is_regular, stalls_of, usual_of, without_latency
from iosonar.findings.detector import Detector
from iosonar.findings.finding import Confidence, Evidence, Finding, Severity
from iosonar.findings.thresholds import Limits, Measured, Threshold
from iosonar.study.requests import Study

BURST = 1.5
"""From so many times the usual demand on, a burst of the load may have caused a wait."""

SHOWN = 4
"""Stalls in the part of the diagram that is shown."""


def find(study: Study, limits: Limits) -> Finding | None:
    """By the waits of slow requests: their period, phase and length."""
    found, usual = stalls_of(study), usual_of(study)
    if found is None or usual is None or found.by_bytes or found.in_time is None or not is_regular(found.in_time):
        return None
    every, waits = found.in_time, found.waits
    length_s = float(np.quantile(waits.peak_ns, 0.75)) / 1e9
    if len(waits) < limits["stalls"] or length_s < limits["length"] or every.period < limits["period"]:
        return None
    begin_s = waits.begin_ns / 1e9
    burst = due_ratio(study, begin_s - length_s, begin_s + length_s / 2) if study.has_demand else 0.0
    if burst >= BURST:
        return None
    first_s = float(begin_s[0])
    share = float(waits.peak_ns.sum()) / 1e9 / max(study.last_s - study.first_s, 1e-9)
    ruled_out = [_not_the_load(burst)] if burst else []
    if found.in_bytes is not None:
        text = (
            f"Garbage collection after a number of written bytes: the time between stalls varies by "
            f"{units.percent(every.jitter)}, the bytes written between them by {units.percent(found.in_bytes.jitter)}"
        )
        if found.in_bytes.jitter > 2 * every.jitter:
            ruled_out.append(f"{text}.")
    sure = (
        Confidence.HIGH if len(waits) >= 8 else Confidence.MEDIUM,
        f"{len(waits)} stalls are within {units.percent(every.jitter)} of the period, and "
        f"{units.percent(every.coverage)} of the periods with requests at that time have a stall.",
    )
    return DETECTOR.found(
        Severity.WARNING,
        f"Every {units.span(every.period)}, the storage stops for up to {units.span(length_s)}: {len(waits)} stalls, "
        "the "
        f"first at {units.span(first_s)}, together {units.percent(share)} of the time.",
        Evidence(
            f"latency_ns >= {int(found.limit_ns)}",
            "latency.realtime",
            max(first_s - every.period / 2, study.first_s),
            first_s + (SHOWN - 0.5) * every.period,
            usual.p50 / 1e9,
            float(waits.peak_ns.max()) / 1e9,
        ),
        sure=sure,
        ruled_out=ruled_out,
        values={
            "period_s": every.period,
            "length_s": length_s,
            "phase_s": every.phase % every.period,
            "first_s": first_s,
            "stalls": len(waits),
            "share": share,
            "regularity": every.regularity,
        },
    )


def _not_the_load(burst: float) -> str:
    return f"Bursts of the load: it demands {units.number(burst, 2)} times its average around the stalls."


DETECTOR = Detector[Study](
    "S07",
    "periodic-stalls",
    "Periodic stalls",
    "Something in the storage works by a timer and stalls all requests meanwhile: flushing a cache, a snapshot, "
    "scrubbing, a recalibration, a monitoring agent, or failover software that checks paths.",
    (
        "Look for a timer with this period: in the firmware settings, in cron and systemd timers of all hosts that "
        "share "
        "the storage, and in the settings of the file system and of dirty pages (vm.dirty_writeback_centisecs).",
        "Replay again and watch whether the stalls come at the same times of day: then another host causes them.",
    ),
    find,
    (
        Threshold("period", 0.02, Measured.TIME, "The shortest period."),
        Threshold("length", 0.002, Measured.TIME, "The shortest stall."),
        Threshold("stalls", 5, Measured.NUMBER, "The fewest stalls."),
    ),
    why_not=without_latency,
)
