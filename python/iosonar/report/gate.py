"""The gates of report, compare and campaigns: conditions in one grammar, their outcomes, and exit codes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum, StrEnum

from iosonar import units
from iosonar.errors import UsageError
from iosonar.quantities.percentiles import fewest, share_of
from iosonar.report.gate_grammar import LimitUnit, Parsed, parse
from iosonar.study.grades import Grade

HOLDS = 3
"""The exit code if a condition holds."""

UNDECIDED = 4
"""The exit code if no condition holds, but one is undecided."""

THROUGHPUT, IOPS, BANDWIDTH, VERDICT, STATE = "throughput", "iops", "bandwidth", "verdict", "state"
MEAN, MAX = "mean", "max"
COUNTS = ("errors", "dropped", "requests", "mismatches")

DELAY = "delay."
"""What the names of percentiles, mean and maximum of delays begin with."""

STATES = ("done", "replayed", "failed", "interrupted", "running", "finishing", "to-do")

WITH_RESULT = ("done", "replayed", "finishing")
"""States of leaves that have all of their results."""


class Fidelity(StrEnum):
    """Whether the times of a result say something about the storage."""

    FAITHFUL = "faithful"
    UNFAITHFUL = "unfaithful"
    FAKE = "fake"
    UNFILLED = "unfilled"
    """Otherwise faithful, but reads returned only zeros, from areas of the target that were never written."""
    UNKNOWN = "unknown"
    """Without a result, or the result does not say it."""


VERDICTS = (*(fidelity.value for fidelity in Fidelity), *(grade.value for grade in Grade))


class GateScope(Enum):
    """What a condition is checked for, with examples."""

    RUN = "'p99 > 10ms', 'delay.p99 > 1ms', 'throughput < 95%', 'iops < 1000/s', 'errors > 0', 'verdict = unfaithful'"
    SIDES = "'p99 > +10%', 'p99 > 10ms', 'throughput < -5%', 'errors > 0'"
    LEAVES = (
        "'p99 > 10ms', 'delay.p99 > 1ms', 'throughput < 95%', 'errors > 0', 'verdict = unfaithful', 'state != done'"
    )


@dataclass(frozen=True)
class Condition:
    """A condition. `metric` is in its own unit, or with `is_change` a change from another side as a share."""

    parsed: Parsed
    metric: str
    is_change: bool = False

    @property
    def text(self) -> str:
        """The condition as typed."""
        return self.parsed.text

    @property
    def limit(self) -> float:
        """The limit in seconds, bytes per second, or as a share."""
        return self.parsed.limit

    @property
    def above(self) -> bool:
        """Whether larger values fail."""
        return self.parsed.operator.startswith(">")

    @classmethod
    def parse(cls, text: str, of: GateScope) -> Condition:
        """Parses a condition. Raises UsageError if it is not one."""
        if text.strip().lower() in list(Grade):
            # A grade alone is that grade or a worse one.
            text = f"{VERDICT} >= {text.strip().lower()}"
        found = parse(text)
        if found is None:
            raise UsageError(f"invalid condition {text!r}: write it like {of.value}")
        metric = found.metric.removeprefix("latency.")
        if metric == THROUGHPUT and found.unit is LimitUnit.PER_SECOND:
            metric = IOPS
        is_change = of is GateScope.SIDES and found.unit is LimitUnit.PERCENT
        if is_change and metric == IOPS:
            metric = THROUGHPUT
        if why := _why_wrong(found, metric, of, is_change):
            raise UsageError(f"invalid condition {text!r}: {why}")
        return cls(found, metric, is_change)


def _why_wrong(found: Parsed, metric: str, of: GateScope, is_change: bool) -> str:
    name = metric.removeprefix(DELAY)
    is_time = share_of(name) is not None or name in (MEAN, MAX)
    if is_change:
        if metric == THROUGHPUT or (metric == name and name != MAX and is_time):
            if found.operator not in ("<", ">", "<=", ">="):
                return "compare a change with < or >, like 'p99 > +10%'"
            return (
                "" if found.is_signed else f"give the change a sign, like '{metric} {found.operator} {_signed(found)}'"
            )
        if is_time or metric in COUNTS:
            return f"the change of {metric} has no interval: give a limit in its own unit, or write it like {of.value}"
    elif metric == VERDICT or (metric == STATE and of is GateScope.LEAVES):
        known = VERDICTS if metric == VERDICT else STATES
        is_right = found.unit is LimitUnit.WORD and found.word in known
        is_right = is_right and (found.operator != ">=" or found.word in list(Grade))
        return "" if is_right else f"compare {metric} by = or != with {', '.join(known)}"
    elif is_time:
        change = found.unit is LimitUnit.PERCENT
        more = "; changes are for `iosonar compare`" if change else ""
        return "" if found.unit is LimitUnit.SECONDS else f"{metric} needs a time with its unit, such as 10ms{more}"
    elif metric == THROUGHPUT and of is GateScope.SIDES:
        return f"{metric} needs a change, such as -5%, or a rate, such as 1000/s"
    elif metric == THROUGHPUT:
        is_right = found.unit is LimitUnit.PERCENT and not found.is_signed
        return "" if is_right else f"{metric} needs a percentage of the demand, such as 95%, or a rate, such as 1000/s"
    elif metric == IOPS:
        is_right = found.unit in (LimitUnit.NONE, LimitUnit.PER_SECOND)
        return "" if is_right else f"{metric} needs a number without a unit, or a rate, such as 1000/s"
    elif metric == BANDWIDTH:
        is_right = found.unit is LimitUnit.BYTES_PER_SECOND
        return "" if is_right else f"{metric} needs bytes per second, such as 100MB/s"
    elif metric in COUNTS:
        return "" if found.unit is LimitUnit.NONE else f"{metric} needs a number without a unit"
    times = ("p50", "p99.9 (any percentile)", MEAN, MAX)
    words = (VERDICT, STATE) if of is GateScope.LEAVES else (VERDICT,)
    names = ", ".join((*times, f"{DELAY}p50 …", THROUGHPUT, IOPS, BANDWIDTH, *COUNTS, *words))
    return f"write it like {of.value}; the metrics are {names}"


def _signed(found: Parsed) -> str:
    """An unsigned percentage as a change for the worse."""
    return f"{'+' if found.operator.startswith('>') else '-'}{round(found.limit * 100, 6):g}%"


class Outcome(Enum):
    """The outcome of a condition."""

    HOLDS = "holds"
    FAILS = "does not hold"
    UNDECIDED = "is undecided"
    """The result says nothing about it, or not enough."""


@dataclass(frozen=True)
class Judged:
    """A condition with its outcome, and the numbers or the reason for it. `of` is a side or a leaf, if not all."""

    text: str
    of: str
    outcome: Outcome
    why: str

    @property
    def sentence(self) -> str:
        """For people: p99 > +10% holds for B: +12.3 % (95 % interval +11.0 … +13.6 %)."""
        return f"{self.text} {self.outcome.value}{f' for {self.of}' if self.of else ''}: {self.why}"

    @property
    def words(self) -> str:
        """The outcome, and why it is undecided."""
        return self.outcome.value + (f": {self.why}" if self.outcome is Outcome.UNDECIDED else "")


@dataclass(frozen=True)
class Subject:
    """What conditions with a limit of their own are checked for: a run, a side of a comparison, or a leaf."""

    name: str
    value: Callable[[str], float]
    """The value of a metric: times in seconds, rates per second, shares; NaN if it is not known."""
    doubt: str = ""
    """Why its times say nothing about the storage; empty if they do."""
    fidelity: Fidelity = Fidelity.UNKNOWN
    is_unfilled: bool = False
    grade: Grade | None = None
    state: str = "done"
    reason: str = ""
    """Why it is in this state, or why its grade is not good."""


def judge(condition: Condition, subject: Subject) -> Judged:
    """Compares a value with the limit of a condition."""
    holds, why = _outcome(condition, subject)
    outcome = Outcome.UNDECIDED if holds is None else Outcome.HOLDS if holds else Outcome.FAILS
    return Judged(condition.text, subject.name, outcome, why)


def exit_code(outcomes: Iterable[Outcome]) -> int:
    """0: no condition holds; 3: one holds; 4: none holds, but one is undecided."""
    found = set(outcomes)
    return HOLDS if Outcome.HOLDS in found else UNDECIDED if Outcome.UNDECIDED in found else 0


def _outcome(condition: Condition, subject: Subject) -> tuple[bool | None, str]:
    metric, parsed = condition.metric, condition.parsed
    if metric == STATE:
        return parsed.holds_word(subject.state.replace(" ", "-")), f"the leaf is {subject.state}"
    if subject.state not in WITH_RESULT:
        return None, f"the leaf is {subject.state}{f': {subject.reason}' if subject.reason else ''}"
    if metric == VERDICT:
        return _verdict(parsed, subject)
    value = subject.value(metric)
    name = metric.removeprefix(DELAY)
    if math.isnan(value):
        few = f"{too_few_for(metric)}, or the result has no such times"
        return None, few if share_of(name) else f"the result has no {metric}"
    if subject.doubt and (metric in (THROUGHPUT, IOPS, BANDWIDTH, MEAN, MAX) or share_of(metric)):
        return None, subject.doubt
    return parsed.holds(value), f"{metric} is {shown(metric, value, parsed.limit)}"


def too_few_for(metric: str) -> str:
    """The words for fewer requests than a percentile takes."""
    share = share_of(metric.removeprefix(DELAY))
    takes = f", which takes at least {fewest(share):,}" if share else ""
    return f"too few requests for {metric}{takes}"


def _verdict(parsed: Parsed, subject: Subject) -> tuple[bool | None, str]:
    about = f": {subject.doubt}" if subject.doubt else ""
    if parsed.word in list(Grade):
        if subject.grade is None:
            return None, "there is no verdict on it"
        why = f"the run is {subject.grade}{f': {subject.reason}' if subject.reason else about}"
        if parsed.operator == ">=":
            return subject.grade.rank >= Grade(parsed.word).rank, why
        return parsed.holds_word(subject.grade), why
    if subject.fidelity is Fidelity.UNKNOWN and parsed.word != Fidelity.UNKNOWN:
        return None, subject.doubt or "it is not known whether the replay was faithful"
    is_unfilled = parsed.word == Fidelity.UNFILLED and subject.is_unfilled
    word = Fidelity.UNFILLED if is_unfilled else subject.fidelity
    return parsed.holds_word(word), f"the run is {word}{about}"


def shown(metric: str, value: float, limit: float = units.FAITHFUL) -> str:
    """A value of a metric for people; a share is not rounded across its limit."""
    name = metric.removeprefix(DELAY)
    if name in (MEAN, MAX) or share_of(name):
        return units.span(value)
    if metric == BANDWIDTH:
        return f"{units.transferred(value)}/s"
    return units.percent(value, limit) if metric == THROUGHPUT else units.count(value)
