"""Findings on a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from iosonar.figures.model import Severity
from iosonar.findings.diagnosis import Diagnosis
from iosonar.findings.finding import Finding
from iosonar.findings.finding import Severity as Matters
from iosonar.findings.text import command_of, view_command
from iosonar.report.page import ShownFinding

SEVERITIES = {Matters.INFO: Severity.NEUTRAL, Matters.WARNING: Severity.WARNING, Matters.BAD: Severity.BAD}


def shown_findings(diagnosis: Diagnosis, view: str) -> tuple[ShownFinding, ...]:
    """All findings, the worst first; `view` is that of `iosonar sql`."""
    return tuple(_shown(finding, diagnosis.files, view) for finding in diagnosis.findings)


def _shown(finding: Finding, files: Sequence[str], view: str) -> ShownFinding:
    evidence = finding.evidence
    has_part = evidence.from_s is not None and evidence.to_s is not None
    return ShownFinding(
        SEVERITIES[finding.severity],
        f"{finding.number} {finding.title}",
        finding.seen,
        tuple(_details(finding, files, view)),
        evidence.diagram,
        evidence.from_s if has_part else None,
        evidence.to_s if has_part else None,
    )


def _details(finding: Finding, files: Sequence[str], view: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    yield "Usually means", (finding.meaning,)
    if finding.ruled_out:
        yield "Ruled out", finding.ruled_out
    yield "Advice", finding.advice
    yield "Rows", (f"`{command_of(finding, files, view)}`",)
    if view == "requests" and len(files) == 1:
        yield "Single requests", (f"`{view_command(finding, files[0])}`",)
    yield "Sure", (f"{finding.confidence}: {finding.why_sure}",)
