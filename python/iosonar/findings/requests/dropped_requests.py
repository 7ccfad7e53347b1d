"""S22: requests were dropped, because they overlapped others in flight."""

from __future__ import annotations

from iosonar import units
from iosonar.findings.detector import Detector
from iosonar.findings.finding import Confidence, Evidence, Finding, Severity
from iosonar.findings.thresholds import Limits
from iosonar.study.check import Topic
from iosonar.study.checks.outcomes import MAX_DROPPED
from iosonar.study.grades import Grade
from iosonar.study.of_requests import judgement_of
from iosonar.study.requests import Study


def find(study: Study, limits: Limits) -> Finding | None:
    """By the check of the verdict: more than a few."""
    check = judgement_of(study)["dropped"]
    if check.grade is not Grade.BAD:
        return None
    number = study.outcomes.of("dropped")
    share = number / max(study.span.requests, 1)
    return DETECTOR.found(
        Severity.BAD,
        f"{units.requests(number)} ({units.percent(share, MAX_DROPPED)}) were dropped: each overlapped one in flight.",
        Evidence("outcome = 'dropped'", "position.setpoint"),
        sure=(Confidence.HIGH, "The replayer counts what it drops."),
        values={"dropped": number, "share": share},
    )


DETECTOR = Detector[Study](
    "S22",
    "dropped-requests",
    "Many requests were dropped",
    "The storage is so slow, or the load so dense in few places, that many requests overlapped an earlier "
    "one. "
    "Without them the load is lighter than the original, so throughput and latency look better than they are.",
    (
        "Replay with another `--conflicts` mode, such as `partial`, which delays such requests instead of dropping "
        "them.",
        "Compare the two: if delays run away then, the storage is too slow for this load.",
    ),
    find,
    about=Topic.RESULT,
    why_not=lambda study: "" if study.requests.is_run else "a load was not replayed",
)
