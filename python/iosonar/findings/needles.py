"""Needles: queues that formed and went away, and what was on when they began."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from iosonar.findings.course import Usual, slow_of, stalls_of, stretches_of, timeline_of, usual_of
from iosonar.quantities.batches import array_of
from iosonar.quantities.waits import Slow, Waits, waits
from iosonar.study.base import cached
from iosonar.study.requests import Study

HIGH = 3
"""A needle is so many times as high as the highest latency that queues would give by chance."""

FELLOWS = 5
"""The fewest requests of a needle: a single slow one is none."""

MAX_TIME = 0.3
"""If the needles take more than that share of the run, they are its usual course."""

MAX_NEEDLES = 2000
BURST, BURST_ERRORS = 3.0, 6.0
SURE_ERRORS = 8.0
"""Where the height shows no needle: so many standard errors above the expected number, as chance never gives."""

LARGE, LARGE_SECTORS = 16, 1024
"""A large request has so many times the usual size, and at least so many sectors."""

MAX_SPECIAL = 200_000
MOSTLY = 0.6
RARE = 0.3
"""What is in flight for more than that share of the time is no cause."""

FEWEST_SPECIAL = 5
"""The fewest requests of a kind that show that they hold others back."""

MORE_SLOW = 4
"""While one of them is in flight, so many times as many requests of the same number are slow as right before it."""


class Cause(Enum):
    """What was on when a needle began, in words."""

    BURST = "a burst of requests"
    FLUSH = "a flush"
    DISCARD = "a discard"
    LARGE = "a large request"
    UNKNOWN = "nothing special in the load"


@dataclass(frozen=True)
class Needles:
    """The needles of a run, and the cause that most of them have, with the share of them that have it."""

    waits: Waits
    cause: Cause
    share: float
    is_by_height: bool = True
    """Whether they are higher than queues of the run may be by chance; else their cause alone shows them."""


@dataclass(frozen=True)
class Special:
    """Requests that may hold others back: flushes, discards, or large ones."""

    issued_ns: NDArray[np.int64]
    completed_ns: NDArray[np.int64]

    def in_flight_at(self, begin_ns: NDArray[np.int64], slack_ns: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether one of them was in flight, or was issued up to a little later."""
        begun = np.searchsorted(np.sort(self.issued_ns), begin_ns + slack_ns, side="right")
        ended = np.searchsorted(np.sort(self.completed_ns), begin_ns, side="left")
        found: NDArray[np.bool_] = begun > ended
        return found

    def without(self, slow: Slow) -> Slow:
        """The slow requests that are none of them."""
        same = np.isin(slow.issued_ns, self.issued_ns) & np.isin(slow.completed_ns, self.completed_ns)
        return Slow(slow.issued_ns[~same], slow.completed_ns[~same])

    def time_ns(self) -> float:
        """How long at least one was in flight."""
        order = np.argsort(self.issued_ns)
        begin, end = self.issued_ns[order], np.maximum.accumulate(self.completed_ns[order])
        before = np.concatenate([begin[:1], end[:-1]])
        return float(np.maximum(end - np.maximum(begin, before), 0).sum())


@cached
def needles_of(study: Study) -> Needles | None:
    """None if there are none, or if they recur: then they are stalls."""
    slow, usual = slow_of(study), usual_of(study)
    if slow is None or usual is None or stalls_of(study) is not None:
        return None
    found = waits(slow, usual.highest)
    chosen = (found.peak_ns >= HIGH * usual.highest) & (found.requests >= FELLOWS)
    if not chosen.any():
        return _held_up(study, slow, usual) or _after_bursts(study, slow, usual)
    kept = found.chosen(chosen)
    if len(kept) > MAX_NEEDLES or _take_long(study, kept):
        return None
    cause, share = _cause(study, kept)
    return Needles(kept, cause, share)


def _take_long(study: Study, found: Waits) -> bool:
    """Whether waits take so much of the run that they are its usual course."""
    length = study.span.last_ns - study.span.first_ns
    return float((found.end_ns - found.begin_ns).sum()) > MAX_TIME * max(length, 1)


def _held_up(study: Study, slow: Slow, usual: Usual) -> Needles | None:
    """Needles no higher than queues of the run may be by chance, if requests of one kind begin most of them.

    Where a device has long queues of its own, the height alone does not show them. But requests that follow a large one
    are slow, and those before it are not.
    """
    course, length = timeline_of(study), max(study.span.last_ns - study.span.first_ns, 1)
    many = course.issued.sum(axis=0)
    for cause, special in _special(study).items():
        if len(special.issued_ns) < FEWEST_SPECIAL or special.time_ns() / length >= RARE:
            continue
        others = special.without(slow)
        begin, end = special.issued_ns, special.completed_ns
        during, before = (_number(others, low, high) for low, high in ((begin, end), (2 * begin - end, begin)))
        came, came_before = (
            course.until(many, high / 1e9) - course.until(many, low / 1e9)
            for low, high in ((begin, end), (2 * begin - end, begin))
        )
        is_burst = float(came.sum()) >= BURST * float(came_before.sum())
        if is_burst or float((during >= FELLOWS).mean()) < MOSTLY / 2 or during.sum() < MORE_SLOW * before.sum():
            continue
        found = waits(others)
        hit = special.in_flight_at(found.begin_ns, found.peak_ns // 20)
        kept = found.chosen(hit & (found.requests >= FELLOWS) & (found.peak_ns >= HIGH * usual.p90))
        if len(kept) >= FEWEST_SPECIAL and len(kept) <= MAX_NEEDLES and not _take_long(study, kept):
            return Needles(kept, cause, 1.0, is_by_height=False)
    return None


def _after_bursts(study: Study, slow: Slow, usual: Usual) -> Needles | None:
    """Needles no higher than queues of the run may be by chance, if bursts in the load begin most of them."""
    found = waits(slow)
    found = found.chosen((found.requests >= FELLOWS) & (found.peak_ns >= HIGH * usual.p90))
    if not len(found):
        return None
    hit = _bursts(study, found, SURE_ERRORS)
    kept = found.chosen(hit)
    if not FEWEST_SPECIAL <= len(kept) <= MAX_NEEDLES or float(hit.mean()) < MOSTLY or _take_long(study, kept):
        return None
    return Needles(kept, Cause.BURST, 1.0, is_by_height=False)


def _number(slow: Slow, low_ns: NDArray[np.int64], high_ns: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many slow requests were issued within each stretch of time."""
    found: NDArray[np.int64] = np.searchsorted(slow.issued_ns, high_ns) - np.searchsorted(slow.issued_ns, low_ns)
    return found


def _cause(study: Study, found: Waits) -> tuple[Cause, float]:
    slack = np.maximum(found.peak_ns // 20, 1)
    length = max(study.span.last_ns - study.span.first_ns, 1)
    for cause, special in _special(study).items():
        hit = float(special.in_flight_at(found.begin_ns, slack).mean())
        if hit >= MOSTLY and special.time_ns() / length < RARE:
            return cause, hit
    burst = float(_bursts(study, found).mean())
    return (Cause.BURST, burst) if burst >= MOSTLY else (Cause.UNKNOWN, 1.0)


def _bursts(study: Study, found: Waits, errors: float = BURST_ERRORS) -> NDArray[np.bool_]:
    """Whether many more requests than usual came when each needle began."""
    course = timeline_of(study)
    many = (course.due if study.has_demand else course.issued).sum(axis=0)
    rate = float(many.sum()) / max(float(course.edges_s[-1] - course.edges_s[0]), 1e-9)
    half = np.maximum(found.peak_ns / 2e9, course.width_s)
    begin_s = found.begin_ns / 1e9
    came = course.until(many, begin_s + half) - course.until(many, begin_s - half)
    expected = rate * 2 * half
    return (came >= BURST * expected) & (came - expected > errors * np.sqrt(np.maximum(expected, 1)))


def _special(study: Study) -> dict[Cause, Special]:
    """Requests of the whole run that may be causes, by the kind."""
    sizes = [part.sectors[part.moved] for part in stretches_of(study)]
    usual = float(np.median(np.concatenate(sizes))) if sum(map(len, sizes)) else 8.0
    large = max(LARGE * usual, LARGE_SECTORS)
    if not study.is_part and (found := _large_only(study, large)) is not None:
        return found
    table = study.requests.table
    chosen = table.filter(
        table.completed_ns.notnull() & (~table["op"].isin(("read", "write")) | (table.sectors >= large))
    )
    rows = chosen.select("issued_ns", "completed_ns", op=chosen["op"]).limit(MAX_SPECIAL).to_pyarrow()
    issued, completed = (array_of(rows[name]) - study.origin_ns for name in ("issued_ns", "completed_ns"))
    op = np.array(rows["op"].to_pylist(), dtype=object)
    kinds = {
        Cause.FLUSH: op == "flush",
        Cause.DISCARD: (op == "discard") | (op == "write_zeroes"),
        Cause.LARGE: (op == "read") | (op == "write"),
    }
    return {cause: Special(issued[own], completed[own]) for cause, own in kinds.items() if own.any()}


def _large_only(study: Study, large: float) -> dict[Cause, Special] | None:
    """The large requests of a run, by its narrow table; None if others may be causes, too."""
    known = study.table.filter(
        study.table.completed_ns.notnull() & (~study.table.moved | (study.table.sectors >= large))
    )
    found = known.aggregate(n=known.count(), moved=known.moved.cast("int64").sum()).to_pyarrow().to_pylist()[0]
    if not found["n"]:
        return {}
    if found["n"] != found["moved"]:
        return None
    rows = known.select("issued_ns", "completed_ns").limit(MAX_SPECIAL).to_pyarrow()
    return {Cause.LARGE: Special(array_of(rows["issued_ns"]), array_of(rows["completed_ns"]))}
