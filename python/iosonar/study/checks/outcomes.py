"""Requests that failed, or were never submitted."""

from __future__ import annotations

from iosonar.quantities.outcomes import FAILED, SKIPPED
from iosonar.study.check import Check
from iosonar.study.grades import Grade
from iosonar.study.requests import Study

MAX_DROPPED = 0.05
"""The share of dropped requests above which the manual recommends another conflict mode."""


def errors(study: Study) -> Check:
    """Requests that ended with an error, short, corrupt, or never."""
    return _count("errors", study.outcomes.of(*FAILED), Grade.BAD, "failed", "No request failed")


def dropped(study: Study) -> Check:
    """Requests that were left out because of an overlap."""
    number = study.outcomes.of("dropped")
    grade = Grade.BAD if number > MAX_DROPPED * max(study.span.requests, 1) else Grade.WARNING
    return _count("dropped", number, grade, "dropped", "No request was dropped")


def skipped(study: Study) -> Check:
    """Requests that were left out for other reasons."""
    number = study.outcomes.of(*SKIPPED) - study.outcomes.of("dropped")
    return _count("skipped", number, Grade.WARNING, "skipped", "")


def _count(name: str, number: int, grade: Grade, participle: str, none: str) -> Check:
    words = counted(number, participle)
    return Check(name, grade if number else Grade.GOOD, {"requests": number}, words, words if number else none)


def counted(number: int, participle: str) -> str:
    """A phrase such as `2 requests were dropped`, or `1 request failed`."""
    verb = "" if participle == "failed" else " was" if number == 1 else " were"
    return f"{number:,} request{'' if number == 1 else 's'}{verb} {participle}"
