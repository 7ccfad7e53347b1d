"""Shared by the first screens of campaigns of requests and of calls: what is asked of all leaves together."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from iosonar import units
from iosonar.campaign.names import OF_CALLS
from iosonar.campaign.report.analysis import Analysis
from iosonar.campaign.report.effects import Effect
from iosonar.campaign.report.findings import NAMES, WIDE, again, change_of, doubtful, factor_names, short
from iosonar.campaign.report.leaf_findings import Findings, lower
from iosonar.campaign.report.results import LeafResult
from iosonar.figures.model import Severity
from iosonar.findings.finding import Severity as Weight
from iosonar.report.answering import not_known, without_repetition
from iosonar.report.findings import SEVERITIES
from iosonar.report.gate import Fidelity
from iosonar.report.page import Answer
from iosonar.study.grades import Grade
from iosonar.text import listed, plain

WHY = {
    Fidelity.UNFAITHFUL: "an unfaithful replay",
    Fidelity.UNFILLED: "a target that was never filled",
    Fidelity.UNKNOWN: "a replay of unknown fidelity",
    Fidelity.FAKE: "a made-up device",
}
"""What a leaf has that allows no verdict on the storage."""


@dataclass(frozen=True)
class Asked:
    """A campaign, and what is known of it."""

    analysis: Analysis

    @cached_property
    def findings(self) -> Findings:
        """Those of all leaves."""
        return Findings(self.analysis)

    @property
    def used(self) -> tuple[LeafResult, ...]:
        """The leaves that the answers are about."""
        return self.analysis.used

    @property
    def total(self) -> str:
        """In 3 of 8 leaves."""
        return units.counted(len(self.used), "leaf", "leaves")

    @property
    def leaves(self) -> str:
        """In the 8 leaves, or the 2 valid leaves of 8."""
        used, every = len(self.used), len(self.analysis.leaves)
        if self.analysis.left_out:
            return f"the {used} valid leaves of {every}" if used > 1 else f"the only valid leaf of {every}"
        return f"the {used} leaves" if used > 1 else "the leaf"

    @property
    def of_calls(self) -> bool:
        """Whether the leaves replayed calls to files."""
        return any(path.name.endswith(OF_CALLS) for leaf in self.used for path in leaf.files)

    @property
    def is_fake(self) -> bool:
        """Whether all leaves are of made-up devices."""
        return all(leaf.fidelity is Fidelity.FAKE for leaf in self.used)

    @property
    def good(self) -> Severity:
        """A made-up device is neither good nor bad, and a few valid leaves say nothing good of all."""
        few = 2 * len(self.used) <= len(self.analysis.leaves)
        return Severity.NEUTRAL if self.is_fake or few else Severity.GOOD

    @property
    def doubt(self) -> str:
        """Why times say nothing about the storage; those of a made-up device are shown all the same."""
        return "" if self.is_fake else self.analysis.doubt


def finished(found: Sequence[Answer]) -> tuple[Answer, ...]:
    """Answers without repetition; the page has no place to which a finding's number leads."""
    seen = {each.number: each.text for each in found if each.number}
    return tuple(replace(each, number="") for each in without_repetition(found, seen))


def of_leaves(asked: Asked, question: str, numbers: Sequence[str]) -> Answer | None:
    """The first of these findings as an answer, and what was found in other leaves; None without any."""
    spread = asked.findings.first(numbers)
    if spread is None:
        return None
    others = [f"{each.title} ({each.number})" for each in asked.findings.elsewhere(numbers, spread)]
    rest = f" In other leaves: {', '.join(others)}." if others else ""
    return Answer(question, SEVERITIES[spread.worst.severity], f"{spread.sentence}{rest}", number=spread.number)


def are_valid(asked: Asked) -> Answer:
    """How many leaves have a verdict on the storage, and why the others have none."""
    question, leaves = "Were the runs valid?", asked.analysis.leaves
    if asked.is_fake:
        text = "They did no I/O: their times are those of a made-up device."
        return Answer(question, Severity.NEUTRAL, text)
    counts = Counter(_kind(leaf) for leaf in leaves)
    valid = counts.pop("", 0)
    total = units.counted(len(leaves), "leaf", "leaves")
    if not counts:
        return Answer(question, Severity.GOOD, f"Yes: {'all ' if valid > 1 else ''}{total} can be used.")
    if not valid and len(counts) == 1 and len(leaves) > 1:
        return Answer(question, Severity.BAD, f"No: all {total} have {next(iter(counts))}.")
    others = listed([f"{number} {'has' if number == 1 else 'have'} {kind}" for kind, number in counts.items()])
    if not valid:
        return Answer(question, Severity.BAD, f"No: of {total}, {others}.")
    are = "is" if valid == 1 else "are"
    return Answer(question, Severity.WARNING, f"With limits: of {total}, {valid} {are} valid; {others}.")


def _kind(leaf: LeafResult) -> str:
    """What is wrong with a leaf; empty if nothing is."""
    if not leaf.done:
        return "no result"
    if leaf.doubt:
        return WHY.get(leaf.fidelity, WHY[Fidelity.UNFILLED])
    return "a bad verdict" if leaf.grade is Grade.BAD else ""


def tail(leaf: LeafResult) -> float:
    """How many times as slow as the median the p99 is."""
    return leaf.metrics["p99"] / leaf.metrics["p50"]


def times_of(leaf: LeafResult) -> str:
    """Its p99 and its median, after its name."""
    p99, median = (units.span(leaf.metrics[name]) for name in ("p99", "p50"))
    return f"in {leaf.name}: p99 takes {p99}, the median {median}"


def did_load_or_storage_change(asked: Asked) -> Answer:
    """The factor with the largest effect, or the order in time."""
    question, analysis = "Did the load or the storage change?", asked.analysis
    if asked.doubt:
        return not_known(question, asked.doubt)
    if doubtful(analysis):
        text = "Perhaps the storage changed over time: the order of the leaves explains more than what was varied."
        return Answer(question, Severity.WARNING, text)
    drift = next((each.trend for each in analysis.metrics if each.trend and each.trend.claimed), None)
    if drift:
        text = f"The storage changed over time: {NAMES[drift.metric]} {units.change(drift.change)} to the last leaf"
        return Answer(question, Severity.WARNING, f"{text}, beyond what was varied.")
    claimed = _claimed(analysis)
    if claimed:
        first = claimed[0]
        levels = f"from {plain(first.from_level)} to {plain(first.to_level)}"
        text = f"{plain(short(first.factor))} makes the largest difference: {levels}, the {NAMES[first.metric]}"
        return Answer(question, Severity.NEUTRAL, f"{text} changes by {change_of(first)}.")
    if not analysis.factors.reported:
        return Answer(question, Severity.NEUTRAL, "Nothing was varied, and no drift was found.")
    if not (analysis.headline and analysis.headline.freedom):
        return Answer(question, Severity.NEUTRAL, "Not known: there are too few leaves to tell.")
    return Answer(question, Severity.NEUTRAL, f"No effect of {listed(_short_names(analysis))} and no drift was found.")


def _claimed(analysis: Analysis) -> list[Effect]:
    """Claimed effects on the metric of the headline if there are any, else on others; the largest first."""
    found = [effect for each in analysis.metrics for effect in each.effects if effect.claimed]
    main = analysis.headline.metric if analysis.headline else ""
    return sorted(found, key=lambda each: (each.metric != main, -abs(math.log1p(each.change))))


def how_sure(asked: Asked) -> Answer:
    """Repetitions, intervals, and what is undecided."""
    question, analysis, main = "How sure is this?", asked.analysis, asked.analysis.headline
    if analysis.doubt:
        return Answer(question, Severity.WARNING, f"Times say nothing about a storage: {analysis.doubt}.")
    repeated = _repetitions(analysis)
    if main is None or not main.freedom:
        return Answer(question, Severity.WARNING, f"{repeated} There are too few leaves for an interval of an effect.")
    known = [effect for effect in main.effects if math.isfinite(effect.p) and not effect.mixed]
    open_ones = [effect for effect in known if not effect.claimed and effect.at_most > WIDE]
    undecided = [plain(short(effect.factor)) for effect in open_ones]
    undecided += [name for name in _short_names(analysis) if name not in {plain(short(each.factor)) for each in known}]
    residual = f"Leaves of equal levels differ by about {units.percent(main.residual)} in the {NAMES[main.metric]}."
    rest = f" Undecided: {listed(undecided)}." if undecided else ""
    severity = Severity.WARNING if undecided else Severity.NEUTRAL
    return Answer(question, severity, f"{repeated} {residual}{rest}")


def _repetitions(analysis: Analysis) -> str:
    """How often each combination of levels ran."""
    combinations = Counter(zip(*(factor.of for factor in analysis.factors.reported), strict=True))
    if not combinations:
        return f"{units.counted(len(analysis.used), 'leaf', 'leaves')}, nothing varied."
    low, high = min(combinations.values()), max(combinations.values())
    if high == 1 and analysis.left_out:
        return "No combination of levels has more than one valid leaf."
    if high == 1:
        return "Each combination of levels ran once."
    times = f"{low} times" if low == high else f"{low} to {high} times"
    return f"Each combination of levels ran {times}."


def _short_names(analysis: Analysis) -> list[str]:
    return [short(name) for name in factor_names(analysis)]


def next_step(asked: Asked, causes: Sequence[Sequence[str]], otherwise: str) -> Answer:
    """What makes the campaign complete, then sure; then the advice of the first of these findings."""
    question, analysis = "What next?", asked.analysis
    if text := again(analysis.used if analysis.doubt else analysis.left_out):
        return Answer(question, Severity.NEUTRAL, text)
    missing = sum(not leaf.done for leaf in analysis.leaves)
    if missing:
        leaves = units.counted(missing, "leaf has", "leaves have")
        return Answer(question, Severity.NEUTRAL, f"Run `iosonar campaign` again: {leaves} no result.")
    if doubtful(analysis):
        return Answer(question, Severity.NEUTRAL, "Run again with `--shuffle 1`, to tell drift from effects.")
    if analysis.factors.reported and not (analysis.headline and analysis.headline.freedom):
        text = "Repeat the leaves: add empty confs `repeat-1.conf`, `repeat-2.conf`, and such directories in each leaf."
        return Answer(question, Severity.NEUTRAL, text)
    found = (*map(asked.findings.first, causes), *asked.findings.all)
    worth = next(
        (each for each in found if each and each.worst.advice and each.worst.severity is not Weight.INFO), None
    )
    if worth:
        return Answer(question, Severity.NEUTRAL, f"{worth.title} ({worth.number}): {lower(worth.worst.advice)}")
    return Answer(question, Severity.NEUTRAL, otherwise)
