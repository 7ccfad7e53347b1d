"""The outcome of gates for CI: JUnit XML, and a summary in Markdown."""

from __future__ import annotations

import os
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from iosonar.errors import UsageError, UserError
from iosonar.figures.model import Severity
from iosonar.report.gate import Judged, Outcome
from iosonar.report.outputs import write_whole
from iosonar.report.page import Summary, Table
from iosonar.text import plain, shown


class CaseOutcome(StrEnum):
    """The outcome of a test case."""

    PASSED = "passed"
    FAILED = "failed"
    """A condition holds."""
    UNDECIDED = "undecided"
    NOT_RUN = "not run"


ELEMENTS = {CaseOutcome.FAILED: "failure", CaseOutcome.UNDECIDED: "error", CaseOutcome.NOT_RUN: "skipped"}
OUTCOMES = {
    Outcome.HOLDS: CaseOutcome.FAILED,
    Outcome.FAILS: CaseOutcome.PASSED,
    Outcome.UNDECIDED: CaseOutcome.UNDECIDED,
}
MARKS = {Severity.BAD: "✗ ", Severity.WARNING: "⚠ ", Severity.GOOD: "✓ ", Severity.NEUTRAL: ""}
"""What a sentence begins with; the bullet of the list is enough for one that is neither good nor bad."""

JUNIT_MARK, MARKDOWN_MARK = '<testsuite name="iosonar ', "<!-- iosonar -->"
"""What tells that iosonar wrote a file."""

_SPECIAL = re.compile(r"([\\*_<>|\[\]#])")
"""Characters with a meaning in Markdown. Backticks stay: sentences have them around commands."""


@dataclass(frozen=True)
class Case:
    """A test case: a condition, or a leaf with all conditions."""

    group: str
    """What it belongs to, with points between levels."""
    name: str
    outcome: CaseOutcome
    text: str = ""
    """The reason, as sentences."""
    seconds: float = 0.0
    path: str = ""
    """Its name beside those of other groups, if `name` is not enough."""


def cases_of(group: str, judged: Sequence[Judged], subjects: Sequence[str]) -> list[Case]:
    """A case for each condition and subject; without conditions, one for each subject, which passes."""
    if not judged:
        return [Case(group, name, CaseOutcome.PASSED) for name in subjects]
    return [
        Case(f"{group}.{each.of}" if each.of else group, each.text, OUTCOMES[each.outcome], each.sentence)
        for each in judged
    ]


def may_be_replaced(path: Path) -> bool:
    """Whether no file would be lost: there is none, it is empty, or iosonar wrote it for CI."""
    if not path.is_file():
        return True
    with path.open("rb") as file:
        head = file.read(4096)
    return not head or any(mark.encode() in head for mark in (JUNIT_MARK, MARKDOWN_MARK))


def refuse_same_file(*outputs: Path | None) -> None:
    """Refuses two outputs in one file, of which the later would replace the earlier."""
    seen: dict[str, Path] = {}
    for path in filter(None, outputs):
        real = os.path.realpath(path)
        if other := seen.get(real):
            raise UsageError(f"{shown(other)} and {shown(path)} are one file; give each output a name of its own")
        seen[real] = path


def refuse_unwritable(*outputs: Path | None) -> None:
    """Refuses files for CI that could not be written at the end: checked before the work begins."""
    refuse_same_file(*outputs)
    for path in filter(None, outputs):
        if path.is_dir():
            raise UserError(f"{shown(path)} is a directory; name a file")
        if not path.parent.is_dir():
            raise UserError(f"cannot write {shown(path)}: directory {shown(path.parent)} does not exist; create it")
        _refuse_other_file(path)


def _refuse_other_file(path: Path) -> None:
    if not may_be_replaced(path):
        raise UserError(f"{shown(path)} exists, and iosonar did not write it; name another file, or remove it")


def write_junit(suite: str, cases: Sequence[Case], path: Path, *, skip_undecided: bool = False) -> None:
    """Writes JUnit XML: undecided cases are errors, or skipped, as those not run. Replaces no file but its own."""
    _refuse_other_file(path)
    of = {**ELEMENTS, CaseOutcome.UNDECIDED: "skipped"} if skip_undecided else ELEMENTS

    def number(element: str) -> str:
        return str(sum(of.get(case.outcome) == element for case in cases))

    root = ElementTree.Element(
        "testsuite",
        name=f"iosonar {suite}",
        tests=str(len(cases)),
        failures=number("failure"),
        errors=number("error"),
        skipped=number("skipped"),
        time=f"{sum(case.seconds for case in cases):.3f}",
    )
    for case in cases:
        names = {"classname": plain(case.group), "name": plain(case.name)}
        element = ElementTree.SubElement(root, "testcase", names, time=f"{case.seconds:.3f}")
        if case.outcome in of:
            text = plain(case.text)
            ElementTree.SubElement(element, of[case.outcome], message=text).text = text
    tree = ElementTree.ElementTree(root)
    ElementTree.indent(tree)
    write_whole(path, lambda unfinished: tree.write(unfinished, encoding="utf-8", xml_declaration=True))


def write_markdown(summary: Summary, cases: Sequence[Case], path: Path, tables: Sequence[Table] = ()) -> None:
    """Writes what a page begins with, its tables, and the cases, as Markdown. Replaces no file but its own."""
    _refuse_other_file(path)
    content = "\n".join(_markdown(summary, cases, (*summary.tables, *tables))) + "\n"
    write_whole(path, lambda unfinished: _write(content, unfinished))


def _write(content: str, path: Path) -> None:
    path.write_text(content, encoding="utf-8")


def _markdown(summary: Summary, cases: Sequence[Case], tables: Sequence[Table]) -> Iterator[str]:
    yield f"## {_text(summary.title)}"
    yield MARKDOWN_MARK
    for sentence in summary.lead:
        yield from ("", _text(sentence))
    if summary.banners:
        yield ""
    for banner in summary.banners:
        head = f"**{_text(banner.head)}** " if banner.head else ""
        yield f"- {MARKS[banner.severity]}{head}{_text(banner.text)}"
        yield from (f"  {number}. {_text(step)}" for number, step in enumerate(banner.steps, 1))
    decided = [case for case in cases if case.text or case.outcome is not CaseOutcome.PASSED]
    if decided:
        rows = tuple((case.path or case.name, case.outcome.value, case.text) for case in decided)
        yield from _table(Table("Conditions", ("", "outcome", ""), rows))
    for table in tables:
        yield from _table(table)


def _table(table: Table) -> Iterator[str]:
    yield ""
    if table.title:
        yield from (f"### {_text(table.title)}", "")
    yield _row(table.columns)
    yield _row([":--", *["--:"] * (len(table.columns) - 1)])
    yield from (_row([_text(cell) for cell in row]) for row in table.rows)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _text(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", plain(text))
