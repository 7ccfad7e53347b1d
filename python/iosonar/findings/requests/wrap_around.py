"""S13: the load spans more than the target, and wraps around at its end."""

from __future__ import annotations

from iosonar import units
from iosonar.findings.detector import Detector
from iosonar.findings.finding import Confidence, Evidence, Finding, Severity
from iosonar.findings.thresholds import Limits
from iosonar.study.check import Topic
from iosonar.study.grades import Grade
from iosonar.study.of_requests import judgement_of
from iosonar.study.requests import Study


def find(study: Study, limits: Limits) -> Finding | None:
    """By the check of the verdict."""
    check = judgement_of(study)["wrap_around"]
    factor = check.values.get("factor")
    if check.grade is not Grade.WARNING or factor is None:
        return None
    return DETECTOR.found(
        Severity.WARNING,
        f"The load spans {units.number(factor)} times the size of the target: requests beyond its end went to its "
        "start.",
        Evidence("source_sector <> sector", "position.realtime"),
        sure=(Confidence.HIGH, "Both sizes are known."),
        values={"factor": factor},
    )


DETECTOR = Detector[Study](
    "S13",
    "wrap-around",
    "The target is too small",
    "Areas that were far apart on the original device share places on this one. Data is used again sooner, so caches "
    "look "
    "better than they are, and seeks are shorter.",
    (
        "Replay on a target of about the original's size: a larger volume, or several devices as one.",
        "If there is none, replay only a part of the original's address space (`iosonar convert --edit`).",
    ),
    find,
    about=Topic.RESULT,
    why_not=lambda study: "" if study.requests.is_run else "a load was not replayed",
)
