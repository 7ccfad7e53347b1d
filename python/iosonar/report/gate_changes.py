"""Conditions on changes: whether the interval of a change is beyond a limit."""

from __future__ import annotations

from iosonar.quantities.difference import MIN_RUNS, THROUGHPUT, Difference, Finding, RateDifference
from iosonar.report.compared import Compared, change_text, deciding, metric_of
from iosonar.report.gate import Condition, Judged, Outcome, too_few_for
from iosonar.units import counted

OTHER_LOAD = "the runs did not all replay the same load in the same way"


def judge_change(condition: Condition, each: Compared) -> Judged:
    """Compares the interval of a side's change with the condition's limit.

    It holds if the whole interval is beyond the limit; if the limit is in the interval, it is undecided.
    """
    one = next((one for one in each.all if metric_of(one) == condition.metric), None)
    why = _undecided(condition, each, one)
    if one is None or why:
        return Judged(condition.text, each.letter, Outcome.UNDECIDED, why)
    near, far = (one.low, one.high) if condition.above else (one.high, one.low)
    why = f"{change_text(one.change)} (95 % interval {change_text(one.low)} … {change_text(one.high)})"
    if condition.parsed.holds(near):
        return Judged(condition.text, each.letter, Outcome.HOLDS, why)
    if condition.parsed.holds(far):
        why = f"{why}; {deciding(one, condition.limit)}"
        return Judged(condition.text, each.letter, Outcome.UNDECIDED, why)
    return Judged(condition.text, each.letter, Outcome.FAILS, why)


def _undecided(condition: Condition, each: Compared, one: Difference | RateDifference | None) -> str:
    """Why the condition is undecided; empty if it is decided."""
    if one is None:
        return too_few_for(condition.metric)
    if one.finding is Finding.INCOMPARABLE and each.incomparable:
        return "the times of the two sides cannot be compared"
    if one.finding is Finding.INCOMPARABLE:
        return OTHER_LOAD
    if one.finding is Finding.TOO_FEW_RUNS:
        return f"too few runs; use at least {MIN_RUNS} per side"
    # The report of the comparison names them.
    if each.fakes:
        return f"{counted(len(each.fakes), 'result is', 'results are')} fake"
    if each.failed:
        return " and ".join(each.failed)
    if each.unfilled:
        return f"{counted(len(each.unfilled), 'run')} read a target that was not filled"
    if each.unfaithful:
        return f"{counted(len(each.unfaithful), 'replay was', 'replays were')} not faithful"
    if each.unknown:
        return f"it is not known whether {counted(len(each.unknown), 'replay was', 'replays were')} faithful"
    if condition.metric == THROUGHPUT and not each.same_load:
        return OTHER_LOAD
    return ""
