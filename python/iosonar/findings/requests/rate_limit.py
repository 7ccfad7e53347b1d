"""S17: completions stay exactly at one rate, however much is demanded: a limit of requests or bytes per second."""

from __future__ import annotations

import numpy as np

from iosonar import units
from iosonar.findings.ceiling import Ceiling, ceiling, ceilings_by_op, windows_of
from iosonar.findings.course import between, without_latency
from iosonar.findings.detector import Detector
from iosonar.findings.finding import Confidence, Evidence, Finding, Severity
from iosonar.findings.requests.burst_bucket import bucket_of
from iosonar.findings.requests.write_back_cliff import cliff_of
from iosonar.findings.thresholds import Limits, Measured, Threshold
from iosonar.study.requests import Study
from iosonar.text import listed


def rate_text(found: Ceiling) -> str:
    """Its rate, for people."""
    if found.op:
        return f"{units.count(found.rate)} {found.op}/s"
    return f"{units.transferred(found.rate)}/s" if found.of_bytes else f"{units.count(found.rate)} requests/s"


def find(study: Study, limits: Limits) -> Finding | None:
    """By the scatter of the completions of windows in which more was wanted."""
    found = windows_of(study)
    if found is None or bucket_of(study) is not None or cliff_of(study) is not None:
        return None
    share = float(found.wanted.mean())
    if share < limits["share"]:
        return None
    flat = ceiling(study, found, found.wanted)
    each = [flat] if flat is not None and (flat.idle or flat.of_bytes) else ceilings_by_op(study)
    if not each:
        return None
    flat = max(each, key=lambda one: one.rate)
    first = int(np.flatnonzero(found.wanted)[0])
    last = int(np.flatnonzero(found.wanted)[-1])
    begin_s, end_s = float(found.from_s[first]), float(found.from_s[last]) + found.width_s
    ruled_out = []
    if flat.idle:
        ruled_out.append(
            "A device that is busy: at this rate, one that needs its fastest latency for each request would be idle "
            "part of "
            "the time."
        )
    if flat.of_bytes:
        ruled_out.append("A limit of requests per second: requests per second vary more than bytes per second.")
    return DETECTOR.found(
        Severity.WARNING,
        f"During {units.percent(share)} of the run more was wanted, and the storage completed "
        f"{listed([rate_text(one) for one in each])}, hardly more or less "
        f"(± {units.percent(max(0.001, *(one.spread for one in each)))}).",
        Evidence(between(study, begin_s, end_s, "completed_ns"), "overview.thrs" if flat.of_bytes else "overview.thrp"),
        sure=(
            Confidence.HIGH if flat.idle and flat.windows >= 30 else Confidence.MEDIUM,
            f"{flat.windows} windows of {units.span(found.width_s)} in which requests waited all the time.",
        ),
        ruled_out=ruled_out,
        values={
            "bytes_per_s" if flat.of_bytes else "requests_per_s": flat.rate,
            "spread": flat.spread,
            "share": share,
        },
    )


DETECTOR = Detector[Study](
    "S17",
    "rate-limit",
    "A rate limit",
    "Something counts requests or bytes and lets only so many pass per second: the size of a cloud volume or of the "
    "machine, "
    "io.max of a cgroup, the array's QoS, or the speed of a link. The device behind it could do "
    "more.",
    (
        "Compare this number with the limits of the volume, of the machine, and of the link (1 Gbit/s are 125 MB/s).",
        "Raise the limit, or make fewer, larger requests if it counts requests.",
    ),
    find,
    (Threshold("share", 0.3, Measured.SHARE, "The share of the run in which more is wanted."),),
    why_not=without_latency,
)
