"""The gate of a campaign, for CI: conditions on each leaf, an exit code, JUnit XML and JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from iosonar.campaign.report.results import LeafResult, read_results
from iosonar.report.gate import HOLDS, UNDECIDED, Condition, GateScope, Judged, Outcome, Subject
from iosonar.report.gate import judge as judge_subject
from iosonar.report.gate_files import OUTCOMES, Case, CaseOutcome
from iosonar.text import plain


@dataclass(frozen=True)
class LeafJudgement:
    """A leaf and the conditions that hold for it or are undecided, with their reasons."""

    leaf: str
    outcome: CaseOutcome
    reasons: tuple[str, ...]
    """Sentences without the name of the leaf."""
    sentences: tuple[str, ...]
    """The same with it."""
    seconds: float


@dataclass(frozen=True)
class Gate:
    """All conditions and their outcome for each leaf."""

    conditions: tuple[str, ...]
    leaves: tuple[LeafJudgement, ...]

    def number(self, outcome: CaseOutcome) -> int:
        """The number of leaves with this outcome."""
        return sum(leaf.outcome is outcome for leaf in self.leaves)

    @property
    def exit_code(self) -> int:
        """0: no condition holds; 3: one holds; 4: none holds, but one is undecided. 0 without conditions."""
        if not self.conditions:
            return 0
        if self.number(CaseOutcome.FAILED):
            return HOLDS
        return UNDECIDED if self.number(CaseOutcome.PASSED) < len(self.leaves) or not self.leaves else 0

    def as_json(self) -> dict[str, Any]:
        """The gate for programs."""
        return {
            "conditions": list(self.conditions),
            "exit_code": self.exit_code,
            "leaves": [
                {"leaf": leaf.leaf, "outcome": str(leaf.outcome), "reasons": list(leaf.reasons)} for leaf in self.leaves
            ],
        }

    def lines(self) -> Iterator[str]:
        """A line for each leaf that does not pass."""
        for leaf in self.leaves:
            if self.conditions and leaf.outcome is not CaseOutcome.PASSED:
                yield from leaf.sentences

    @property
    def cases(self) -> list[Case]:
        """A test case for each leaf."""
        return [_case(leaf) for leaf in self.leaves]


def parse_conditions(texts: Sequence[str]) -> list[Condition]:
    """Parses conditions. Raises UsageError for the first that is not one."""
    return [Condition.parse(text, GateScope.LEAVES) for text in texts]


def judge(
    top: Path,
    conditions: Sequence[Condition],
    results: Sequence[LeafResult] | None = None,
    *,
    left_out: Sequence[str] = (),
) -> Gate:
    """Judges all leaves of a campaign. `results` are those of `read_results` with the same conditions, if known.

    Without conditions, leaves that are done pass. Leaves that were left out count only if they are done.
    """
    names = {plain(name) for name in left_out}
    leaves = [
        leaf
        for leaf in (read_results(top, conditions) if results is None else results)
        if leaf.done or leaf.name not in names
    ]
    return Gate(tuple(each.text for each in conditions), tuple(_judged(leaf, conditions) for leaf in leaves))


def _judged(leaf: LeafResult, conditions: Sequence[Condition]) -> LeafJudgement:
    subject = _subject(leaf)
    found = [judge_subject(condition, subject) for condition in conditions]
    seconds = max(leaf.ended - leaf.started, 0.0) if leaf.ended > leaf.started else 0.0

    def judged(outcome: CaseOutcome, decisive: Sequence[Judged]) -> LeafJudgement:
        reasons, sentences = zip(*((f"{each.text} ({each.why})", each.sentence) for each in decisive), strict=True)
        return LeafJudgement(leaf.name, outcome, reasons, sentences, seconds)

    not_run = CaseOutcome.UNDECIDED if leaf.done or leaf.state in ("failed", "interrupted") else CaseOutcome.NOT_RUN
    if holding := [each for each in found if each.outcome is Outcome.HOLDS]:
        return judged(OUTCOMES[Outcome.HOLDS], holding)
    if undecided := [each for each in found if each.outcome is Outcome.UNDECIDED]:
        return judged(not_run, undecided)
    if not leaf.done and not conditions:
        reason = f"the leaf is {leaf.state}: {leaf.reason}"
        return LeafJudgement(leaf.name, not_run, (reason,), (reason,), seconds)
    return LeafJudgement(leaf.name, CaseOutcome.PASSED, (), (), seconds)


def _subject(leaf: LeafResult) -> Subject:
    return Subject(
        leaf.name,
        lambda metric: leaf.metrics.get(metric, math.nan),
        leaf.doubt,
        leaf.fidelity,
        leaf.unfilled,
        leaf.grade,
        leaf.state,
        leaf.reason,
    )


def _case(leaf: LeafJudgement) -> Case:
    parent, _, name = leaf.leaf.rpartition("/")
    group = ".".join(["campaign", *parent.split("/")]) if parent else "campaign"
    return Case(group, name, leaf.outcome, "; ".join(leaf.reasons), leaf.seconds, leaf.leaf)
