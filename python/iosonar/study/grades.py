"""The grades of a judgement."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class Grade(StrEnum):
    """A grade. What is not known has none."""

    GOOD = "good"
    WARNING = "warning"
    BAD = "bad"

    @property
    def rank(self) -> int:
        """0 for the best grade."""
        return list(Grade).index(self)


def worst(grades: Iterable[Grade | None]) -> Grade:
    """The worst of the known grades; good without any."""
    return max((grade for grade in grades if grade is not None), key=lambda grade: grade.rank, default=Grade.GOOD)
