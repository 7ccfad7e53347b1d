"""Groups of runs held against each other: what changed, how sure that is, in words, numbers and diagrams."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from iosonar import units
from iosonar.diagrams.comparison import Side, changes, curves, delivered, over_time
from iosonar.diagrams.notes import decisive, fidelity_of, grade_of
from iosonar.diagrams.study import LATENCY
from iosonar.errors import UserError
from iosonar.figures.model import Mood
from iosonar.quantities.blocks import Blocks, blocks, rates
from iosonar.quantities.difference import (
    LEAST_RUNS,
    THROUGHPUT,
    Difference,
    Finding,
    Pairing,
    RateDifference,
    differences,
    rate_difference,
)
from iosonar.quantities.pairs import Pairs, pairs
from iosonar.report.page import Band, Front, Page, Section, Table, Tile

WAYS = ("asap", "closed", "reads_only")
"""Options that make another load of the same requests."""


@dataclass(frozen=True)
class Against:
    """One side held against the first."""

    side: Side
    found: list[Difference]
    throughput: RateDifference | None
    pairing: Pairing
    pairs: Pairs | None
    same_load: bool
    unfaithful: tuple[str, ...]
    """Runs of either side whose times were missed by so much that they say nothing about the storage."""
    fakes: tuple[str, ...]
    """Runs of either side in which no storage was asked."""


@dataclass(frozen=True)
class Comparison:
    """All sides, and all but the first held against it."""

    sides: tuple[Side, ...]
    against: tuple[Against, ...]


def compare(sides: Sequence[Side]) -> Comparison:
    """Holds each side against the first."""
    for side in sides:
        if not side.study.pooled(LATENCY).count:
            raise UserError(f"{side.name}: no request of it has a latency, so there is nothing to compare")
    low = min(round((side.study.span.first_intended_s or 0) * 1e9) for side in sides)
    high = max(round((side.study.span.last_intended_s or 0) * 1e9) for side in sides)
    first = sides[0]
    cut = {side.letter: _blocks(side, low, high) for side in sides}
    answers = {side.letter: _rates(side) for side in sides}
    against = []
    for side in sides[1:]:
        same_load, same = _pairing(first, side)
        matched = pairs(*_together(first, side)) if same is Pairing.PAIRED else None
        found = differences(cut[first.letter], cut[side.letter], same)
        answered = rate_difference(answers[first.letter], answers[side.letter], same)
        unfaithful = tuple(run for each in (first, side) for run, grade in _missed(each) if grade[0] is Mood.BAD)
        fakes = tuple(name for each in (first, side) for name, _ in _faked(each))
        against.append(Against(side, found, answered, same, matched, same_load, unfaithful, fakes))
    return Comparison(tuple(sides), tuple(against))


def _blocks(side: Side, low_ns: int, high_ns: int) -> list[Blocks]:
    table = side.study.table
    found = [blocks(table.filter(table.source == index), low_ns, high_ns) for index in range(side.runs)]
    return [run for run in found if run.counts.any()]


def _rates(side: Side) -> list[NDArray[np.float64]]:
    table = side.study.table
    found = [rates(table.filter(table.source == index)) for index in range(side.runs)]
    return [run for run in found if len(run)]


def _pairing(a: Side, b: Side) -> tuple[bool, Pairing]:
    """Whether all runs replayed the same load (its requests, by their extent, in the same way), and their pairing."""

    def what(side: Side) -> set[tuple[str, ...]]:
        found = set()
        for file in side.study.requests.files:
            options = file.run.get("options") or {}
            span = dict(file.footer.get("span") or {})
            if options.get("closed"):
                # In a closed loop the storage makes the times.
                span = {name: span[name] for name in span if not name.endswith("_ns")}
            ways = (str(options.get(name) or "") for name in ("speedup", *WAYS))
            found.add((str(span), str(file.footer.get("counts")), *ways) if span else ())
        return found

    same = what(a) == what(b) and len(what(a)) == 1 and what(a) != {()}
    # Where the storage makes the times, the same moment is not the same request.
    closed = any((file.run.get("options") or {}).get("closed") for side in (a, b) for file in side.study.requests.files)
    return same, Pairing.PAIRED if same and not closed else Pairing.UNPAIRED


def _together(a: Side, b: Side) -> tuple[Any, Any]:
    """Both tables on the engine of the first."""
    engine = a.study.requests.engine.backend
    table = b.study.requests.table
    columns = table.filter(table.latency_ns.notnull()).select("request", "round", "latency_ns")
    name = f"side_{b.letter}"
    # Ibis' own way, create_table, fails with DuckDB 2.0.
    engine.con.register(name, columns.to_pyarrow())
    return a.study.requests.table, engine.table(name)


def sentences(compared: Comparison) -> Iterator[Band]:
    """What may be said, in plain words; what casts doubt on the runs first."""
    for name, why in (fake for side in compared.sides for fake in _faked(side)):
        yield Band(Mood.BAD, f"{why}.", f"{name} is a fake result:")
    yield from _fidelity(compared.sides)
    first = compared.sides[0]
    for each in compared.against:
        if not each.same_load:
            yield Band(
                Mood.WARNING,
                "the runs did not all replay the same load in the same way, or don't say so. "
                "What differs may be the load, not the storage.",
                f"{each.side.letter} against {first.letter}, different loads:",
            )
        few = min(first.runs, each.side.runs)
        if few < LEAST_RUNS:
            yield Band(
                Mood.WARNING,
                f"{few} run{'s' if few > 1 else ''} a side can't tell a difference of the storage from chance; "
                f"it takes {LEAST_RUNS} runs of each. The numbers below describe these runs only.",
                f"{each.side.letter} against {first.letter}: no claim.",
            )
        else:
            yield _claims(each, first)
        if each.pairs:
            change = change_text(each.pairs.median_ratio - 1)
            yield Band(
                Mood.NEUTRAL,
                f"of the {each.pairs.requests:,} requests that both sides answered, "
                f"{units.percent(each.pairs.slower_share)} took longer in {each.side.letter}; "
                f"the median change is {change}.",
                "Request by request:",
            )


def _faked(side: Side) -> Iterator[tuple[str, str]]:
    """The runs of a side that asked no storage, with what they say of that."""
    for file in side.study.requests.files:
        if fake := file.run.get("fake"):
            yield f"{file.name} of {side.letter}", str(fake).removeprefix("FAKE RESULT: ")


def _missed(side: Side) -> Iterator[tuple[str, tuple[Mood, str]]]:
    """The runs of a side that missed their times, with their grade."""
    for index, file in enumerate(side.study.requests.files):
        found = fidelity_of(side.study, index, file)
        if found is None or not found.requests or file.run.get("options", {}).get("asap"):
            continue
        grade = grade_of(found)
        if grade[0] is not Mood.GOOD:
            yield f"{file.name} of {side.letter} ({decisive(found)})", grade


def _fidelity(sides: Sequence[Side]) -> Iterator[Band]:
    """Which runs missed their times, the worst grade first: those of one grade in one sentence."""
    missed: dict[tuple[Mood, str], list[str]] = {}
    for side in sides:
        for said, grade in _missed(side):
            missed.setdefault(grade, []).append(said)
    for (mood, words), runs in sorted(missed.items(), key=lambda each: each[0][0] is not Mood.BAD):
        text = f"{', '.join(runs)}. What differs may be the replay, not the storage."
        yield Band(mood, text, f"Replay {words}:")


def _claims(each: Against, first: Side) -> Band:
    head = f"{each.side.letter} against {first.letter}:"
    by: dict[Finding, list[Difference | RateDifference]] = {
        finding: [one for one in each.found if one.finding is finding] for finding in Finding
    }
    if each.throughput:
        by[each.throughput.finding].append(each.throughput)
    said = [
        f"{word} at {', '.join(f'{metric_of(one)} ({change_text(one.change)})' for one in by[finding])}"
        for finding, word in ((Finding.SLOWER, "slower"), (Finding.FASTER, "faster"))
        if by[finding]
    ]
    if not said:
        return Band(Mood.NEUTRAL, "no difference could be shown.", head)
    rest = [metric_of(one) for one in by[Finding.NONE]]
    more = f"; no difference could be shown at {', '.join(rest)}" if rest else ""
    if doubts := doubts_of(each):
        text = f"measured {'; '.join(said)}{more}. No verdict on the storage: {' and '.join(doubts)}."
        return Band(Mood.WARNING, text, head)
    mood = Mood.BAD if by[Finding.SLOWER] else Mood.GOOD
    return Band(mood, f"{'; '.join(said)}{more}.", head)


def doubts_of(each: Against) -> list[str]:
    """Why a difference may be of something else than the storage."""
    return [
        *(["a result is fake"] if each.fakes else []),
        *(["a replay was not faithful"] if each.unfaithful else []),
        *([] if each.same_load else ["the loads differ"]),
    ]


def metric_of(one: Difference | RateDifference) -> str:
    """Its name, as conditions have it."""
    return one.metric if isinstance(one, Difference) else THROUGHPUT


def change_text(change: float) -> str:
    """+12.3 %."""
    # Adding zero takes the sign off a zero.
    return f"{round(change * 100, 1) + 0.0:+.1f} %"


def rows(each: Against) -> tuple[tuple[str, ...], ...]:
    """The numbers of one comparison."""
    values: list[tuple[Difference | RateDifference, str, str]] = [
        (one, units.seconds(one.a_ns / 1e9), units.seconds(one.b_ns / 1e9)) for one in each.found
    ]
    if rate := each.throughput:
        values.append((rate, f"{units.count(rate.a_per_s)} IO/s", f"{units.count(rate.b_per_s)} IO/s"))
    return tuple(
        (
            metric_of(one),
            a,
            b,
            change_text(one.change),
            f"{change_text(one.low)} … {change_text(one.high)}",
            str(one.finding),
        )
        for one, a, b in values
    )


def columns(each: Against, first: Side) -> tuple[str, ...]:
    """What stands above them."""
    return ("", first.letter, each.side.letter, "change", "95 % interval", "so")


def page_of(compared: Comparison) -> Page:
    """The page of a comparison."""
    sides, first = compared.sides, compared.sides[0]
    tables = tuple(
        Table(f"{each.side.letter} against {first.letter}, {each.pairing}", columns(each, first), rows(each))
        for each in compared.against
    )
    shown = [each for each in (changes({a.side.letter: a.found for a in compared.against}, sides),) if each]
    figures = (curves(sides), *shown)
    timed = (over_time(sides, 0.5, "p50"), over_time(sides, 0.99, "p99"), delivered(sides))
    tiles = tuple(
        Tile(
            f"{one.metric}, {each.side.letter} against {first.letter}",
            change_text(one.change),
            f"{change_text(one.low)} … {change_text(one.high)}",
        )
        for each in compared.against
        for one in each.found
        if one.metric in ("p50", "p99", "mean")
    )
    facts = tuple((side.letter, str(file.given)) for side in sides for file in side.study.requests.files)
    front = Front(
        title=" against ".join(side.name for side in reversed(sides)),
        short="Comparison",
        lead=("Latency from issue to completion. A change above 0 is slower. The first group is the measure.",),
        bands=tuple(sentences(compared)),
        tiles=tiles,
        tables=tables,
        facts=facts,
    )
    sections = (
        Section("latency", "Latency", "All requests of each side.", figures),
        Section("time", "Over time", "The same time in every diagram: zoom in one and all follow.", timed),
    )
    return Page(front, sections)
