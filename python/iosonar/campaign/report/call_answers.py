"""The first screen of a campaign of calls: the questions of a page of calls, answered for all leaves together."""

from __future__ import annotations

import math
from collections.abc import Callable

from iosonar import units
from iosonar.campaign.report.asked import (
    Asked,
    are_valid,
    did_load_or_storage_change,
    how_sure,
    next_step,
    of_leaves,
    tail,
    times_of,
)
from iosonar.campaign.report.results import LeafResult
from iosonar.figures.model import Severity
from iosonar.findings.finding import Severity as Weight
from iosonar.report.answering import FAR, not_known
from iosonar.report.call_answers import WASTE
from iosonar.report.page import Answer

PLACE = "F11"
"""Calls that are slow in one place."""


def what_takes_time(asked: Asked) -> Answer:
    """The worst waste that many leaves have."""
    question = "What takes the time?"
    severe = {each.number for each in asked.findings.all if each.worst.severity is not Weight.INFO}
    if answer := of_leaves(asked, question, [number for number in WASTE if number in severe]):
        return answer
    if asked.doubt:
        return not_known(question, asked.doubt)
    return Answer(question, Severity.NEUTRAL, f"No waste that takes much of it was found in {asked.leaves}.")


def is_it_fast_enough(asked: Asked) -> Answer:
    """The leaves whose calls came late, as earlier calls took longer than in the original."""
    question = "Is the storage fast enough?"
    if asked.doubt:
        return not_known(question, asked.doubt)
    timed = [leaf for leaf in asked.used if math.isfinite(leaf.late_s)]
    if not timed:
        text = "No replay kept times: each call was issued as soon as those before it had ended."
        return Answer(question, Severity.NEUTRAL, text)
    late = [leaf for leaf in timed if leaf.fell_behind]
    if late:
        worst = max(late, key=lambda leaf: leaf.late_s)
        text = (
            f"Not in {len(late)} of {asked.total}: in {worst.name}, the last call came {units.span(worst.late_s)} late."
        )
        return Answer(question, Severity.WARNING, text)
    most = max(timed, key=_rate)
    of = "the load of the leaf" if len(timed) == 1 else f"the loads of {units.counted(len(timed), 'leaf', 'leaves')}"
    text = f"Yes, for {of}: they kept up to the end. The highest rate was {units.count(_rate(most))} calls/s."
    return Answer(question, asked.good, text)


def _rate(leaf: LeafResult) -> float:
    return leaf.metrics.get("iops", 0.0)


def which_are_slow(asked: Asked) -> Answer:
    """The leaf with the slowest calls."""
    question = "Which calls are slow?"
    if asked.doubt:
        return not_known(question, asked.doubt)
    known = [leaf for leaf in asked.used if leaf.metrics.get("p50") and "p99" in leaf.metrics]
    if not known:
        return Answer(question, Severity.NEUTRAL, "No leaf has enough calls for a p99.")
    worst, slowest = max(known, key=tail), max(known, key=lambda leaf: leaf.metrics["p99"])
    text = (
        f"They stand out most {times_of(worst)}."
        if tail(worst) >= FAR
        else f"None stand out within a leaf. The slowest are {times_of(slowest)}."
    )
    return Answer(question, Severity.NEUTRAL, text)


def is_one_place_slow(asked: Asked) -> Answer:
    """The slow files, directory or mount of a leaf."""
    question = "Is one file or directory slower?"
    if answer := of_leaves(asked, question, (PLACE,)):
        return answer
    if asked.doubt:
        return not_known(question, asked.doubt)
    text = f"In {asked.leaves}, no place takes most of the time by calls that are slower than elsewhere."
    return Answer(question, asked.good, text)


def is_it_the_cache(asked: Asked) -> Answer:
    """Calls alone do not say it."""
    text = "Not known from calls alone: `iosonar record` beside a replay shows the requests of the storage."
    return Answer("Does the page cache answer, or the storage?", Severity.NEUTRAL, text)


def were_files_prepared(asked: Asked) -> Answer:
    """Whether calls had the results of the original."""
    question = "Were the files prepared?"
    if asked.is_fake:
        return Answer(question, Severity.NEUTRAL, "There were no files.")
    wrong = [leaf for leaf in asked.used if leaf.metrics.get("mismatches")]
    if not wrong:
        text = f"Yes: in {asked.leaves}, no call had another result than in the original."
        return Answer(question, Severity.GOOD, text)
    worst = max(wrong, key=lambda leaf: leaf.metrics["mismatches"])
    calls = units.counted(int(worst.metrics["mismatches"]), "call")
    text = (
        f"Not all: in {len(wrong)} of {asked.total}, calls had another result than in the original; in {worst.name}, "
        f"{calls}. `files_prepare=reset` makes the files as they were before each leaf."
    )
    return Answer(question, Severity.WARNING, text)


def what_next(asked: Asked) -> Answer:
    """What makes the campaign complete, then sure; then the advice of the worst waste."""
    return next_step(asked, (WASTE,), "Vary more, such as the storage, the threads or the options of the mount.")


QUESTIONS: tuple[Callable[[Asked], Answer], ...] = (
    are_valid,
    what_takes_time,
    is_it_fast_enough,
    which_are_slow,
    is_one_place_slow,
    is_it_the_cache,
    did_load_or_storage_change,
    were_files_prepared,
    how_sure,
    what_next,
)
"""All questions, in the order of the page."""
