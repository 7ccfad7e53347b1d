"""A detector: what looks for one finding, with all that is known before a run is seen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from iosonar.findings.finding import Confidence, Evidence, Finding, Severity
from iosonar.findings.thresholds import Limits, Threshold
from iosonar.study.base import BaseStudy
from iosonar.study.check import Topic

S = TypeVar("S", bound=BaseStudy)


@dataclass(frozen=True)
class Detector(Generic[S]):
    """Looks for one finding in a study."""

    number: str
    name: str
    title: str
    meaning: str
    advice: tuple[str, ...]
    find: Callable[[S, Limits], Finding | None]
    """Returns what it found, or None. Needs what `why_not` does not miss."""
    thresholds: tuple[Threshold, ...] = ()
    about: Topic = Topic.TIMES
    """What it is about: a finding on times says nothing about the storage if the replay was not faithful."""
    why_not: Callable[[S], str] = lambda study: ""
    """Why it cannot be looked for in a study, as a clause; empty if it can."""
    find_if_late: Callable[[S, Limits], Finding | None] | None = None
    """What it finds without the times of a replay that was not faithful."""

    def found(
        self,
        severity: Severity,
        seen: str,
        evidence: Evidence,
        *,
        sure: tuple[Confidence, str],
        ruled_out: Sequence[str] = (),
        values: Mapping[str, Any] | None = None,
        meaning: str = "",
        advice: Sequence[str] = (),
    ) -> Finding:
        """A finding of this detector; meaning and advice are the usual ones if none are given."""
        return Finding(
            self.number,
            self.name,
            self.title,
            severity,
            seen,
            evidence,
            meaning or self.meaning,
            tuple(ruled_out),
            tuple(advice) or self.advice,
            *sure,
            {name: plain_number(value) for name, value in (values or {}).items()},
        )


def plain_number(value: Any) -> float | int | None:
    """A number of Python without needless digits; None for what is not finite."""
    if value is None:
        return None
    if isinstance(value, bool | int):
        return int(value)
    number = float(value)
    return float(f"{number:.6g}") if number - number == 0 else None
