"""S18: the rate is high at first, once or again, then falls to a flat lower one: credit for bursts is spent."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from iosonar import units
from iosonar.findings.ceiling import Ceiling, Windows, ceiling, windows_of
from iosonar.findings.course import between, course_of, timeline_of, without_latency
from iosonar.findings.detector import Detector
from iosonar.findings.finding import Confidence, Evidence, Finding, Severity
from iosonar.findings.requests.write_back_cliff import cliff_of
from iosonar.findings.thresholds import Limits, Measured, Threshold
from iosonar.quantities.steps import step_of
from iosonar.quantities.timeline import Op
from iosonar.study.base import cached
from iosonar.study.requests import Study

CLEAR, ERRORS = 0.9, 8
LONG, NOISE, CREDIT_S = 3, 3.0, 1.0
"""A burst has so many windows, beyond so many standard errors, and spends what the ceiling lets pass in that time."""

FACTOR = 1.1
"""How many times as high the first rate must be for the other to be no limit of its own."""


@dataclass(frozen=True)
class Bucket:
    """The windows, the ceiling, and the rate before it: credit that was spent until `at_s`, the first time at least."""

    windows: Windows
    after: Ceiling
    at_s: float
    before: float
    credit: float
    times: int
    """How often credit was spent."""


@cached
def bucket_of(study: Study) -> Bucket | None:
    """By the step of the rate, and the flat rate after it, which also holds reads back; or by several bursts."""
    found = windows_of(study)
    if found is None or cliff_of(study) is not None:
        return None
    return _spent_once(study, found) or _spent_again(study, found)


def _spent_once(study: Study, found: Windows) -> Bucket | None:
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
    at_s, line = float(found.from_s[step.at]), timeline_of(study)
    many = line.completed_bytes[: Op.OTHER].sum(axis=0) if flat.of_bytes else line.completed.sum(axis=0)
    first, took_s = float(line.until(many, np.array([at_s]))[0]), max(at_s - float(line.edges_s[0]), 1e-9)
    return Bucket(found, flat, at_s, first / took_s, max(first - flat.rate * took_s, 0.0), 1)


def _spent_again(study: Study, found: Windows) -> Bucket | None:
    """By bursts above the ceiling, each of which ends at it: a limit without credit lets nothing pass above it."""
    flat = ceiling(study, found, found.wanted)
    if flat is None:
        return None
    rate = found.bytes if flat.of_bytes else found.done
    noise = NOISE * np.sqrt(found.done * found.width_s) / np.maximum(found.done * found.width_s, 1)
    fast = (rate >= FACTOR * flat.rate) & (rate * (1 - noise) > flat.rate)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], fast, [False]]).astype(np.int8)))
    bursts = [
        (first, last)
        for first, last in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)
        if last - first >= LONG and found.wanted[last + 1 : last + 1 + LONG].sum() == LONG
    ]
    if not bursts:
        return None
    spent = [float((rate[first:last] - flat.rate).sum()) * found.width_s for first, last in bursts]
    if max(spent) < CREDIT_S * flat.rate or _only_writes_wait(study, found, fast):
        return None
    first, last = bursts[0]
    at_s = float(found.from_s[last])
    return Bucket(found, flat, at_s, float(rate[first:last].mean()), max(spent), len(bursts))


def _only_writes_wait(study: Study, found: Windows, fast: NDArray[np.bool_]) -> bool:
    """Whether reads take as long in a burst as at the ceiling, although writes do not: then a write cache was full."""
    rises = []
    for op in (Op.READ, Op.WRITE):
        course = course_of(study, op)
        at = np.clip(np.searchsorted(found.from_s, course.from_s, side="right") - 1, 0, len(fast) - 1)
        in_burst, at_ceiling = course.log[fast[at]], course.log[found.wanted[at]]
        if min(len(in_burst), len(at_ceiling)) < LONG:
            return False
        rises.append(float(at_ceiling.mean() - in_burst.mean()))
    return rises[0] < rises[1] / 2


def find(study: Study, limits: Limits) -> Finding | None:
    """By the bucket, if the first rate was so much higher."""
    bucket = bucket_of(study)
    if bucket is None or bucket.before < limits["factor"] * bucket.after.rate:
        return None
    found, flat, at_s, credit = bucket.windows, bucket.after, bucket.at_s, bucket.credit
    line = timeline_of(study)
    texts = [
        f"{units.transferred(each)}/s" if flat.of_bytes else f"{units.count(each)} requests/s"
        for each in (bucket.before, flat.rate)
    ]
    spent = units.transferred(credit) if flat.of_bytes else units.requests(round(credit))
    until_s = float(line.edges_s[-1])
    again = f" That happened {bucket.times} times: credit came back in between." if bucket.times > 1 else ""
    begin = f"For {units.span(at_s)}" if bucket.times == 1 else f"Until {units.span(at_s)}"
    return DETECTOR.found(
        Severity.WARNING,
        f"{begin}, the storage completed {texts[0]}; from then on only {texts[1]}, although more was wanted. "
        f"The credit for the burst was about {spent}.{again}",
        Evidence(
            between(study, at_s, until_s, "completed_ns"),
            "overview.thrs" if flat.of_bytes else "overview.thrp",
            study.first_s,
            until_s,
        ),
        sure=(
            Confidence.HIGH if flat.windows >= 20 else Confidence.MEDIUM,
            f"After the burst, {flat.windows} windows of {units.span(found.width_s)} stay within "
            f"{units.percent(max(flat.spread, 0.001))} of the lower rate.",
        ),
        ruled_out=("A full write cache: that would slow writes down and not reads.",)
        if line.known[Op.READ].sum() and line.known[Op.WRITE].sum()
        else (),
        values={
            "at_s": at_s,
            "bytes_per_s" if flat.of_bytes else "requests_per_s": flat.rate,
            "before_per_s": bucket.before,
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
    (Threshold("factor", 1.1, Measured.NUMBER, "How many times as high the rate is at first."),),
    why_not=without_latency,
)
