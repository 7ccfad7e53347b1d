"""What conditions are checked for: the metrics and verdicts of runs of requests and of calls."""

from __future__ import annotations

import math

from iosonar.quantities.distribution import Distribution
from iosonar.quantities.percentiles import share_of
from iosonar.report.gate import BANDWIDTH, IOPS, MAX, MEAN, THROUGHPUT, Fidelity, Subject
from iosonar.report.gate import DELAY as OF_DELAY
from iosonar.study.calls import CallSide
from iosonar.study.grades import Grade
from iosonar.study.of_calls import judgement_of_calls, summary_of_calls
from iosonar.study.of_requests import judgement_of, summary_of
from iosonar.study.requests import DELAY, LATENCY, Study
from iosonar.study.runs import runs_of
from iosonar.study.summary import Summary


def subject_of_requests(study: Study, name: str = "") -> Subject:
    """A load or a run as what conditions are checked for."""
    found = summary_of(study)

    def value(metric: str) -> float:
        if (times := _times(metric)) is None:
            return _number(found, metric)
        of_delay, what = times
        if of_delay and not study.has_delays:
            return math.nan
        return time_of(study.pooled(DELAY if of_delay else LATENCY), what)

    if not study.requests.is_run:
        return Subject(name, value)
    fidelity, doubt = fidelity_of(study)
    unfilled = [run.unfilled for run in runs_of(study) if run.unfilled]
    if unfilled and fidelity is Fidelity.FAITHFUL:
        fidelity = Fidelity.UNFILLED
    doubts = "; ".join(text for text in (doubt, *unfilled) if text)
    judgement = judgement_of(study)
    reason = "; ".join(judgement.reasons.values())
    return Subject(name, value, doubts, fidelity, bool(unfilled), judgement.grade, reason=reason)


def subject_of_calls(side: CallSide, name: str = "") -> Subject:
    """A trace or a run of calls as what conditions are checked for."""
    found, judgement = summary_of_calls(side), judgement_of_calls(side)

    def value(metric: str) -> float:
        if metric == "mismatches":
            return float(side.extent.mismatches) if side.is_run else math.nan
        if (times := _times(metric)) is None:
            return _number(found, metric)
        of_delay, what = times
        if of_delay and not side.keeps_times:
            return math.nan
        return time_of(side.delays.not_held_back if of_delay else side.pooled_response, what)

    if not side.is_run:
        return Subject(name, value)
    grade = judgement["fidelity"].grade
    fidelity = (
        Fidelity.FAKE
        if judgement.is_fake
        else Fidelity.UNFAITHFUL
        if grade is Grade.BAD
        else Fidelity.FAITHFUL
        if grade
        else Fidelity.UNKNOWN
    )
    reason = "; ".join(judgement.reasons.values())
    return Subject(name, value, judgement.doubt, fidelity, grade=judgement.grade, reason=reason)


def fidelity_of(study: Study) -> tuple[Fidelity, str]:
    """The worst fidelity of the files, with the reason."""
    runs = runs_of(study)
    if fake := next((run.file.fake for run in runs if run.file.fake), ""):
        return Fidelity.FAKE, f"FAKE: {fake}"
    for run in runs:
        if run.grade is Grade.BAD:
            of = f" of {run.file.name}" if len(runs) > 1 else ""
            return Fidelity.UNFAITHFUL, f"the replay{of} was {run.words}: {run.decisive}"
    unknown = next((run.not_known for run in runs if run.unknown), "")
    return (Fidelity.UNKNOWN, unknown) if unknown else (Fidelity.FAITHFUL, "")


def time_of(values: Distribution, what: str) -> float:
    """A percentile, the mean or the maximum of a distribution in nanoseconds, in seconds; NaN if it is not known."""
    share = share_of(what)
    found = values.percentile(share) if share else values.mean if what == MEAN else values.maximum
    return found / 1e9


def _times(metric: str) -> tuple[bool, str] | None:
    """Whether a metric is of delays, and its name without that; None if it is no time."""
    name = metric.removeprefix(OF_DELAY)
    return (name != metric, name) if name in (MEAN, MAX) or share_of(name) else None


def _number(found: Summary, metric: str) -> float:
    values = {
        THROUGHPUT: found.achieved,
        IOPS: found.rate_per_s,
        BANDWIDTH: found.bytes_per_s,
        "errors": found.failed,
        "dropped": found.dropped,
        "requests": found.rows,
    }
    return float(values.get(metric, math.nan))
