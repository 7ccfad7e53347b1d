"""The first screen of a campaign's page: the questions of a run's page, answered for all leaves together."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from iosonar import units
from iosonar.campaign.report.analysis import Analysis
from iosonar.campaign.report.asked import (
    Asked,
    are_valid,
    did_load_or_storage_change,
    finished,
    how_sure,
    next_step,
    of_leaves,
    tail,
    times_of,
)
from iosonar.campaign.report.call_answers import QUESTIONS as OF_CALLS
from iosonar.campaign.report.found import Found
from iosonar.campaign.report.results import LeafResult
from iosonar.figures.model import Severity
from iosonar.report.answering import FAR, not_known
from iosonar.report.answers import CACHE, COLLAPSE, LIMITS, PREPARED, RATED, REPLAYER, SATURATED, SLOW
from iosonar.report.page import Answer
from iosonar.text import plain


def what_limits(asked: Asked) -> Answer:
    """The most direct cause of a limit that many leaves have."""
    question = "What limits the storage?"
    if answer := of_leaves(asked, question, LIMITS):
        return replace(answer, text=f"Not known. {answer.text}") if answer.number == REPLAYER else answer
    if asked.doubt:
        return not_known(question, asked.doubt)
    return Answer(question, asked.good, f"No limit was found in {asked.leaves}.")


def from_which_rate(asked: Asked) -> Answer:
    """The rates that the storage completes where more was demanded."""
    question = "From which rate on is it too slow?"
    known = {
        leaf.name: rates[0]
        for leaf in asked.used
        if (rates := [found.capacity_per_s for found in _rated(leaf) if found.capacity_per_s])
    }
    if known:
        low, high = min(known.values()), max(known.values())
        same = units.count(low) == units.count(high)
        rate = units.count(low) if same else f"{units.count(low)} to {units.count(high)}"
        where = f"all {len(known)} leaves" if len(known) == len(asked.used) > 1 else f"{len(known)} of {asked.total}"
        return Answer(question, Severity.WARNING, f"From about {rate} requests/s on, in {where}.")
    timed = [leaf for leaf in asked.used if "throughput" in leaf.metrics]
    if not timed:
        text = "The loads demanded no rate: each request waited for earlier ones."
        return Answer(question, Severity.NEUTRAL, text)
    if asked.doubt:
        return not_known(question, asked.doubt)
    most = max(timed, key=lambda leaf: leaf.metrics.get("iops", 0.0))
    rate = units.count(most.metrics.get("iops", math.nan))
    text = f"No such rate was reached. The highest rate of a leaf was {rate} requests/s, in `{plain(most.name)}`."
    limited = asked.findings.first(LIMITS)
    return Answer(question, Severity.NEUTRAL if limited else asked.good, text)


def _rated(leaf: LeafResult) -> list[Found]:
    """The findings that know a rate, the one that knows it best first; a collapse only where more was demanded."""
    is_saturated = any(each.number in SATURATED for each in leaf.findings)
    rated = [each for each in leaf.findings if each.number in RATED and (is_saturated or each.number != COLLAPSE)]
    return sorted(rated, key=lambda each: RATED.index(each.number))


def which_are_slow(asked: Asked) -> Answer:
    """What the slow requests have in common, or the leaf with the slowest."""
    question = "What are the slow requests?"
    if answer := of_leaves(asked, question, SLOW):
        return answer
    known = [leaf for leaf in asked.used if leaf.metrics.get("p50") and "p99" in leaf.metrics]
    if asked.doubt:
        return not_known(question, asked.doubt)
    if not known:
        return Answer(question, Severity.NEUTRAL, "No leaf has enough requests for a p99.")
    worst = max(known, key=tail)
    slowest = max(known, key=lambda leaf: leaf.metrics["p99"])
    stand_out = tail(worst) >= FAR
    text = (
        f"They have no cause in common that was found. They stand out most {times_of(worst)}."
        if stand_out
        else f"None stand out within a leaf. The slowest are {times_of(slowest)}."
    )
    praise = not stand_out and not asked.findings.first(LIMITS)
    return Answer(question, asked.good if praise else Severity.NEUTRAL, text)


def is_one_device_slow(asked: Asked) -> Answer:
    """The slow one of several devices of a leaf."""
    question = "Is one device slower?"
    if answer := of_leaves(asked, question, ("S11",)):
        return answer
    several = [leaf for leaf in asked.used if len(leaf.devices) > 1]
    slow = [leaf for leaf in several if leaf.slow]
    if slow:
        text = f"In {len(slow)} of {asked.total}. {slow[0].name}: {slow[0].slow[0]}."
        return Answer(question, Severity.WARNING, text)
    if not several:
        each = "Each leaf" if len(asked.used) > 1 else "The leaf"
        return Answer(question, Severity.NEUTRAL, f"{each} has one device.")
    if asked.doubt:
        return not_known(question, asked.doubt)
    of = units.counted(len(several), "leaf", "leaves")
    return Answer(question, asked.good, f"No: no device stands out, in {of} with several devices.")


def is_it_the_cache(asked: Asked) -> Answer:
    """What caches did."""
    question = "Is it the cache?"
    if answer := of_leaves(asked, question, CACHE):
        return answer
    if asked.doubt:
        return not_known(question, asked.doubt)
    text = f"No: no level of fast reads and no cliff of writes was found in {asked.leaves}."
    return Answer(question, asked.good, text)


def were_targets_prepared(asked: Asked) -> Answer:
    """Whether the targets were filled, large enough, and as before."""
    question = "Were the targets prepared?"
    unfilled = sum(leaf.unfilled for leaf in asked.analysis.leaves)
    if unfilled:
        total = units.counted(len(asked.analysis.leaves), "leaf", "leaves")
        return Answer(question, Severity.WARNING, f"No: in {unfilled} of {total}, reads returned only zeros.")
    if answer := of_leaves(asked, question, PREPARED):
        return replace(answer, text=f"No. {answer.text}")
    wrapped = sum(leaf.wrap_factor > 1 for leaf in asked.used)
    if wrapped:
        text = f"No: in {wrapped} of {asked.total}, the load reaches beyond the device."
        return Answer(question, Severity.WARNING, text)
    if asked.is_fake:
        return Answer(question, Severity.NEUTRAL, "There was no target.")
    return Answer(question, Severity.GOOD, "As far as is known: in no leaf, reads returned only zeros; the loads fit.")


def what_next(asked: Asked) -> Answer:
    """What makes the campaign complete, then sure; then the advice of what limits the storage."""
    return next_step(asked, (LIMITS, SLOW), "Vary more, or demand more (`--speedup 2`), to find the limit.")


QUESTIONS: tuple[Callable[[Asked], Answer], ...] = (
    are_valid,
    what_limits,
    from_which_rate,
    which_are_slow,
    is_one_device_slow,
    is_it_the_cache,
    did_load_or_storage_change,
    were_targets_prepared,
    how_sure,
    what_next,
)
"""All questions, in the order of the page."""


def answers(analysis: Analysis) -> tuple[Answer, ...]:
    """The answers to all questions, in their order; none without results."""
    asked = Asked(analysis)
    if not asked.used:
        return ()
    return finished([answer(asked) for answer in (OF_CALLS if asked.of_calls else QUESTIONS)])
