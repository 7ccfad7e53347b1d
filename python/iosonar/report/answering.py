"""Shared by the first screens of all pages: answers made of findings, verdicts and doubts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from iosonar import units
from iosonar.figures.model import Severity
from iosonar.findings.finding import Finding
from iosonar.quantities.distribution import enough_for
from iosonar.report.findings import SEVERITIES
from iosonar.report.page import Answer
from iosonar.study.grades import Grade
from iosonar.study.judgement import Judgement

FAR = 10.0
"""Requests or calls stand out if so many times as slow as the median."""


def of_finding(question: str, finding: Finding, lead: str = "") -> Answer:
    """A finding as an answer: what was seen after `lead`, and where."""
    text = f"{lead}{finding.seen}"
    return Answer(question, SEVERITIES[finding.severity], text, finding.evidence.diagram, finding.number)


def not_known(question: str, why: str) -> Answer:
    """No answer, as times say nothing."""
    return Answer(question, Severity.NEUTRAL, f"Not known: {why}.")


def of_verdict(question: str, judgement: Judgement, *, yes: str, reasons: Sequence[str]) -> Answer:
    """A verdict in a sentence: `yes` if it is good, else the first of the reasons, which are clauses."""
    if judgement.grade is Grade.GOOD:
        return Answer(question, Severity.GOOD, yes)
    more = f", and {units.counted(len(reasons) - 1, 'more reason')}" if len(reasons) > 1 else ""
    is_bad = judgement.grade is Grade.BAD
    word = "No" if is_bad else "With limits"
    return Answer(question, Severity.BAD if is_bad else Severity.WARNING, f"{word}: {reasons[0].rstrip('.')}{more}.")


def yes_as(sentence: str, yes: str = "Yes") -> str:
    """Yes, with what the fidelity says."""
    return f"{yes}. {upper(sentence.rstrip('.'))}." if sentence else f"{yes}."


def upper(text: str) -> str:
    """At the start of a sentence; p99 and the like stay."""
    return text if text[1:2].isdigit() else f"{text[:1].upper()}{text[1:]}"


def percentile_known(count: int, noun: str) -> str:
    """Up to which percentile there are enough requests or calls, as a sentence and a space."""
    highest = next((share for share in (0.9999, 0.999, 0.99, 0.5) if enough_for(share, count)), None)
    return f"Enough {noun} for a p{highest * 100:g}. " if highest else f"Too few {noun} for percentiles. "


def tail_of(count: int) -> tuple[float, str]:
    """The share of the highest percentile that so many times have, and what it is called."""
    share = next((share for share in (0.999, 0.99) if enough_for(share, count)), 1.0)
    return share, "the slowest one" if share == 1.0 else f"p{share * 100:g}"


def finished(
    found: Sequence[Answer], is_fake: bool, findings: Sequence[Finding], homes: Mapping[str, str] | None = None
) -> tuple[Answer, ...]:
    """Answers without praise of a made-up device, which is neither good nor bad, and without repetition."""
    praise = Severity.NEUTRAL if is_fake else Severity.GOOD
    once = without_repetition(found, {each.number: each.seen for each in findings}, homes or {})
    return tuple(replace(each, severity=praise) if each.severity is Severity.GOOD else each for each in once)


def without_repetition(
    found: Sequence[Answer], seen: Mapping[str, str], homes: Mapping[str, str] | None = None
) -> Iterator[Answer]:
    """The answers. What was `seen`, by the number of its finding, appears once: at its home, or where it is first."""
    first = dict(homes or {})
    for each in found:
        text = seen.get(each.number, "")
        if not text or not each.text.endswith(text):
            yield each
            continue
        question = first.setdefault(each.number, each.question)
        same = f"{each.text.removesuffix(text)}See the answer to “{question}”."
        yield replace(each, text=same) if question != each.question else each
