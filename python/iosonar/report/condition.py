"""Conditions on comparisons, for scripts: whether a change exceeds a limit significantly."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from iosonar.errors import UsageError
from iosonar.quantities.difference import LEAST_RUNS, METRICS, THROUGHPUT, Difference, Finding, RateDifference
from iosonar.report.compare import Against, change_text, metric_of

CONDITION = re.compile(r"\s*(?P<metric>[a-z0-9.]+)\s*(?P<than>[<>])\s*(?P<limit>[+-]?\d+(\.\d+)?)\s*%\s*")


@dataclass(frozen=True)
class Condition:
    """What fails a comparison: a change of a metric above or below a limit (a share: 0.1 is +10 %)."""

    text: str
    metric: str
    above: bool
    limit: float

    @classmethod
    def parse(cls, text: str) -> Condition:
        """From `p99 > +10%`."""
        found = CONDITION.fullmatch(text)
        if found is None or found["metric"] not in (*METRICS, THROUGHPUT):
            raise UsageError(
                f"invalid condition {text!r}: write it like 'p99 > +10%'; the metrics are {', '.join(METRICS)} of "
                f"latency, and {THROUGHPUT}"
            )
        return cls(text.strip(), found["metric"], found["than"] == ">", float(found["limit"]) / 100)

    def met(self, change: float) -> bool:
        """Whether the change is beyond the limit."""
        return change > self.limit if self.above else change < self.limit


class Outcome(Enum):
    """What became of a condition."""

    HOLDS = "holds"
    """All of the interval is beyond the limit."""
    NOT_SHOWN = "is not significant"
    """The limit lies within the interval."""
    FAILS = "does not hold"
    """None of the interval is beyond the limit."""
    UNDECIDED = "is undecided"


@dataclass(frozen=True)
class Judgement:
    """A condition's outcome for one side, and the numbers or the reason for it."""

    outcome: Outcome
    why: str


def judged(condition: Condition, each: Against) -> Judgement:
    """Whether a condition holds for a side: the interval of the change is held against the condition's limit."""
    one: Difference | RateDifference | None = next(
        (one for one in (*each.found, each.throughput) if one and metric_of(one) == condition.metric), None
    )
    why = _undecided(condition, each, one)
    if one is None or why:
        return Judgement(Outcome.UNDECIDED, why)
    near, far = (one.low, one.high) if condition.above else (one.high, one.low)
    outcome = Outcome.HOLDS if condition.met(near) else Outcome.NOT_SHOWN if condition.met(far) else Outcome.FAILS
    return Judgement(
        outcome, f"{change_text(one.change)}, 95 % interval {change_text(one.low)} … {change_text(one.high)}"
    )


def _undecided(condition: Condition, each: Against, one: Difference | RateDifference | None) -> str:
    """Why the numbers decide nothing; empty if they do."""
    if one is None:
        return f"too few requests for {condition.metric}"
    if one.finding is Finding.TOO_FEW_RUNS:
        return f"too few runs, use at least {LEAST_RUNS} per side"
    if each.fakes:
        return f"fake results: {', '.join(each.fakes)}"
    if each.unfaithful:
        return f"not faithful: {', '.join(each.unfaithful)}"
    if condition.metric == THROUGHPUT and not each.same_load:
        return "the runs did not all replay the same load in the same way"
    return ""
