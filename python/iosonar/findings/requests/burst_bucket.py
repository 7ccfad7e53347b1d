"""S18: the rate is high at first, then falls to a flat lower one: credit for bursts is spent."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from iosonar import units
from iosonar.findings.ceiling import Ceiling, Windows, ceiling, windows_of
from iosonar.findings.course import between, timeline_of, without_latency
from iosonar.findings.detector import Detector
from iosonar.findings.finding import Confidence, Evidence, Finding, Severity
from iosonar.findings.requests.write_back_cliff import cliff_of
from iosonar.findings.thresholds import Limits, Measured, Threshold
from iosonar.quantities.steps import Step, step_of
from iosonar.quantities.timeline import Op
from iosonar.study.base import cached
from iosonar.study.requests import Study

CLEAR, ERRORS = 0.9, 8
FACTOR = 1.15
"""How many times as high the first rate must be for the other to be no limit of its own."""


@dataclass(frozen=True)
class Bucket:
    """The windows, the step of their rate, and the ceiling after it."""

    windows: Windows
    step: Step
    after: Ceiling


@cached
def bucket_of(study: Study) -> Bucket | None:
    """By the step of the rate, and the flat rate after it, which also holds reads back."""
    found = windows_of(study)
    if found is None or cliff_of(study) is not None:
        return None
    last_due = np.flatnonzero(found.due > 0)
    busy = slice(0, int(last_due[-1]) + 1 if len(last_due) else len(found.done))
    done, wanted = found.done[busy], found.wanted[busy]
    step = step_of(done)
    if step is None or step.before < FACTOR * step.after or step.clear < CLEAR or -step.change < ERRORS * step.error:
        return None
    if wanted[step.at :].mean() < 0.9:
        return None
    chosen = np.zeros(len(found.done), bool)
    chosen[step.at + 1 : len(done)] = found.wanted[step.at + 1 : len(done)]
    flat = ceiling(study, found, chosen)
    if flat is None:
        return None
    return Bucket(found, step, flat)


def find(study: Study, limits: Limits) -> Finding | None:
    """By the bucket, if the first rate was so much higher."""
    bucket = bucket_of(study)
    if bucket is None or bucket.step.before < limits["factor"] * bucket.step.after:
        return None
    found, step, flat = bucket.windows, bucket.step, bucket.after
    at_s = float(found.from_s[step.at])
    line = timeline_of(study)
    many = line.completed_bytes[: Op.OTHER].sum(axis=0) if flat.of_bytes else line.completed.sum(axis=0)
    first = float(line.until(many, np.array([at_s]))[0])
    credit = max(first - flat.rate * (at_s - float(line.edges_s[0])), 0.0)
    texts = [
        f"{units.transferred(each)}/s" if flat.of_bytes else f"{units.count(each)} requests/s"
        for each in (first / max(at_s - float(line.edges_s[0]), 1e-9), flat.rate)
    ]
    spent = units.transferred(credit) if flat.of_bytes else units.requests(round(credit))
    until_s = float(line.edges_s[-1])
    return DETECTOR.found(
        Severity.WARNING,
        f"For {units.span(at_s)}, the storage completed {texts[0]}; from then on only {texts[1]}, although more was "
        "wanted. "
        f"The credit for the burst was about {spent}.",
        Evidence(
            between(study, at_s, until_s, "completed_ns"),
            "overview.thrs" if flat.of_bytes else "overview.thrp",
            study.first_s,
            until_s,
        ),
        sure=(
            Confidence.HIGH if flat.windows >= 20 else Confidence.MEDIUM,
            f"After the step, {flat.windows} windows of {units.span(found.width_s)} stay within "
            f"{units.percent(max(flat.spread, 0.001))} of the lower rate.",
        ),
        ruled_out=("A full write cache: that would slow writes down and not reads.",)
        if line.known[Op.READ].sum() and line.known[Op.WRITE].sum()
        else (),
        values={
            "at_s": at_s,
            "bytes_per_s" if flat.of_bytes else "requests_per_s": flat.rate,
            "before_per_s": first / max(at_s, 1e-9),
            "credit": credit,
        },
    )


DETECTOR = Detector[Study](
    "S18",
    "burst-bucket",
    "A burst bucket is empty",
    "The volume may be faster than its base rate as long as it has credit, which short tests never use up. Afterwards "
    "it gets "
    "the base rate alone, and the credit comes back only while less is used.",
    (
        "Judge the volume by the rate after the burst, unless your real load pauses long enough to earn credit.",
        "Take a volume with a higher base rate, or one without bursts.",
    ),
    find,
    (Threshold("factor", 1.15, Measured.NUMBER, "How many times as high the rate is at first."),),
    why_not=without_latency,
)
