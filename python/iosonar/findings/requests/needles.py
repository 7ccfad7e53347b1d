"""S06: now and then, requests queue up for long."""

from __future__ import annotations

import numpy as np

from iosonar import units
from iosonar.findings.course import between, usual_of, without_latency
from iosonar.findings.detector import Detector
from iosonar.findings.finding import Confidence, Evidence, Finding, Severity
from iosonar.findings.needles import Cause, Needles, needles_of
from iosonar.findings.thresholds import Limits, Measured, Threshold
from iosonar.study.requests import Study

MEANINGS = {
    Cause.BURST: "The load sends many requests at once, more than the storage serves at a time: each waits for those "
    "before it. That is queueing by the load, not a fault of the storage.",
    Cause.FLUSH: "A flush writes the whole cache to the medium, and others wait meanwhile. Databases and journals of "
    "file systems flush often.",
    Cause.DISCARD: "The device handles discards slowly, and holds other requests back meanwhile.",
    Cause.LARGE: "A large request keeps the device or the link busy, and small ones wait behind it.",
}
ADVICE = {
    Cause.BURST: (
        "Spread such bursts over time where they are made: checkpoints, flushers and cron jobs have settings for it.",
        "If the real load has them, judge the storage by the latency at these moments, not by the average.",
    ),
    Cause.FLUSH: (
        "Use storage whose write cache is protected by a battery or capacitors: it answers flushes at once.",
        "Let programs flush less often, several transactions at once (group commit).",
    ),
    Cause.DISCARD: ("Mount without `discard`, and run fstrim at quiet times; or limit discard_max_bytes.",),
    Cause.LARGE: ("Limit the size of requests (max_sectors_kb), or move backups and scans to quiet times.",),
}


def find(study: Study, limits: Limits) -> Finding | None:
    """By waits that are far above what queues give by chance, and what was in flight when they began."""
    found, usual = needles_of(study), usual_of(study)
    if found is None or usual is None:
        return None
    waits = found.waits
    worst = int(np.argmax(waits.peak_ns))
    peak_s = float(waits.peak_ns[worst]) / 1e9
    if peak_s < limits["length"]:
        return None
    many, requests = len(waits), int(waits.requests.sum())
    begin_s, end_s = float(waits.begin_ns[worst]) / 1e9, float(waits.end_ns[worst]) / 1e9
    when = f"at {units.span(begin_s)}" if many == 1 else f"the longest at {units.span(begin_s)}"
    known = found.cause is not Cause.UNKNOWN
    how = (
        f"{'It' if many == 1 else units.percent(found.share) + ' of them'} began with {found.cause.value}"
        if known
        else f"{'It' if many == 1 else 'They'} began without a burst, a flush, a discard or a large request"
    )
    return DETECTOR.found(
        Severity.INFO if found.cause is Cause.BURST else Severity.WARNING,
        f"{units.counted(many, 'time')}, {when}, requests queued up for as long as {units.span(peak_s)}; half of all "
        "requests "
        f"take {units.span(usual.p50 / 1e9)}. {how}.",
        Evidence(
            f"{between(study, begin_s, end_s)} AND latency_ns >= {int(min(usual.highest, peak_s * 1e9))}",
            "latency.realtime",
            max(study.first_s, begin_s - 2 * (end_s - begin_s)),
            end_s + 2 * (end_s - begin_s),
            usual.p50 / 1e9,
            peak_s,
        ),
        sure=(
            Confidence.HIGH if known and many >= 3 else Confidence.MEDIUM,
            _why_sure(units.requests(requests), usual.highest, found),
        ),
        ruled_out=("A single slow request: others to other places waited at the same time.",),
        values={"needles": many, "peak_s": peak_s, "at_s": begin_s, "requests": requests, "share": found.share},
        meaning=MEANINGS.get(found.cause, ""),
        advice=ADVICE.get(found.cause, ()),
    )


def _why_sure(waited: str, highest_ns: float, found: Needles) -> str:
    if not found.is_by_height:
        if found.cause is Cause.BURST:
            return (
                f"{waited} waited, always several together, and each time far more requests than usual had just come."
            )
        return f"{waited} were slow right after one was issued, always several together; right before, few were."
    return (
        f"{waited} waited longer than {units.span(highest_ns / 1e9)}, the most that queues of this run give by chance, "
        "and always several together."
    )


DETECTOR = Detector[Study](
    "S06",
    "needles",
    "Needles: requests queue up",
    "The storage paused or was busy with something of its own, and a queue formed: an error that it retried, a "
    "failover, a "
    "rebuild, a snapshot, or another host with a load of its own.",
    (
        "Look into the logs of the kernel and of the storage at these times.",
        "Replay again: if the needles come at the same place of the load, the load causes them; if not, something "
        "beside it.",
    ),
    find,
    (Threshold("length", 0.002, Measured.TIME, "The longest wait, at least."),),
    why_not=without_latency,
)
