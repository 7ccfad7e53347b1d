"""A finding: what was seen in a run, in words that need no manual."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Severity(StrEnum):
    """How much a finding matters."""

    INFO = "info"
    WARNING = "warning"
    BAD = "bad"

    @property
    def rank(self) -> int:
        """0 for the mildest."""
        return list(Severity).index(self)


class Confidence(StrEnum):
    """How sure a finding is."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"

    @property
    def rank(self) -> int:
        """0 for the least sure."""
        return list(Confidence).index(self)


@dataclass(frozen=True)
class Evidence:
    """Where a finding shows: rows, and a place in a diagram."""

    filter: str
    """A condition on the rows of `iosonar sql`: its view, `requests` or `calls`, has those that show it."""
    diagram: str
    """The name of the diagram that shows it best."""
    from_s: float | None = None
    to_s: float | None = None
    """The part of the time axis; None for all."""
    low: float | None = None
    high: float | None = None
    """The part of the other axis, in its unit; None for all."""

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "filter": self.filter,
            "diagram": self.diagram,
            "from_s": self.from_s,
            "to_s": self.to_s,
            "low": self.low,
            "high": self.high,
        }


@dataclass(frozen=True)
class Finding:
    """One finding. All texts are sentences."""

    number: str
    """Such as S07: it stays the same in all versions."""
    name: str
    title: str
    severity: Severity
    seen: str
    """What was seen, with figures."""
    evidence: Evidence
    meaning: str
    """What it usually means."""
    ruled_out: tuple[str, ...]
    """What else could look like it, and why it is not that."""
    advice: tuple[str, ...]
    confidence: Confidence
    why_sure: str
    values: Mapping[str, float | int | None] = field(default_factory=dict)
    """The numbers: times in seconds, amounts in bytes, shares of 1."""

    def as_json(self) -> dict[str, Any]:
        """The finding for programs, as docs/schemas/diagnosis.json describes it."""
        return {
            "number": self.number,
            "name": self.name,
            "title": self.title,
            "severity": self.severity,
            "seen": self.seen,
            "evidence": self.evidence.as_json(),
            "meaning": self.meaning,
            "ruled_out": list(self.ruled_out),
            "advice": list(self.advice),
            "confidence": self.confidence,
            "why_sure": self.why_sure,
            "values": dict(self.values),
        }
