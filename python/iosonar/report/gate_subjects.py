"""What conditions are checked for: the metrics and verdicts of runs of requests and of calls."""

from __future__ import annotations

import math

from iosonar.quantities.distribution import Distribution, pooled
from iosonar.quantities.percentiles import share_of
from iosonar.report.gate import BANDWIDTH, IOPS, MAX, MEAN, THROUGHPUT, Fidelity, Subject
from iosonar.report.gate import DELAY as OF_DELAY
from iosonar.study.calls import CallSide
from iosonar.study.grades import Grade, worst
from iosonar.study.judgement import Judgement
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


def subject_of_calls(*sides: CallSide, name: str = "") -> Subject:
    """A trace or runs of calls as what conditions are checked for. Times of several are pooled, numbers added."""
    found, judgements = [summary_of_calls(side) for side in sides], [judgement_of_calls(side) for side in sides]

    def value(metric: str) -> float:
        if metric == "mismatches":
            return float(sum(side.extent.mismatches for side in sides)) if sides[0].is_run else math.nan
        if (times := _times(metric)) is None:
            return sum(_number(each, metric) for each in found)
        of_delay, what = times
        if of_delay and not all(side.keeps_times for side in sides):
            return math.nan
        parts = [side.delays.not_held_back if of_delay else side.pooled_response for side in sides]
        return time_of(pooled(parts), what)

    if not sides[0].is_run:
        return Subject(name, value)
    of_each = [_fidelity_of_calls(each) for each in judgements]
    fidelity = next(each for each in WORST_FIRST if each in of_each)
    doubt = "; ".join(dict.fromkeys(each.doubt for each in judgements if each.doubt))
    reason = "; ".join(dict.fromkeys(reason for each in judgements for reason in each.reasons.values()))
    return Subject(name, value, doubt, fidelity, grade=worst(each.grade for each in judgements), reason=reason)


WORST_FIRST = (Fidelity.FAKE, Fidelity.UNFAITHFUL, Fidelity.UNKNOWN, Fidelity.FAITHFUL)


def _fidelity_of_calls(judgement: Judgement) -> Fidelity:
    if judgement.is_fake:
        return Fidelity.FAKE
    grade = judgement["fidelity"].grade
    return Fidelity.UNFAITHFUL if grade is Grade.BAD else Fidelity.FAITHFUL if grade else Fidelity.UNKNOWN


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
