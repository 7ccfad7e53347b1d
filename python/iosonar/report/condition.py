"""Conditions on comparisons, for scripts: whether a change exceeds a limit significantly."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from iosonar.errors import UsageError
from iosonar.quantities.difference import METRICS, MIN_RUNS, THROUGHPUT, Difference, Finding, RateDifference
from iosonar.report.compared import Compared, change_text, deciding, metric_of
from iosonar.report.grammar import LimitUnit, parse
from iosonar.units import counted

OTHER_LOAD = "the runs did not all replay the same load in the same way"


@dataclass(frozen=True)
class Condition:
    """A condition that fails a comparison: a change of a metric above or below a limit (0.1 is +10 %)."""

    text: str
    metric: str
    above: bool
    limit: float

    @classmethod
    def parse(cls, text: str) -> Condition:
        """Parses `p99 > +10%`."""
        found = parse(text)
        if (
            found is None
            or found.unit is not LimitUnit.PERCENT
            or found.operator not in ("<", ">")
            or found.metric not in (*METRICS, THROUGHPUT)
        ):
            raise UsageError(
                f"invalid condition {text!r}: write it like 'p99 > +10%'; the metrics are {', '.join(METRICS)} of "
                f"latency, and {THROUGHPUT}"
            )
        return cls(found.text, found.metric, found.operator == ">", found.limit)

    def met(self, change: float) -> bool:
        """Whether the change is beyond the limit."""
        return change > self.limit if self.above else change < self.limit


class Outcome(Enum):
    """The outcome of a condition."""

    HOLDS = "holds"
    """The whole interval is beyond the limit."""
    FAILS = "does not hold"
    """No part of the interval is beyond the limit."""
    UNDECIDED = "is undecided"
    """The limit is within the interval, or the runs say nothing about it."""


@dataclass(frozen=True)
class Judgement:
    """A condition's outcome for one side, and the numbers or the reason for it."""

    outcome: Outcome
    why: str

    def sentence(self, condition: Condition, letter: str) -> str:
        """For people: p99 > +10% holds for B: +12.3 % (95 % interval +11.0 … +13.6 %)."""
        return f"{condition.text} {self.outcome.value} for {letter}: {self.why}"


def judge(condition: Condition, each: Compared) -> Judgement:
    """Compares the interval of a side's change with the condition's limit."""
    one = next((one for one in each.all if metric_of(one) == condition.metric), None)
    why = _undecided(condition, each, one)
    if one is None or why:
        return Judgement(Outcome.UNDECIDED, why)
    near, far = (one.low, one.high) if condition.above else (one.high, one.low)
    why = f"{change_text(one.change)} (95 % interval {change_text(one.low)} … {change_text(one.high)})"
    if condition.met(near):
        return Judgement(Outcome.HOLDS, why)
    if condition.met(far):
        return Judgement(Outcome.UNDECIDED, f"{why}; {deciding(one, condition.limit)}")
    return Judgement(Outcome.FAILS, why)


def _undecided(condition: Condition, each: Compared, one: Difference | RateDifference | None) -> str:
    """Why the condition is undecided; empty if it is decided."""
    if one is None:
        return f"too few requests for {condition.metric}"
    if one.finding is Finding.INCOMPARABLE and each.incomparable:
        return "the times of the two sides cannot be compared"
    if one.finding is Finding.INCOMPARABLE:
        return OTHER_LOAD
    if one.finding is Finding.TOO_FEW_RUNS:
        return f"too few runs; use at least {MIN_RUNS} per side"
    # The report of the comparison names them.
    if each.fakes:
        return f"{counted(len(each.fakes), 'result is', 'results are')} fake"
    if each.unfilled:
        return f"{counted(len(each.unfilled), 'run')} read a target that was not filled"
    if each.unfaithful:
        return f"{counted(len(each.unfaithful), 'replay was', 'replays were')} not faithful"
    if each.unknown:
        return f"it is not known whether {counted(len(each.unknown), 'replay was', 'replays were')} faithful"
    if condition.metric == THROUGHPUT and not each.same_load:
        return OTHER_LOAD
    return ""
