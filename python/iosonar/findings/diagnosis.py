"""All findings of a study, the worst first, and what was not looked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from iosonar.findings.detector import Detector
from iosonar.findings.finding import Confidence, Finding, Severity
from iosonar.findings.thresholds import Limits, limits_of
from iosonar.study.base import BaseStudy
from iosonar.study.check import Topic

S = TypeVar("S", bound=BaseStudy)


@dataclass(frozen=True)
class Doubt:
    """Why the times of a run say nothing about a storage, as a clause; empty if they do."""

    why: str = ""
    hides: bool = False
    """Whether findings on times are left out; else they carry the doubt."""


@dataclass(frozen=True)
class Diagnosis:
    """What was found, and what could not be looked for: the number of each finding, and why."""

    files: tuple[str, ...]
    findings: tuple[Finding, ...]
    not_checked: tuple[tuple[str, str], ...] = ()

    @property
    def worst(self) -> Severity | None:
        """The severity of the worst finding; None without any."""
        return max((each.severity for each in self.findings), key=lambda each: each.rank, default=None)

    def fails(self, limit: Severity) -> bool:
        """Whether a finding is as bad as that, or worse."""
        return self.worst is not None and self.worst.rank >= limit.rank

    def as_json(self) -> dict[str, Any]:
        """For programs, as docs/schemas/diagnosis.json describes it."""
        return {
            "schema_version": 1,
            "files": list(self.files),
            "findings": [each.as_json() for each in self.findings],
            "not_checked": [{"number": number, "why": why} for number, why in self.not_checked],
        }


def diagnose(
    study: S, detectors: Sequence[Detector[S]], doubt: Doubt, overrides: Mapping[str, Limits] | None = None
) -> Diagnosis:
    """Looks for all findings; `overrides` are thresholds by the number of their finding."""
    found, missing = [], []
    for detector in detectors:
        is_doubtful = bool(doubt.why) and detector.about is Topic.TIMES
        is_hidden = is_doubtful and doubt.hides
        find = detector.find_if_late if is_hidden else detector.find
        why_not = doubt.why if find is None else detector.why_not(study)
        if find is None or why_not:
            missing.append((detector.number, why_not))
            continue
        limits = limits_of(detector.thresholds, (overrides or {}).get(detector.number, {}))
        finding = find(study, limits)
        if finding is not None:
            found.append(_doubtful(finding, doubt.why) if is_doubtful and not is_hidden else finding)
        elif is_hidden:
            missing.append((detector.number, doubt.why))
    found.sort(key=lambda each: (-each.severity.rank, -each.confidence.rank, each.number))
    return Diagnosis(tuple(file.path for file in study.files), tuple(found), tuple(missing))


def _doubtful(finding: Finding, why: str) -> Finding:
    """The same, for a run that says nothing about a storage."""
    text = f"{finding.why_sure} But {why}: it says nothing about a real storage."
    sure = min(finding.confidence, Confidence.MEDIUM, key=lambda each: each.rank)
    return replace(finding, confidence=sure, why_sure=text)
