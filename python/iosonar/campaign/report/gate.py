"""The gate of a campaign, for CI: conditions on each leaf, an exit code, JUnit XML and JSON."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from iosonar import units
from iosonar.campaign.report.results import SHARES, Fidelity, LeafResult, read_results
from iosonar.errors import UsageError
from iosonar.report.grammar import LimitUnit, Parsed, parse
from iosonar.report.outputs import write_whole
from iosonar.study.grades import Grade
from iosonar.text import plain

HOLDS = 3
"""The exit code if a condition holds."""

UNDECIDED = 4
"""The exit code if no condition holds, but one is undecided."""

TIMES = (*SHARES, "mean", "max")
COUNTS = ("errors", "dropped", "requests", "iops")
SHARE = "throughput"
VERDICT, STATE = "verdict", "state"
VERDICTS = (*(fidelity.value for fidelity in Fidelity), *(grade.value for grade in Grade))
STATES = ("done", "failed", "interrupted", "running", "finishing", "to do")

ON_STORAGE = (*TIMES, SHARE, "iops")
"""Metrics that say nothing about the storage if the replay was not faithful."""

EXAMPLES = "'p99 > 10ms', 'delay.p99 > 1ms', 'throughput < 95%', 'errors > 0', 'verdict = unfaithful', 'state != done'"


@dataclass(frozen=True)
class LeafCondition:
    """A condition on a leaf, such as `p99 > 10ms`. `metric` is a key of `LeafResult.metrics`, `verdict` or `state`."""

    parsed: Parsed
    metric: str

    @property
    def text(self) -> str:
        """The condition as typed."""
        return self.parsed.text

    @classmethod
    def parse(cls, text: str) -> LeafCondition:
        """Parses a condition. Raises UsageError if it is not one."""
        found = parse(text)
        if found is None:
            raise UsageError(f"invalid condition {text!r}: write it like {EXAMPLES}")
        metric = found.metric.removeprefix("latency.")
        if metric in (VERDICT, STATE):
            known = VERDICTS if metric == VERDICT else STATES
            if found.unit is not LimitUnit.WORD or found.word not in known:
                raise UsageError(f"invalid condition {text!r}: compare {metric} by = or != with {', '.join(known)}")
        elif metric.removeprefix("delay.") in TIMES:
            if found.unit is not LimitUnit.SECONDS:
                raise UsageError(f"invalid condition {text!r}: {metric} needs a time with its unit, such as 10ms")
        elif metric == SHARE:
            if found.unit is not LimitUnit.PERCENT:
                raise UsageError(f"invalid condition {text!r}: {metric} needs a percentage of the demand, such as 95%")
        elif metric in COUNTS:
            if found.unit is not LimitUnit.NONE:
                raise UsageError(f"invalid condition {text!r}: {metric} needs a number without a unit")
        else:
            names = ", ".join((*TIMES, *(f"delay.{name}" for name in TIMES), SHARE, *COUNTS, VERDICT, STATE))
            raise UsageError(f"invalid condition {text!r}: the metrics are {names}")
        return cls(found, metric)

    def outcome(self, leaf: LeafResult) -> tuple[bool | None, str]:
        """Whether the condition holds for a leaf, None if that is undecided, and the reason."""
        if self.metric == STATE:
            return self.parsed.holds_word(leaf.state), f"the leaf is {leaf.state}"
        if not leaf.done:
            return None, f"the leaf is {leaf.state}{f': {leaf.reason}' if leaf.reason else ''}"
        if self.metric == VERDICT:
            is_grade = self.parsed.word in list(Grade)
            word = str(leaf.grade) if is_grade else str(leaf.fidelity)
            if not is_grade and leaf.fidelity is Fidelity.UNKNOWN and self.parsed.word != Fidelity.UNKNOWN:
                return None, leaf.doubt
            if self.parsed.word == Fidelity.UNFILLED and leaf.unfilled:
                word = str(Fidelity.UNFILLED)
            return self.parsed.holds_word(word), f"the run is {word}" + (f": {leaf.doubt}" if leaf.doubt else "")
        if self.metric not in leaf.metrics:
            return None, f"the result has no {self.metric}: too few requests, or no scheduled times"
        if leaf.doubt and self.metric in ON_STORAGE:
            return None, leaf.doubt
        value = leaf.metrics[self.metric]
        return self.parsed.holds(value), f"{self.metric} is {shown(self.metric, value, self.parsed.limit)}"


class LeafOutcome(StrEnum):
    """The outcome of all conditions for a leaf."""

    PASSED = "passed"
    FAILED = "failed"
    """A condition holds."""
    UNDECIDED = "undecided"
    NOT_RUN = "not run"


@dataclass(frozen=True)
class LeafJudgement:
    """A leaf and the conditions that hold for it or are undecided, with their reasons."""

    leaf: str
    outcome: LeafOutcome
    reasons: tuple[str, ...]
    seconds: float


@dataclass(frozen=True)
class Gate:
    """All conditions and their outcome for each leaf."""

    conditions: tuple[str, ...]
    leaves: tuple[LeafJudgement, ...]

    def number(self, outcome: LeafOutcome) -> int:
        """The number of leaves with this outcome."""
        return sum(leaf.outcome is outcome for leaf in self.leaves)

    @property
    def exit_code(self) -> int:
        """0: no condition holds; 3: one holds; 4: none holds, but one is undecided. 0 without conditions."""
        if not self.conditions:
            return 0
        if self.number(LeafOutcome.FAILED):
            return HOLDS
        return UNDECIDED if self.number(LeafOutcome.PASSED) < len(self.leaves) or not self.leaves else 0

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
            if self.conditions and leaf.outcome is not LeafOutcome.PASSED:
                yield f"{leaf.leaf} {leaf.outcome}: {'; '.join(leaf.reasons)}"


def shown(metric: str, value: float, limit: float = units.FAITHFUL) -> str:
    """A value of a metric for people; a share is not rounded across its limit."""
    if metric.removeprefix("delay.") in TIMES:
        return units.span(value)
    return units.percent(value, limit) if metric == SHARE else units.count(value)


def parse_conditions(texts: Sequence[str]) -> list[LeafCondition]:
    """Parses conditions. Raises UsageError for the first that is not one."""
    return [LeafCondition.parse(text) for text in texts]


def judge(
    top: Path,
    conditions: Sequence[LeafCondition],
    results: Sequence[LeafResult] | None = None,
    *,
    left_out: Sequence[str] = (),
) -> Gate:
    """Judges all leaves of a campaign. `results` are those of `read_results`, if they are already known.

    Without conditions, leaves that are done pass. Leaves that were left out count only if they are done.
    """
    names = {plain(name) for name in left_out}
    leaves = [
        leaf for leaf in (read_results(top) if results is None else results) if leaf.done or leaf.name not in names
    ]
    return Gate(tuple(each.text for each in conditions), tuple(_judged(leaf, conditions) for leaf in leaves))


def _judged(leaf: LeafResult, conditions: Sequence[LeafCondition]) -> LeafJudgement:
    found = [(condition.text, *condition.outcome(leaf)) for condition in conditions]
    seconds = max(leaf.ended - leaf.started, 0.0) if leaf.ended > leaf.started else 0.0
    if holding := tuple(f"{text} ({why})" for text, holds, why in found if holds):
        return LeafJudgement(leaf.name, LeafOutcome.FAILED, holding, seconds)
    if undecided := tuple(f"{text} ({why})" for text, holds, why in found if holds is None):
        outcome = LeafOutcome.UNDECIDED if leaf.done or leaf.state in ("failed", "interrupted") else LeafOutcome.NOT_RUN
        return LeafJudgement(leaf.name, outcome, undecided, seconds)
    if not leaf.done and not conditions:
        outcome = LeafOutcome.UNDECIDED if leaf.state in ("failed", "interrupted") else LeafOutcome.NOT_RUN
        return LeafJudgement(leaf.name, outcome, (f"the leaf is {leaf.state}: {leaf.reason}",), seconds)
    return LeafJudgement(leaf.name, LeafOutcome.PASSED, (), seconds)


def write_junit(gate: Gate, path: Path) -> None:
    """Writes JUnit XML: a test case for each leaf; undecided ones are errors, those not run are skipped."""
    suite = ElementTree.Element(
        "testsuite",
        name="iosonar campaign",
        tests=str(len(gate.leaves)),
        failures=str(gate.number(LeafOutcome.FAILED)),
        errors=str(gate.number(LeafOutcome.UNDECIDED)),
        skipped=str(gate.number(LeafOutcome.NOT_RUN)),
        time=f"{sum(leaf.seconds for leaf in gate.leaves):.3f}",
    )
    elements = {
        LeafOutcome.FAILED: "failure",
        LeafOutcome.UNDECIDED: "error",
        LeafOutcome.NOT_RUN: "skipped",
    }
    for leaf in gate.leaves:
        parent, _, name = plain(leaf.leaf).rpartition("/")
        classname = ".".join(["campaign", *parent.split("/")]) if parent else "campaign"
        case = ElementTree.SubElement(suite, "testcase", classname=classname, name=name, time=f"{leaf.seconds:.3f}")
        if leaf.outcome is not LeafOutcome.PASSED:
            text = plain("; ".join(leaf.reasons))
            ElementTree.SubElement(case, elements[leaf.outcome], message=text).text = text
    tree = ElementTree.ElementTree(suite)
    ElementTree.indent(tree)
    write_whole(path, lambda unfinished: tree.write(unfinished, encoding="utf-8", xml_declaration=True))
