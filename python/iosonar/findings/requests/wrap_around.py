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
from iosonar.study.runs import is_extreme


def find(study: Study, limits: Limits) -> Finding | None:
    """By the check of the verdict, and the size of a simulated device."""
    check = judgement_of(study)["wrap_around"]
    factor = check.values.get("factor") if check.grade is Grade.WARNING else _of_simulated(study)
    if factor is None:
        return None
    return DETECTOR.found(
        Severity.WARNING,
        f"The load spans {units.number(factor)} times the size of the target: requests beyond its end went to its "
        "start.",
        Evidence("source_sector <> sector", "position.realtime"),
        sure=(Confidence.HIGH, "Both sizes are known."),
        values={"factor": factor},
    )


def _of_simulated(study: Study) -> float | None:
    """How much too small a simulated device is; the verdict is only about real ones."""
    factors = [
        float(factor)
        for file in study.requests.files
        if file.run.engine == "simulate" and (factor := file.run.statistics.wrap_factor) is not None
    ]
    return max((factor for factor in factors if is_extreme(factor)), default=None)


DETECTOR = Detector[Study](
    "S13",
    "wrap-around",
    "The target is too small",
    "Areas that were far apart on the original device share places on this one. Data is used again sooner, so caches "
    "look "
    "better than they are, and seeks are shorter.",
    (
        "Replay on a target of about the original's size: a larger volume, or several devices as one.",
        "If there is none, replay only a part of the original's address space (`iosonar edit` with `clip`).",
    ),
    find,
    about=Topic.RESULT,
    why_not=lambda study: "" if study.requests.is_run else "a load was not replayed",
)
