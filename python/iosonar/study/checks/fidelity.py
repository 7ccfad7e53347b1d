"""The replay itself: how late it issued the requests that nothing but the replayer held back."""

from __future__ import annotations

import math

from iosonar import units
from iosonar.quantities.fidelity import Fidelity
from iosonar.study.check import Check, Topic
from iosonar.study.grades import Grade
from iosonar.study.requests import Study
from iosonar.study.runs import FAITHFUL, RunJudgement, runs_of


def fidelity(study: Study) -> Check:
    """The fidelity of the worst run; without a grade if that of a run is unknown, and no other is bad."""
    runs = runs_of(study)
    # The first of the worst.
    worst = max((run for run in runs if run.grade), key=lambda run: run.grade.rank if run.grade else 0, default=None)
    unknown = next((run.not_known for run in runs if run.unknown), "")
    if unknown and not (worst and worst.grade is Grade.BAD):
        sentence = "It is not known whether the replay was faithful"
        return Check("fidelity", None, reason=unknown, sentence=sentence, about=Topic.REPLAY)
    if worst is None or worst.fidelity is None:
        return Check("fidelity", Grade.GOOD, about=Topic.REPLAY)
    found = worst.fidelity
    values = {
        "requests": found.requests,
        "within_10_us": _rounded(found.within_10_us),
        "within_50_us": _rounded(found.within_50_us),
        "within_100_us": _rounded(found.within_100_us),
        "p99_s": None if math.isnan(found.p99_s) else found.p99_s,
    }
    least = "The least faithful run: " if len(runs) > 1 else ""
    reason = f"{worst.missed}{_remedies(worst)}"
    when = " in this window" if worst.is_part else ""
    return Check("fidelity", worst.grade, values, reason, f"{least}{_sentence(found, when)}", about=Topic.REPLAY)


def _sentence(found: Fidelity, when: str) -> str:
    share = _rounded(found.within_50_us)
    needed = "" if share >= FAITHFUL else f"; {FAITHFUL * 100:g} % are needed"
    those, was, its = (
        ("the one request that was not held back", "was", "its")
        if found.requests == 1
        else (f"the {found.requests:,} requests that were not held back", "were", "their")
    )
    text = f"{units.percent(share)} of {those}{when} {was} issued within 50 µs of {its} scheduled time{needed}"
    return f"{text}. 99 % were issued within {units.span(found.p99_s)}" if found.p99_s > 0 else text


def _rounded(share: float) -> float:
    """Rounds to six digits, but never up to the share that a faithful replay needs."""
    near = round(share, 6)
    return near if share >= FAITHFUL or near < FAITHFUL else math.floor(share * 1e6) / 1e6


def _remedies(run: RunJudgement) -> str:
    steps = [f"{number}. {step.words}" for number, step in enumerate(run.remedies, start=1)]
    return f"; try, in this order: {', '.join(steps)}" if steps else ""
