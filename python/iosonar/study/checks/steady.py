"""Whether latency was steady. This does not affect the grade."""

from __future__ import annotations

from iosonar.study.check import Check, Topic
from iosonar.study.grades import Grade
from iosonar.study.requests import LATENCY, Study
from iosonar.study.steady import steadiness


def steady(study: Study) -> Check:
    """Whether, and from when on, latency was steady."""
    if not study.distribution(LATENCY):
        return Check("steady", None, about=Topic.TIMES, is_graded=False)
    found = steadiness(study)
    values = {"since_s": found.since_s}
    return Check("steady", found.grade or Grade.GOOD, values, sentence=found.text, about=Topic.TIMES, is_graded=False)
