"""Findings as text, for terminals."""

from __future__ import annotations

import re
import shlex
import textwrap
from collections.abc import Iterator, Sequence

from iosonar.findings.diagnosis import Diagnosis
from iosonar.findings.finding import Finding
from iosonar.text import plain
from iosonar.units import counted

INDENT = "    "
LABELS = 15
"""Columns of a label with its indentation."""


def lines_of(diagnosis: Diagnosis, view: str, width: int) -> Iterator[str]:
    """All findings with their details; `view` is that of `iosonar sql`."""
    if not diagnosis.findings:
        yield "Nothing found, but not all was looked for." if diagnosis.not_checked else "Nothing found."
    for number, finding in enumerate(diagnosis.findings):
        if number:
            yield ""
        yield from _finding(finding, diagnosis.files, view, width)
    if diagnosis.not_checked:
        yield ""
        yield from _not_checked(diagnosis.not_checked, width)


def brief_lines(findings: Sequence[Finding], width: int) -> Iterator[str]:
    """What was seen, a finding each."""
    for finding in findings:
        yield from _wrapped(f"{finding.number} {finding.severity:8} ", f"{finding.title}: {finding.seen}", width)


def _finding(finding: Finding, files: Sequence[str], view: str, width: int) -> Iterator[str]:
    yield from brief_lines([finding], width)
    yield from _labelled("usually means", [finding.meaning], width)
    yield from _labelled("ruled out", finding.ruled_out, width)
    yield from _labelled("advice", finding.advice, width)
    # One line, so that it can be copied.
    yield f"{INDENT}{'rows':{LABELS}}{command_of(finding, files, view)}"
    yield from _labelled("confidence", [f"{finding.confidence}: {finding.why_sure}"], width)


def command_of(finding: Finding, files: Sequence[str], view: str) -> str:
    """The command that prints the rows of a finding."""
    query = f"SELECT * FROM {view} WHERE {finding.evidence.filter}"
    return f"iosonar sql {shlex.join(map(plain, files))} {_quoted(query)}"


VIEWED = (
    "latency.realtime",
    "latency.flying",
    "overview.thrp",
    "delay.realtime",
    "position.realtime",
    "latency.completed",
)
"""The diagrams of `iosonar view`; the first one shows where others have their part."""


def view_command(finding: Finding, file: str) -> str:
    """The command that opens the part of a diagram that shows a finding, to zoom in to single requests."""
    evidence = finding.evidence
    words = ["iosonar", "view", plain(file), "--figure"]
    words.append(evidence.diagram if evidence.diagram in VIEWED else VIEWED[0])
    if evidence.from_s is not None and evidence.to_s is not None and evidence.from_s < evidence.to_s:
        words += ["--from", f"{evidence.from_s:.9g}", "--to", f"{evidence.to_s:.9g}"]
    return shlex.join(words)


def _not_checked(missing: Sequence[tuple[str, str]], width: int) -> Iterator[str]:
    """Those of the same reason together."""
    reasons: dict[str, list[str]] = {}
    for number, why in missing:
        reasons.setdefault(why, []).append(number)
    yield f"Not looked for: {counted(len(missing), 'finding')}"
    for why, numbers in reasons.items():
        yield from _wrapped(f"{INDENT}", f"{', '.join(numbers)}: {why}", width)


def _labelled(label: str, texts: Sequence[str], width: int) -> Iterator[str]:
    for text in texts:
        yield from _wrapped(f"{INDENT}{label:{LABELS}}", text, width)
        label = ""


def _wrapped(head: str, text: str, width: int) -> Iterator[str]:
    rest = " " * len(head)
    return iter(
        textwrap.wrap(text, max(width, 40), initial_indent=head, subsequent_indent=rest, break_on_hyphens=False)
        or [head.rstrip()]
    )


def _quoted(query: str) -> str:
    """A word of a shell; in double quotes if possible, as SQL has texts in single ones."""
    return shlex.quote(query) if re.search(r'["$`\\!]', query) else f'"{query}"'
