"""The first screen of a page: what people want to know of a run, each question with its answer and its basis."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from iosonar import units
from iosonar.figures.model import Severity
from iosonar.findings.diagnosis import Diagnosis
from iosonar.findings.finding import Finding
from iosonar.findings.finding import Severity as Weight
from iosonar.findings.registry import diagnose_requests
from iosonar.report.answering import (
    FAR,
    finished,
    not_known,
    of_finding,
    of_verdict,
    percentile_known,
    tail_of,
    upper,
    yes_as,
)
from iosonar.report.findings import SEVERITIES
from iosonar.report.page import Answer
from iosonar.study.grades import Grade
from iosonar.study.judgement import Judgement
from iosonar.study.of_requests import judgement_of, summary_of
from iosonar.study.original import RESPONSE, distances, original_beside
from iosonar.study.requests import LATENCY, Study
from iosonar.study.runs import runs_of
from iosonar.study.steady import steadiness

LIMITS = ("S17", "S18", "S02", "S09", "S11", "S19", "S05", "S08", "S21", "S16", "S03", "S20")
"""What limits a storage, or hides its limit: the most direct cause first."""
NO_LIMIT = ("S11", "S09", "S08", "S21", "S16")
"""Of these, those that slow requests down, though all that was demanded may be completed."""
SLOW = ("S11", "S06", "S07", "S09", "S02", "S10", "S08", "S21", "S16", "S01")
CACHE = ("S02", "S01", "S12")
CHANGED = ("S02", "S18", "S09")
"""The storage changed during the run."""
PREPARED = ("S12", "S13", "S15")
UNWRITTEN, SATURATED = "S12", ("S03", "S17")
COLLAPSE, LEVELS, DEVICE, MACHINE = "S05", "S01", "S11", "S23"
WHICH_DEVICE = "Is one device slower?"
RATED = (COLLAPSE, "S03", "S17")
"""They know the rate that the storage still completes."""
REPLAYER = "S20"
"""It hides the limit of the storage."""
TO_TRY = "; try, "
"""What the answer about validity leaves out: what to do has a place of its own."""


@dataclass(frozen=True)
class Asked:
    """A run, and what is known of it."""

    study: Study

    @cached_property
    def judgement(self) -> Judgement:
        """The verdict."""
        return judgement_of(self.study)

    @cached_property
    def diagnosis(self) -> Diagnosis:
        """The findings."""
        return diagnose_requests(self.study)

    def first(self, numbers: tuple[str, ...]) -> Finding | None:
        """The first of these findings that was made."""
        found = {each.number: each for each in self.diagnosis.findings}
        return next((found[number] for number in numbers if number in found), None)

    @property
    def rated(self) -> Finding | None:
        """What knows the rate that the storage still completes: a collapse only where more was demanded."""
        found = self.first(RATED)
        return found if found and (found.number != COLLAPSE or self.first(SATURATED)) else None

    @property
    def doubt(self) -> str:
        """Why times say nothing about the storage; those of a made-up device are shown all the same."""
        return "" if self.judgement.is_fake else self.judgement.doubt


def answers(study: Study) -> tuple[Answer, ...]:
    """The answers to all questions, in their order."""
    asked = Asked(study)
    found = [answer(asked) for answer in QUESTIONS]
    return finished(found, asked.judgement.is_fake, asked.diagnosis.findings, {DEVICE: WHICH_DEVICE})


def is_valid(asked: Asked) -> Answer:
    """The verdict in a sentence."""
    question, judgement = "Was the run valid?", asked.judgement
    if judgement.is_fake:
        return Answer(question, Severity.NEUTRAL, "No verdict: it did no I/O. Its times are those of a made-up device.")
    reasons = [each.partition(TO_TRY)[0] for each in judgement.reasons.values()]
    return of_verdict(question, judgement, yes=yes_as(judgement["fidelity"].sentence), reasons=reasons)


def what_limits(asked: Asked) -> Answer:
    """The most direct cause of a limit, or how much the storage delivered without one."""
    question = "What limits the storage?"
    if found := asked.first(LIMITS):
        if found.number == REPLAYER:
            return of_finding(question, found, "Not known. ")
        lead = ""
        if asked.study.has_demand and found.number in NO_LIMIT:
            lead = "No lasting limit: it completed all that was demanded, but slowly. "
        elif asked.study.has_demand and found.number == COLLAPSE and not asked.rated:
            lead = "No lasting limit: it completed all that was demanded. "
        return of_finding(question, found, lead)
    if asked.doubt:
        return not_known(question, asked.doubt)
    study, found_rate = asked.study, summary_of(asked.study).rate_per_s
    rate = f"{units.count(found_rate)} requests/s"
    if not study.has_demand:
        depth = max((file.option("depth") or 0 for file in study.files), default=0)
        at = f" at a depth of {depth}" if depth else ""
        return Answer(question, Severity.NEUTRAL, f"The storage delivered {rate}{at}.", "latency.depth")
    return Answer(
        question, Severity.GOOD, f"No limit was reached: it completed all {rate} that were demanded.", "overview.thrp"
    )


def from_which_rate(asked: Asked) -> Answer:
    """The rate at which the delays of the storage begin to grow."""
    question, study = "From which rate on is it too slow?", asked.study
    if not study.has_demand:
        return Answer(question, Severity.NEUTRAL, "The load demanded no rate: each request waited for earlier ones.")
    if found := asked.rated:
        text = f"From about {_rate_of(asked, found)} on{_then(asked, found)}."
        return Answer(question, SEVERITIES[found.severity], text, "overview.thrp", found.number)
    if asked.doubt:
        return not_known(question, asked.doubt)
    peak = f"the highest demand, {units.count(_peak_demand(study))} requests/s over {units.span(study.window_s)}"
    if other := asked.first(LIMITS):
        text = f"No such rate was found up to {peak}."
        if other.number != COLLAPSE:
            text += f" Requests are slow for another reason ({other.number})."
        return Answer(question, Severity.NEUTRAL, text, "overview.thrp")
    return Answer(question, Severity.GOOD, f"No such rate was reached up to {peak}.", "overview.thrp")


def _rate_of(asked: Asked, found: Finding) -> str:
    """The rate that the storage still completes, with its unit."""
    values = found.values
    if found.number == COLLAPSE:
        # What it completes once it has collapsed is far less than what it completed before.
        best = float(values["best_per_s"] or 0)
        saturated = asked.first(("S03",))
        onset = _demand_at(asked.study, float(saturated.values["from_s"] or 0)) if saturated else 0.0
        return f"{units.count(min(onset, best) if onset else best)} requests/s"
    if size := values.get("bytes_per_s"):
        return f"{units.transferred(float(size))}/s"
    return f"{units.count(float(values.get('capacity_per_s') or values.get('requests_per_s') or 0))} requests/s"


def _then(asked: Asked, found: Finding) -> str:
    """What happens beyond that rate."""
    if found.number != COLLAPSE:
        return ": more was demanded and not completed in time"
    saturated = asked.first(("S03",))
    left = saturated.values["capacity_per_s"] if saturated else found.values["per_s"]
    return f"; a longer queue then slows it down to {units.count(float(left or 0))} requests/s"


def which_are_slow(asked: Asked) -> Answer:
    """The slowest requests, and what they have in common."""
    question, study = "What are the slow requests?", asked.study
    if found := asked.first(SLOW):
        # The levels themselves are the answer to the question about the cache.
        if found.number == LEVELS:
            return _slowest_level(question, found)
        return of_finding(question, found, "Those of a slow device. " if found.number == DEVICE else "")
    values = study.pooled(LATENCY)
    if not values.count:
        return Answer(question, Severity.NEUTRAL, "No request has a latency.")
    share, name = tail_of(values.count)
    median, high = values.quantile(0.5) / 1e9, values.quantile(share) / 1e9
    usual = units.span(median)
    factor = high / median if median > 0 else math.inf
    times = f"{name} takes {units.span(high)}, the median {usual}"
    if asked.doubt:
        return Answer(question, Severity.NEUTRAL, f"Not known: {asked.doubt}. {upper(times)}.", "latency.realtime")
    if long := asked.judgement["slow_for_device"].sentence:
        return Answer(question, Severity.WARNING, f"{long}.", "latency.realtime")
    all_wait = bool(asked.first(SATURATED))
    if factor >= FAR:
        text = f"No cause{' but the overload' if all_wait else ' in common'} was found"
    else:
        text = f"None stand out{', as all wait for the storage' if all_wait else ''}"
    # Where all requests wait for a limit, that none stands out is no praise.
    praise = factor < FAR and not asked.first(LIMITS)
    severity = Severity.GOOD if praise else Severity.NEUTRAL
    return Answer(question, severity, f"{text}: {times}.", "latency.realtime")


def _slowest_level(question: str, found: Finding) -> Answer:
    """The reads that no level of a cache answers."""
    levels = int(found.values["levels"] or 0)
    share, latency = (float(found.values[name] or 0) for name in (f"share_{levels}", f"latency_{levels}_s"))
    text = f"Reads that no cache answers: {units.percent(share)} of the reads take about {units.span(latency)}."
    return Answer(question, SEVERITIES[found.severity], text, found.evidence.diagram, found.number)


def is_one_device_slow(asked: Asked) -> Answer:
    """The slow one of several devices."""
    question, devices = WHICH_DEVICE, len(asked.study.devices)
    if found := asked.first((DEVICE,)):
        return of_finding(question, found, "Yes. ")
    if devices < 2:
        return Answer(question, Severity.NEUTRAL, "The run has one device.")
    if asked.doubt:
        return not_known(question, asked.doubt)
    return Answer(
        question, Severity.GOOD, f"No: none of the {devices} devices stands out from those with the same demand."
    )


def is_it_the_cache(asked: Asked) -> Answer:
    """What a cache did."""
    question = "Is it the cache?"
    found = asked.first(CACHE)
    if found and found.number == UNWRITTEN:
        text = "Not known: reads of areas that were never written are fast without a cache."
        return Answer(question, SEVERITIES[found.severity], text, number=found.number)
    if found:
        return of_finding(question, found, "Yes. ")
    if asked.doubt:
        return not_known(question, asked.doubt)
    return Answer(
        question, Severity.GOOD, "No: no level of fast reads and no cliff of writes was found.", "latency.bins"
    )


def did_load_or_storage_change(asked: Asked) -> Answer:
    """Beside the original if there is one; else over the run."""
    question, study = "Did the load or the storage change?", asked.study
    if change := asked.first(CHANGED):
        return of_finding(question, change, "The storage. ")
    if asked.doubt:
        return not_known(question, asked.doubt)
    if original_beside(study):
        found = [each for each in distances(study) if each.differences]
        clear = [(each.quantity, one) for each in found for one in each.differences if one.low > 0 or one.high < 0]
        if not clear:
            return Answer(question, Severity.GOOD, "Neither: the replay cannot be distinguished from its original.")
        quantity, one = clear[0]
        speedups = {file.option("speedup") or 1 for file in study.files}
        load = "the load is the same" if speedups == {1} else "the load is faster or slower as well (`--speedup`)"
        what = "The storage or the machine" if speedups == {1} else "Not known"
        text = f"{quantity.name} at {one.metric} changed by {units.change_or_factor(one.change)}"
        if quantity is not RESPONSE and any(each.quantity is RESPONSE for each in found):
            text = f"Not known: latency did not clearly change from the original, but {text}"
            return Answer(question, Severity.NEUTRAL, f"{text}; {load}.")
        return Answer(question, Severity.NEUTRAL, f"{what}: compared with the original, {text}; {load}.")
    if study.has_demand and (saturated := asked.first(SATURATED)):
        text = "Not known: the load demanded more than the storage completed, and requests waited ever longer."
        return Answer(question, Severity.NEUTRAL, text, number=saturated.number)
    steady = steadiness(study) if study.distribution(LATENCY) else None
    if steady and steady.grade is Grade.WARNING:
        text = f"The latency changed during the run: {_lower(_first(steady.text))}."
        return Answer(question, Severity.WARNING, text, "latency.bands")
    same = "Latency did not change during the run. " if steady and steady.grade is Grade.GOOD else ""
    text = f"{same}`iosonar compare` shows what changed between two runs."
    return Answer(question, Severity.NEUTRAL, text)


def was_target_prepared(asked: Asked) -> Answer:
    """Whether the target was filled, large enough, and as before."""
    question = "Was the target prepared?"
    if found := asked.first(PREPARED):
        return of_finding(question, found, "No. ")
    if asked.judgement.is_fake:
        return Answer(question, Severity.NEUTRAL, "There was no target.")
    if asked.judgement["zero_reads"].grade is None:
        return Answer(question, Severity.NEUTRAL, "It is large enough; whether it was filled is not known.")
    return Answer(question, Severity.GOOD, "Yes: reads returned data, and the load fits.")


def how_sure(asked: Asked) -> Answer:
    """What the run can and cannot say."""
    question, study = "How sure is this?", asked.study
    if doubt := asked.judgement.doubt:
        return Answer(question, Severity.WARNING, f"Times say nothing about a storage: {doubt}.")
    runs = len(runs_of(study))
    variation = (
        "One run does not show how much runs differ: repeat it with `iosonar ab` or a campaign."
        if runs == 1
        else f"{runs} files are shown as one run."
    )
    known = percentile_known(study.pooled(LATENCY).count, "requests")
    if short := asked.first((MACHINE,)):
        return of_finding(question, short, f"{known}Latencies may be those of the machine that replayed. ")
    return Answer(question, Severity.NEUTRAL, f"{known}{variation}")


def what_next(asked: Asked) -> Answer:
    """The first advice of what limits the storage, or of what is slow, or of the worst finding."""
    question = "What next?"
    remedies = [step.attempt for run in runs_of(asked.study) for step in run.remedies]
    if remedies:
        # A remedy may give its reason after a colon, and one colon is enough.
        words = _first(remedies[0]).replace(": ", "; ", 1)
        return Answer(question, Severity.NEUTRAL, f"Make the replay faithful: {words}.")
    # Where the machine may be the cause, advice about the storage comes later.
    found = (asked.first((MACHINE,)), asked.first(LIMITS), asked.first(SLOW), *asked.diagnosis.findings)
    worth = next((each for each in found if each and each.advice and each.severity is not Weight.INFO), None)
    if worth:
        return Answer(question, Severity.NEUTRAL, worth.advice[0], number=worth.number)
    if asked.study.has_demand:
        return Answer(question, Severity.NEUTRAL, "Replay it faster (`--speedup 2`) to find the limit of the storage.")
    return Answer(question, Severity.NEUTRAL, "Replay a load at its times to see delays as users would.")


QUESTIONS: tuple[Callable[[Asked], Answer], ...] = (
    is_valid,
    what_limits,
    from_which_rate,
    which_are_slow,
    is_one_device_slow,
    is_it_the_cache,
    did_load_or_storage_change,
    was_target_prepared,
    how_sure,
    what_next,
)
"""All questions, in the order of the page."""


def _peak_demand(study: Study) -> float:
    demand = study.throughput("scheduled_ns")
    series = [values for values in demand.requests.values() if len(values)]
    return (
        max(
            float(sum(values[place] for values in series if place < len(values)))
            for place in range(max(map(len, series)))
        )
        / demand.window_s
        if series
        else 0.0
    )


def _demand_at(study: Study, at_s: float) -> float:
    """The rate demanded in the window around this time."""
    demand = study.throughput("scheduled_ns")
    place = int(at_s / demand.window_s)
    return sum(float(values[place]) for values in demand.requests.values() if place < len(values)) / demand.window_s


def _lower(text: str) -> str:
    return f"{text[:1].lower()}{text[1:]}"


def _first(text: str) -> str:
    """A clause without its full stop."""
    return text.rstrip(".")
