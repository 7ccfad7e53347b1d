"""A check of a judgement: a grade, the numbers behind it, and both in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from iosonar.study.grades import Grade


class Topic(Enum):
    """What a check is about, which determines when it says something."""

    RESULT = "result"
    """What was done: it always says something."""
    TIMES = "times"
    """Times: they say nothing about the storage if there is a doubt, see `Judgement.doubt`."""
    REPLAY = "replay"
    """The replayer itself: it says nothing if the result is fake."""


@dataclass(frozen=True)
class Check:
    """The outcome of a check of a run. `grade` is None where the value is not known."""

    name: str
    grade: Grade | None
    values: Mapping[str, bool | int | float | None] = field(default_factory=dict)
    """The numbers, as in docs/schemas/verdict.json: times in seconds, shares of 1."""
    reason: str = ""
    """Why the grade is not good, as a clause."""
    sentence: str = ""
    """What was found, whatever the grade; empty if that is not worth a line."""
    head: str = ""
    """A heading for the sentence, with its colon."""
    about: Topic = Topic.RESULT
    is_graded: bool = True
    """Whether it affects the grade of the whole."""
