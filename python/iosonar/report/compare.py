"""Compares groups of runs: changes with confidence intervals, in sentences, numbers and diagrams."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from iosonar import units
from iosonar.diagrams.comparison import Side, changes, curves, delivered, over_time
from iosonar.diagrams.notes import NOT_KNOWN, decisive, fidelity_of, grade_of, unfilled
from iosonar.diagrams.study import LATENCY
from iosonar.errors import UserError
from iosonar.figures.model import Severity
from iosonar.quantities.blocks import Blocks, blocks, rates
from iosonar.quantities.difference import (
    MIN_RUNS,
    SHARES,
    THROUGHPUT,
    Difference,
    Finding,
    Pairing,
    RateDifference,
    differences,
    rate_difference,
    runs_to_decide,
)
from iosonar.quantities.pairs import Pairs, pairs
from iosonar.report.page import Banner, Page, Section, Summary, Table, Tile
from iosonar.report.settings import Scope, Setting, differing
from iosonar.table import Kind, SourceFile, has_closed_stream, program_name, programs_of

OUTSIDE_STORAGE = (Scope.MACHINE, Scope.OPTION)
"""Settings outside the storage. If they differ, they may explain the difference in latency."""

TAIL = "p99"
"""The percentile for which the number of runs is named that would show a difference."""

PAIRINGS = {Pairing.PAIRED: "at the same times of the same load", Pairing.UNPAIRED: "not at the same times of a load"}

LOAD_OPTIONS = ("asap", "closed", "reads_only")
"""Options that change the load while its requests stay the same."""


@dataclass(frozen=True)
class SideComparison:
    """The comparison of one side with the first."""

    side: Side
    differences: list[Difference]
    throughput: RateDifference | None
    pairing: Pairing
    pairs: Pairs | None
    same_load: bool
    unfaithful: tuple[str, ...]
    """Runs of either side that were not faithful: their latencies say nothing about the storage."""
    unknown: tuple[str, ...]
    """Runs of either side that may have been unfaithful."""
    fakes: tuple[str, ...]
    """Runs of either side that did no I/O."""
    unfilled: tuple[str, ...] = ()
    """Runs of either side whose target was not filled, as their reads show."""
    settings: tuple[Setting, ...] = ()
    """Settings that differ between the runs of both sides."""


@dataclass(frozen=True)
class Comparison:
    """All sides, and the comparison of each with the first."""

    sides: tuple[Side, ...]
    against: tuple[SideComparison, ...]
    settings: tuple[Setting, ...] = ()
    """Settings that differ between the runs."""


def compare(sides: Sequence[Side]) -> Comparison:
    """Compares each side with the first."""
    refuse_loads(sides)
    for side in sides:
        if not side.study.pooled(LATENCY).count:
            raise UserError(f"{side.name}: no latencies to compare")
    low = min(side.study.span.first_scheduled_ns or 0 for side in sides)
    high = max(side.study.span.last_scheduled_ns or 0 for side in sides)
    first = sides[0]
    cut = {side.letter: _blocks(side, low, high) for side in sides}
    rates_of = {side.letter: _rates(side) for side in sides}
    settings = differing(sides)
    against = []
    for side in sides[1:]:
        same_load, pairing = _pairing(first, side)
        matched = pairs(*_on_one_engine(first, side)) if pairing is Pairing.PAIRED else None
        found = [_exact(one, first, side) for one in differences(cut[first.letter], cut[side.letter], pairing)]
        throughput = rate_difference(rates_of[first.letter], rates_of[side.letter], pairing)
        runs = [found for each in (first, side) for found in _unfaithful_runs(each)]
        unfaithful = tuple(run for run, grade in runs if grade[0] is Severity.BAD)
        unknown = tuple(run for run, grade in runs if grade == NOT_KNOWN)
        fakes = tuple(name for each in (first, side) for name, _ in _fake_runs(each))
        zeros = tuple(text for each in (first, side) for text in _unfilled(each))
        own_settings = tuple(setting for setting in settings if setting.differs(first.letter, side.letter))
        against.append(
            SideComparison(
                side, found, throughput, pairing, matched, same_load, unfaithful, unknown, fakes, zeros, own_settings
            )
        )
    return Comparison(tuple(sides), tuple(against), settings)


def refuse_loads(sides: Sequence[Side]) -> None:
    """Refuses loads: they have no results."""
    for side in sides:
        for file in side.study.requests.files:
            if file.kind is Kind.LOAD:
                raise UserError(
                    f"{file.path} is a load, not a run: compare takes results of `iosonar replay`; "
                    "for loads, use `iosonar report`"
                )


def _exact(one: Difference, a: Side, b: Side) -> Difference:
    """Replaces the percentiles, which the comparison interpolates in bins, by those that other diagrams show."""
    values = [side.study.pooled(LATENCY) for side in (a, b)]
    share = SHARES.get(one.metric)
    a_ns, b_ns = (each.mean if share is None else each.quantile(share) for each in values)
    if not (a_ns > 0 and b_ns > 0):
        return one
    factor = (b_ns / a_ns) / (1 + one.change)
    low, high = ((1 + bound) * factor - 1 for bound in (one.low, one.high))
    finding = one.finding
    if finding is not Finding.TOO_FEW_RUNS:
        finding = Finding.SLOWER if low > 0 else Finding.FASTER if high < 0 else Finding.NONE
    return Difference(one.metric, a_ns, b_ns, b_ns / a_ns - 1, low, high, finding, one.runs)


def _blocks(side: Side, low_ns: int, high_ns: int) -> list[Blocks]:
    table = side.study.table
    found = [blocks(table.filter(table.source == index), low_ns, high_ns) for index in range(side.runs)]
    return [run for run in found if run.counts.any()]


def _rates(side: Side) -> list[NDArray[np.float64]]:
    table = side.study.table
    found = [rates(table.filter(table.source == index)) for index in range(side.runs)]
    return [run for run in found if len(run)]


def _pairing(a: Side, b: Side) -> tuple[bool, Pairing]:
    """Whether all runs replayed the same load (same requests and extent) in the same way, and their pairing."""

    def loads(side: Side) -> set[tuple[str, ...]]:
        found = set()
        for file in side.study.requests.files:
            options = file.run.get("options") or {}
            span = dict(file.footer.get("span") or {})
            if has_closed_stream(file):
                # The storage determines how many requests closed streams ask for, and when.
                found.add(("program", *_program(file)))
                continue
            if options.get("closed"):
                # In a closed loop the storage determines the times.
                span = {name: span[name] for name in span if not name.endswith("_ns")}
            ways = [str(options.get(name) or "") for name in ("speedup", *LOAD_OPTIONS)]
            ways += _program(file)
            found.add((str(span), str(file.footer.get("counts")), *ways) if span else ())
        return found

    same = loads(a) == loads(b) and len(loads(a)) == 1 and loads(a) != {()}
    # If the storage determines the times, the same time is not the same request.
    files = [file for side in (a, b) for file in side.study.requests.files]
    closed = any(file.option("closed") or has_closed_stream(file) for file in files)
    return same, Pairing.PAIRED if same and not closed else Pairing.UNPAIRED


def _unlike_loads(a: Side, b: Side) -> str:
    """Why two sides did not replay the same load, as far as it is known."""
    widened = [{_widened(file) for file in side.study.requests.files} for side in (a, b)]
    if widened[0] == widened[1] and len(widened[0]) == 1:
        return "the runs did not all replay the same load in the same way, or their files do not tell"
    counts = [
        f"{' or '.join(units.count(number) for number in sorted(found))} in {side.letter}"
        for side, found in zip((a, b), widened, strict=True)
    ]
    return (
        f"requests were widened to the logical blocks of the target: {', '.join(counts)}. Replay on targets with the "
        "same logical block, such as a loop device on a file (`losetup --sector-size 512`)"
    )


def _widened(file: SourceFile) -> int:
    """The number of requests that were widened to the blocks of the target."""
    return int((file.run.get("statistics") or {}).get("widened") or 0)


def _program(file: SourceFile) -> list[str]:
    """What determines the requests of the run's program: its name and text, its parameters, and its duration."""
    if not program_name(file):
        return []
    values = (file.option(name) for name in ("set", "scale", "seed", "for"))
    text = str((file.run.get("program") or {}).get("text") or "")
    load = str(file.run.get("load") or "")
    return [program_name(file), text, load, *(str(value or "") for value in values)]


def _on_one_engine(a: Side, b: Side) -> tuple[Any, Any]:
    """Both tables on the engine of the first."""
    engine = a.study.requests.engine.backend
    table = b.study.requests.table
    columns = table.filter(table.latency_ns.notnull()).select("request", "iteration", "latency_ns")
    name = f"side_{b.letter}"
    # Not by Ibis's create_table, which fails with DuckDB 2.0.
    engine.con.register(name, columns.to_pyarrow())
    return a.study.requests.table, engine.table(name)


def describe_side(side: Side) -> str:
    """The name of a side, and its numbers of runs and requests."""
    programs = programs_of(side.study.requests.files)
    of = f" of {_and(programs)}" if programs else ""
    return f"{side.name}: {units.counted(side.runs, 'run')}{of}, {units.requests(side.study.span.requests)}"


def sentences(compared: Comparison) -> Iterator[Banner]:
    """The findings as sentences, after doubts about the runs."""
    for side in compared.sides:
        names: dict[str, list[str]] = {}
        for name, why in _fake_runs(side):
            names.setdefault(why, []).append(name)
        for why, of in names.items():
            yield Banner(
                Severity.BAD, f"{why}.", f"{_and(of)} {'are fake results' if len(of) > 1 else 'is a fake result'}:"
            )
    if zeros := [text for side in compared.sides for text in _unfilled(side)]:
        text = (
            f"{'; '.join(zeros)}. Devices answer reads of blocks that were never written without reading their medium"
        )
        yield Banner(Severity.BAD, f"{text}: fill the target before the replay.", "Target not filled:")
    yield from _fidelity(compared.sides)
    first = compared.sides[0]
    yield from _settings(compared)
    for each in compared.against:
        programs = {programs_of(side.study.requests.files) for side in (first, each.side)}
        if len(programs) > 1:
            yield Banner(
                Severity.WARNING,
                f"{_programs(first)} in {first.letter}, {_programs(each.side)} in {each.side.letter}. "
                "The difference may come from the requests, not from the storage.",
                f"{each.side.letter} against {first.letter}, different programs:",
            )
        elif not each.same_load:
            yield Banner(
                Severity.WARNING,
                f"{_unlike_loads(first, each.side)}. The difference may come from the load, not from the storage.",
                f"{each.side.letter} against {first.letter}, different loads:",
            )
        few = min(first.runs, each.side.runs)
        if few < MIN_RUNS:
            yield Banner(
                Severity.WARNING,
                f"{units.counted(few, 'run')} per side cannot separate a difference of the storage from chance; use at "
                f"least {MIN_RUNS} runs per side. The numbers below describe these runs only.",
                f"{each.side.letter} against {first.letter}: no claim.",
            )
        else:
            yield _claims(each, first)
        if each.pairs:
            change = change_text(each.pairs.median_ratio - 1)
            yield Banner(
                Severity.NEUTRAL,
                f"of the {each.pairs.requests:,} requests that completed on both sides, "
                f"{units.percent(each.pairs.slower_share)} took longer in {each.side.letter}; "
                f"the median change is {change}. That holds for these runs alone: runs of one side can differ as much.",
                "Request by request:",
            )


def _programs(side: Side) -> str:
    """The programs of a side: tpcb and spc1."""
    return _and(programs_of(side.study.requests.files)) or "no program"


def _and(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _fake_runs(side: Side) -> Iterator[tuple[str, str]]:
    """The runs of a side that did no I/O, with the reason from their footers."""
    for file in side.study.requests.files:
        if fake := file.run.get("fake"):
            yield f"{file.name} of {side.letter}", str(fake).removeprefix("FAKE RESULT: ")


def _unfilled(side: Side) -> tuple[str, ...]:
    """A phrase for each run of a side whose target was not filled."""
    return tuple(f"{text} ({side.letter})" for text in unfilled(side.study))


def _unfaithful_runs(side: Side) -> Iterator[tuple[str, tuple[Severity, str]]]:
    """The runs of a side that were not faithful, or of which that is unknown, with their grade."""
    for index, file in enumerate(side.study.requests.files):
        found = fidelity_of(side.study, index, file)
        if found is None or file.option("asap"):
            continue
        grade = grade_of(found)
        if found.unknown:
            yield f"{file.name} of {side.letter} ({found.unknown})", grade
        elif found.requests and grade[0] is not Severity.GOOD:
            yield f"{file.name} of {side.letter} ({decisive(found)})", grade


def _fidelity(sides: Sequence[Side]) -> Iterator[Banner]:
    """The runs that were not faithful, the worst grade first; one sentence for each grade."""
    by_grade: dict[tuple[Severity, str], list[str]] = {}
    for side in sides:
        for run, grade in _unfaithful_runs(side):
            by_grade.setdefault(grade, []).append(run)
    for (severity, words), runs in sorted(by_grade.items(), key=lambda each: each[0][0] is not Severity.BAD):
        text = f"{', '.join(runs)}. The difference may come from the replay, not from the storage."
        yield Banner(severity, text, f"Replay {words}:")


def _settings(compared: Comparison) -> Iterator[Banner]:
    """Settings that differ: within each side, then between the sides."""
    letters = [side.letter for side in compared.sides]
    for letter in letters:
        mixed = [setting.text(letter) for setting in compared.settings if setting.differs(letter)]
        if mixed:
            text = f"{'; '.join(mixed)}. So its runs are not repetitions of each other."
            yield Banner(Severity.WARNING, text, f"The runs of {letter} differ in:")
    between = [setting for setting in compared.settings if len({setting.values[letter] for letter in letters}) > 1]
    if between:
        text = "; ".join(setting.text(*letters) for setting in between)
        hedge = any(setting.scope in OUTSIDE_STORAGE for setting in between)
        more = " The difference in latency may come from these, not from the storage." if hedge else ""
        severity = Severity.WARNING if hedge else Severity.NEUTRAL
        yield Banner(severity, f"{text}.{more}", f"{' and '.join(letters)} differ in:")


def _claims(each: SideComparison, first: Side) -> Banner:
    head = f"{each.side.letter} against {first.letter}:"
    by: dict[Finding, list[Difference | RateDifference]] = {
        finding: [one for one in each.differences if one.finding is finding] for finding in Finding
    }
    if each.throughput:
        by[each.throughput.finding].append(each.throughput)
    claims = [
        f"{word} at {', '.join(f'{metric_of(one)} ({change_text(one.change)})' for one in by[finding])}"
        for finding, word in ((Finding.SLOWER, "slower"), (Finding.FASTER, "faster"))
        if by[finding]
    ]
    tail = next((one for one in by[Finding.NONE] if metric_of(one) == TAIL), None)
    hint = f" For {TAIL}, {deciding(tail)}." if tail and runs_to_decide(tail) else ""
    if not claims:
        return Banner(Severity.NEUTRAL, f"no significant difference.{hint}", head)
    rest = [metric_of(one) for one in by[Finding.NONE]]
    more = f"; no significant difference at {', '.join(rest)}" if rest else ""
    if doubts := doubts_of(each):
        text = f"measured {'; '.join(claims)}{more}. No verdict on the storage: {' and '.join(doubts)}."
        return Banner(Severity.WARNING, text, head)
    severity = Severity.BAD if by[Finding.SLOWER] else Severity.GOOD
    return Banner(severity, f"{'; '.join(claims)}{more}.{hint}", head)


def deciding(one: Difference | RateDifference, limit: float = 0.0) -> str:
    """What narrows an interval that has the limit in it."""
    runs = runs_to_decide(one, limit)
    if runs is None:
        return "the change is too close to the limit for more runs to decide it"
    return f"about {runs} runs per side would decide it, or longer runs"


def doubts_of(each: SideComparison) -> list[str]:
    """Reasons why a difference may not come from the storage."""
    return [
        *(["a result is fake"] if each.fakes else []),
        *(["reads returned only zeros"] if each.unfilled else []),
        *(["a replay was not faithful"] if each.unfaithful else []),
        *(["it is not known whether a replay was faithful"] if each.unknown else []),
        *([] if each.same_load else ["the loads differ"]),
        *([f"the runs differ in {', '.join(names)}"] if (names := _doubtful(each)) else []),
    ]


def _doubtful(each: SideComparison) -> list[str]:
    """Settings outside the storage that differ."""
    return [setting.name for setting in each.settings if setting.scope in OUTSIDE_STORAGE]


def metric_of(one: Difference | RateDifference) -> str:
    """The name of the metric, as in conditions."""
    return one.metric if isinstance(one, Difference) else THROUGHPUT


def change_text(change: float) -> str:
    """A relative change, for people: +12.3 %."""
    return units.change(change)


def rows(each: SideComparison) -> tuple[tuple[str, ...], ...]:
    """The table rows of one comparison."""
    return rows_of(each.differences, each.throughput, "IO/s")


def rows_of(found: Sequence[Difference], rate: RateDifference | None, unit: str) -> tuple[tuple[str, ...], ...]:
    """The table rows of differences; `unit` is that of the throughput."""
    values: list[tuple[Difference | RateDifference, str, str]] = [
        (one, units.span(one.a_ns / 1e9), units.span(one.b_ns / 1e9)) for one in found
    ]
    if rate:
        values.append((rate, f"{units.count(rate.a_per_s)} {unit}", f"{units.count(rate.b_per_s)} {unit}"))
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


def columns(each: SideComparison, first: Side) -> tuple[str, ...]:
    """The header of these rows."""
    return columns_of(first.letter, each.side.letter)


def columns_of(first: str, other: str) -> tuple[str, ...]:
    """The header of the rows of these sides."""
    return ("", first, other, "change", "95 % interval", "finding")


def page_of(compared: Comparison) -> Page:
    """The page of a comparison."""
    sides, first = compared.sides, compared.sides[0]
    tables = tuple(
        Table(f"{each.side.letter} against {first.letter}, {PAIRINGS[each.pairing]}", columns(each, first), rows(each))
        for each in compared.against
    )
    drawn = [each for each in (changes({a.side.letter: a.differences for a in compared.against}, sides),) if each]
    figures = (curves(sides), *drawn)
    percentiles = (over_time(sides, 0.5, "p50"), over_time(sides, 0.99, "p99"))
    timed = (*(figure for figure in percentiles if figure), delivered(sides))
    if compared.settings:
        letters = tuple(side.letter for side in sides)
        values = tuple(
            (setting.name, *(" or ".join(setting.values[letter]) for letter in letters))
            for setting in compared.settings
        )
        tables = (Table("Differences between the runs", ("", *letters), values), *tables)
    tiles = tuple(
        Tile(
            f"{one.metric}, {each.side.letter} against {first.letter}",
            change_text(one.change),
            f"{change_text(one.low)} … {change_text(one.high)}",
        )
        for each in compared.against
        for one in each.differences
        if one.metric in ("p50", "p99", "mean")
    )
    facts = tuple((side.letter, file.path) for side in sides for file in side.study.requests.files)
    summary = Summary(
        title=" against ".join(side.name for side in reversed(sides)),
        short="Comparison",
        lead=(f"Latency from issue to completion, compared with {first.letter}. A change above 0 is slower.",),
        banners=tuple(sentences(compared)),
        tiles=tiles,
        tables=tables,
        facts=facts,
        whole="all runs",
        about="Files",
    )
    sections = (
        Section("latency", "Latency", "All requests of all runs of each side.", figures),
        Section("time", "Over time", "These diagrams are linked: zoom one and the others follow.", timed),
    )
    return Page(summary, sections)
