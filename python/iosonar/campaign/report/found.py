"""A finding of a leaf, as far as a campaign needs it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from iosonar.findings.diagnosis import Diagnosis
from iosonar.findings.finding import Finding, Severity
from iosonar.report.answers import RATED
from iosonar.text import plain

RATES = ("best_per_s", "capacity_per_s", "requests_per_s")
"""The values of such findings that are a rate."""


@dataclass(frozen=True)
class Found:
    """A finding of a leaf, as far as a campaign needs it."""

    number: str
    severity: Severity
    seen: str
    advice: str
    capacity_per_s: float | None = None
    """The rate that the storage completes, of findings that know it."""

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Found:
        """From types of JSON."""
        return cls(**{**values, "severity": Severity(values["severity"])})


def found_in(diagnosis: Diagnosis) -> list[dict[str, Any]]:
    """The findings in types of JSON, the worst first."""
    return [_as_json(each) for each in diagnosis.findings]


def _as_json(each: Finding) -> dict[str, Any]:
    return {
        "number": each.number,
        "severity": str(each.severity),
        "seen": plain(each.seen),
        "advice": plain(each.advice[0]) if each.advice else "",
        "capacity_per_s": next((each.values[name] for name in RATES if each.values.get(name)), None)
        if each.number in RATED
        else None,
    }
