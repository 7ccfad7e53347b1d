"""The first screen of a page of calls: what people want to know of them, each question with its answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from iosonar import units
from iosonar.figures.model import Severity
from iosonar.findings.call_rows import seconds_of, without_times, work_of
from iosonar.findings.diagnosis import Diagnosis
from iosonar.findings.finding import Finding
from iosonar.findings.finding import Severity as Weight
from iosonar.findings.registry import diagnose_calls
from iosonar.quantities.calls.series import CallSeries
from iosonar.quantities.distribution import pooled
from iosonar.report.answering import (
    FAR,
    finished,
    not_known,
    of_finding,
    of_verdict,
    percentile_known,
    tail_of,
    yes_as,
)
from iosonar.report.page import Answer
from iosonar.study.calls import PLACEHOLDERS, CallSide, CallStudy
from iosonar.study.judgement import Judgement
from iosonar.study.of_calls import judgement_of_calls

WASTE = ("F02", "F01", "F06", "F03", "F11", "F05", "F10", "F04", "F09", "F08", "F07")
"""What takes time that a program or an administrator can save: what usually costs most first."""
CHANGED = 0.2
"""A median that differs by less is the same: two runs of one program differ by as much."""
SLOW_CHANGED = 1.0
"""Of the 99th percentile, which varies more."""
ENOUGH_FOR_P99 = 1000
SAME_SERIES = 100
"""The fewest calls of a kind to compare."""
DOING = {
    CallSeries.READ: "reads",
    CallSeries.WRITE: "writes",
    CallSeries.SYNC: "syncs",
    CallSeries.METADATA: "calls on names and attributes",
    CallSeries.OTHER: "calls on descriptors",
}


@dataclass(frozen=True)
class Asked:
    """A trace or a run of calls, and what is known of it."""

    study: CallStudy

    @property
    def side(self) -> CallSide:
        """The only side."""
        return self.study.first

    @cached_property
    def judgement(self) -> Judgement:
        """The verdict."""
        return judgement_of_calls(self.side)

    @cached_property
    def diagnosis(self) -> Diagnosis:
        """The findings."""
        return diagnose_calls(self.study)

    @cached_property
    def no_times(self) -> str:
        """Why the times of the calls say nothing, as a clause; empty if they do."""
        return self.judgement.doubt or without_times(self.study)

    def first(self, numbers: tuple[str, ...], *, severe: bool = False) -> Finding | None:
        """The first of these findings that was made."""
        found = {each.number: each for each in self.diagnosis.findings if not (severe and each.severity is Weight.INFO)}
        return next((found[number] for number in numbers if number in found), None)


def call_answers(study: CallStudy) -> tuple[Answer, ...]:
    """The answers to all questions, in their order; none without calls, or for a comparison."""
    if not study.is_single or not study.calls:
        return ()
    asked = Asked(study)
    return finished([answer(asked) for answer in QUESTIONS], asked.judgement.is_fake, asked.diagnosis.findings)


def is_valid(asked: Asked) -> Answer:
    """The verdict in a sentence."""
    question = f"Is the {'replay' if asked.side.is_run else 'trace'} valid?"
    judgement = asked.judgement
    if judgement.is_fake:
        return Answer(question, Severity.NEUTRAL, "It did no I/O: its times say nothing about a storage.")
    yes = "Yes" if asked.side.is_run else "Yes: it is complete, and no call was lost"
    # A call with another result is a smaller reason than times that say nothing.
    first = sorted(judgement.reasons.items(), key=lambda item: item[0] != "fidelity")
    reasons = [_small(text) for _, text in first]
    return of_verdict(question, judgement, yes=yes_as(judgement["fidelity"].sentence, yes), reasons=reasons)


def what_takes_time(asked: Asked) -> Answer:
    """The worst waste, or the kind of calls with the most time."""
    question = "What takes the time?"
    if found := asked.first(WASTE, severe=True):
        return of_finding(question, found)
    if asked.no_times:
        return not_known(question, asked.no_times)
    whole, lasted = seconds_of(asked.study), asked.side.seconds
    if not whole > 0:
        return Answer(question, Severity.NEUTRAL, "No call is on a file.", "mix")
    series, most = max(work_of(asked.study).items(), key=lambda item: item[1].seconds)
    threads = ", all threads together" if asked.side.extent.threads > 1 else ""
    return Answer(
        question,
        Severity.NEUTRAL,
        f"The {DOING[series]}: {units.span(most.seconds)} of {units.span(whole)} in calls on files{threads}. "
        f"{'The replay' if asked.side.is_run else 'The recording'} lasted {units.span(lasted)}.",
        "mix",
    )


def is_it_fast_enough(asked: Asked) -> Answer:
    """Whether a replay with times kept up with them."""
    question, side = "Is the storage fast enough?", asked.side
    if not side.is_run:
        text = "A trace does not say it: replay it on the storage (`iosonar files replay`)."
        return Answer(question, Severity.NEUTRAL, text)
    if not side.keeps_times:
        text = "The replay kept no times: each call was issued as soon as those before it had ended."
        return Answer(question, Severity.NEUTRAL, text)
    if asked.no_times:
        return not_known(question, asked.no_times)
    waiting = waiting_of(side)
    if fell_behind(waiting.last_s, side.seconds):
        late = units.span(waiting.last_s)
        text = f"No: the last call came {late} late, as earlier calls took longer than in the original."
        return Answer(question, Severity.WARNING, text, "delay")
    if waiting.share > 0.05 and waiting.worst_s > 0.01:
        held, worst = units.percent(waiting.share), units.span(waiting.worst_s)
        text = f"Mostly: {held} of the calls waited for earlier ones, up to {worst}."
        return Answer(question, Severity.NEUTRAL, text, "delay")
    rate = side.extent.calls / side.seconds if side.seconds > 0 else 0
    return Answer(
        question, Severity.GOOD, f"Yes, for this load of {units.count(rate)} calls/s: it kept up to the end.", "delay"
    )


@dataclass(frozen=True)
class Waiting:
    """The share of the calls that waited for earlier ones, the longest wait, and how late the last call was."""

    share: float
    worst_s: float
    last_s: float


def waiting_of(side: CallSide) -> Waiting:
    """How calls of a replay that keeps times waited for earlier ones."""
    table = side.table
    late = (table.begin_ns - table.scheduled_ns).cast("float64")
    is_held = table.delay_reason == "predecessor"
    row = (
        table.aggregate(held=is_held.sum(), worst=late.max(where=is_held), last=late.argmax(table.number))
        .to_pyarrow()
        .to_pylist()[0]
    )
    share = (row["held"] or 0) / max(side.extent.calls, 1)
    return Waiting(share, (row["worst"] or 0) / 1e9, (row["last"] or 0) / 1e9)


def fell_behind(last_s: float, lasted_s: float) -> bool:
    """Whether the last call of a replay came so late that the storage did not keep up."""
    return last_s > max(0.02 * lasted_s, 0.1)


def which_are_slow(asked: Asked) -> Answer:
    """The slowest calls, by their kind."""
    question = "Which calls are slow?"
    if asked.no_times:
        return not_known(question, asked.no_times)
    work = work_of(asked.study)
    kinds = {
        series: each for series, each in work.items() if each.calls >= SAME_SERIES and series is not CallSeries.OTHER
    }
    if not kinds:
        return Answer(question, Severity.NEUTRAL, "There are too few calls on files to say so.")
    slowest = max(kinds, key=lambda series: kinds[series].seconds / kinds[series].calls)
    values = asked.side.response.get(slowest)
    if values is None or not values.count:
        return Answer(question, Severity.NEUTRAL, "No call on a file has a duration.")
    share, name = tail_of(values.count)
    usual, high = values.quantile(0.5) / 1e9, values.quantile(share) / 1e9
    far = f", {units.number(high / usual, 2)} times the median" if usual > 0 and high >= FAR * usual else ""
    diagram = {CallSeries.METADATA: "call"}.get(slowest, slowest.name.lower())
    text = f"The {DOING[slowest]} take longest: the median is {units.span(usual)}, {name} {units.span(high)}{far}."
    return Answer(question, Severity.NEUTRAL, text, f"response.{diagram}")


def is_one_place_slow(asked: Asked) -> Answer:
    """The slow files, directory or mount."""
    question = "Is one file or directory slower?"
    if found := asked.first(("F11",)):
        return of_finding(question, found)
    if asked.no_times:
        return not_known(question, asked.no_times)
    return Answer(question, Severity.GOOD, "No place takes most of the time by calls that are slower than elsewhere.")


def is_it_the_cache(asked: Asked) -> Answer:
    """What requests of block devices beside it say, else what short reads do."""
    question, study = "Does the page cache answer, or the storage?", asked.study
    if study.blocks is None:
        text = "Not known from calls alone: record the block devices beside them, and name that file by `--blocks`."
        if asked.side.is_run:
            text = "Not known from calls alone: `iosonar record` beside a replay shows the requests of the storage."
        return Answer(question, Severity.NEUTRAL, text)
    files = [each for each in study.requests_of_files if each.is_file]
    called, requested = sum(each.called_read for each in files), sum(each.requested_read for each in files)
    if not called:
        return Answer(question, Severity.NEUTRAL, "No call read from a file.", "amplification")
    text = (
        f"Calls read {units.transferred(called)}, and their requests read {units.transferred(requested)} from the "
        f"storage: {'the cache answers most' if requested < 0.5 * called else 'most comes from the storage'}."
    )
    return Answer(question, Severity.NEUTRAL, text, "amplification")


def did_something_change(asked: Asked) -> Answer:
    """A replay against its original."""
    question, side = "Is it the program or the storage that changed?", asked.side
    if not side.is_run:
        text = "One trace does not say it: replay it, or compare it with a replay (`iosonar compare`)."
        return Answer(question, Severity.NEUTRAL, text)
    file = side.calls.file
    if file.is_by_strace or file.is_generated or asked.no_times:
        why = asked.no_times or (
            f"the trace {PLACEHOLDERS}" if file.is_generated else "strace slowed the original down"
        )
        return Answer(question, Severity.NEUTRAL, f"Not known: {why}.")
    here, there = side.pooled_response, pooled(list(side.original_response.values()))
    if not (here.count and there.count):
        return Answer(question, Severity.NEUTRAL, "Not known: the original has no durations.")
    looked_at = [(0.5, "median", CHANGED)]
    if min(here.count, there.count) >= ENOUGH_FOR_P99:
        looked_at.append((0.99, "99th percentile", SLOW_CHANGED))
    # The first that changed, else the median.
    for share, name, least in reversed(looked_at):
        one, other = here.quantile(share), there.quantile(share)
        times = f"the {name} is {units.span(one / 1e9)} against {units.span(other / 1e9)}"
        if min(one, other) and max(one, other) / min(one, other) - 1 >= least:
            word = "slower" if one > other else "faster"
            break
    else:
        return Answer(question, Severity.GOOD, f"Neither: the calls are the same, and {times}.", "response.call")
    text = f"The storage or the machine: the calls are the same, but {word} than in the original; {times}."
    return Answer(question, Severity.NEUTRAL, text, "response.call")


def were_files_prepared(asked: Asked) -> Answer:
    """Whether calls had the results of the original."""
    question, side = "Were the files prepared?", asked.side
    if not side.is_run:
        return Answer(question, Severity.NEUTRAL, "It is a trace: the files were those of the program itself.")
    if asked.judgement.is_fake:
        return Answer(question, Severity.NEUTRAL, "There were no files.")
    number = side.extent.mismatches
    if not number:
        return Answer(question, Severity.GOOD, "Yes: no call had another result than in the original.")
    share = units.percent(number / max(side.extent.calls, 1))
    text = (
        f"Perhaps not: {units.counted(number, 'call')} ({share}) had another result than in the original. "
        "`iosonar files check` says whether a file differs, `iosonar files prepare --reset` makes all as they were."
    )
    return Answer(question, Severity.WARNING, text)


def how_sure(asked: Asked) -> Answer:
    """What the calls can and cannot say."""
    question, side = "How sure is this?", asked.side
    if side.calls.file.is_by_strace and not side.is_run:
        text = "Which calls were made is sure; their times are not, as strace slows each one down."
        return Answer(question, Severity.WARNING, text)
    if asked.no_times:
        return Answer(
            question, Severity.WARNING, f"Which calls were made is sure; their times are not: {asked.no_times}."
        )
    known = percentile_known(side.pooled_response.count, "calls")
    text = f"{known}One {'run' if side.is_run else 'trace'} does not show how much runs differ: repeat it."
    return Answer(question, Severity.NEUTRAL, text)


def what_next(asked: Asked) -> Answer:
    """The first advice of the worst finding."""
    question = "What next?"
    worst = asked.first(WASTE, severe=True) or asked.first(WASTE)
    if worst and worst.advice:
        return Answer(question, Severity.NEUTRAL, worst.advice[0], number=worst.number)
    if not asked.side.is_run:
        text = "Replay it on the storage that you want to judge: `iosonar files prepare`, then `iosonar files replay`."
        return Answer(question, Severity.NEUTRAL, text)
    if asked.judgement.doubt and not asked.judgement.is_fake:
        text = "Replay it again, faithfully: stop other programs, and leave a processor to the replayer (`--isolate`)."
        return Answer(question, Severity.NEUTRAL, text)
    text = "Compare it with its trace, or with a replay on another storage: `iosonar compare`."
    return Answer(question, Severity.NEUTRAL, text)


def _small(text: str) -> str:
    """A sentence as a clause."""
    return f"this{text[4:]}" if text.startswith("This ") else text


QUESTIONS: tuple[Callable[[Asked], Answer], ...] = (
    is_valid,
    what_takes_time,
    is_it_fast_enough,
    which_are_slow,
    is_one_place_slow,
    is_it_the_cache,
    did_something_change,
    were_files_prepared,
    how_sure,
    what_next,
)
"""All questions, in the order of the page."""
