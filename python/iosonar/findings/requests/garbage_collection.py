"""S09: the storage stops each time that so many bytes were written."""

from __future__ import annotations

import numpy as np

from iosonar import units
from iosonar.findings.course import is_regular, stalls_of, usual_of, without_latency
from iosonar.findings.detector import Detector
from iosonar.findings.finding import Confidence, Evidence, Finding, Severity
from iosonar.findings.thresholds import Limits, Measured, Threshold
from iosonar.study.requests import Study


def find(study: Study, limits: Limits) -> Finding | None:
    """By the bytes written between waits."""
    found, usual = stalls_of(study), usual_of(study)
    if found is None or usual is None or not found.by_bytes or found.in_bytes is None:
        return None
    every, waits = found.in_bytes, found.waits
    length_s = float(np.quantile(waits.peak_ns, 0.75)) / 1e9
    if len(waits) < limits["stalls"] or length_s < limits["length"] or every.period < limits["bytes"]:
        return None
    first_s, last_s = float(waits.begin_ns[0]) / 1e9, float(waits.begin_ns[-1]) / 1e9
    scatter = found.in_time.jitter if found.in_time and is_regular(found.in_time) else None
    by_time = (
        f"they vary by {units.percent(scatter)} in time, and by {units.percent(every.jitter)} in bytes"
        if scatter is not None
        else "they keep to no period of time"
    )
    return DETECTOR.found(
        Severity.WARNING,
        f"After each {units.binary_bytes(every.period)} written, the storage stops for up to {units.span(length_s)}: "
        f"{len(waits)} times, first at {units.span(first_s)}.",
        Evidence(
            f"latency_ns >= {int(found.limit_ns)}",
            "latency.realtime",
            max(study.first_s, first_s - (last_s - first_s) / 10),
            first_s + (last_s - first_s) / 2,
            usual.p50 / 1e9,
            float(waits.peak_ns.max()) / 1e9,
        ),
        sure=(
            Confidence.HIGH if len(waits) >= 8 else Confidence.MEDIUM,
            f"{len(waits)} stalls; the bytes written between them vary by {units.percent(every.jitter)}.",
        ),
        ruled_out=(f"A timer: {by_time}.",),
        values={
            "bytes": every.period,
            "first_bytes": every.phase,
            "length_s": length_s,
            "first_s": first_s,
            "stalls": len(waits),
        },
    )


DETECTOR = Detector[Study](
    "S09",
    "garbage-collection",
    "Garbage collection",
    "Flash has to erase blocks before it can write them again. When free blocks run out, it collects the valid data of "
    "some "
    "blocks, and requests wait meanwhile. Copy-on-write storage and shingled disks do the same when they clean up.",
    (
        "Leave more of the device unused (over-provisioning), and discard what is not needed (fstrim), so that it has "
        "more "
        "free blocks.",
        "Judge the storage by a run that writes several times its capacity, not by a fresh device.",
    ),
    find,
    (
        Threshold("length", 0.002, Measured.TIME, "The shortest stall."),
        Threshold("stalls", 4, Measured.NUMBER, "The fewest stalls."),
        Threshold("bytes", 1 << 20, Measured.BYTES, "The fewest bytes written between stalls."),
    ),
    why_not=without_latency,
)
