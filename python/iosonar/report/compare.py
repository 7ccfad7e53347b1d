"""Compares groups of runs: changes with confidence intervals, in sentences, numbers and diagrams."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from iosonar import units
from iosonar.diagrams.comparison import Side, changes, curves, delivered, over_time
from iosonar.diagrams.parts import shares_of
from iosonar.errors import UserError
from iosonar.figures.model import Figure, Severity
from iosonar.pacing import Changes, options_that_change
from iosonar.quantities.blocks import Blocks, blocks, rates
from iosonar.quantities.difference import (
    MEAN,
    MIN_RUNS,
    SHARES,
    Pairing,
    differences,
    rate_difference,
)
from iosonar.quantities.pairs import Pairs, pairs
from iosonar.quantities.percentiles import name_of
from iosonar.report.claims import inputs_of, refuse_others, write_claimed
from iosonar.report.compared import Compared, Comparison, change_text, title_of
from iosonar.report.gates import Subject
from iosonar.report.measured import subject_of_requests
from iosonar.report.output_options import OutputOptions, Written
from iosonar.report.page import Banner, Page, Section, Summary, Table, Tile, write_page
from iosonar.report.settings import Scope, Setting, differing
from iosonar.study.grades import Grade
from iosonar.study.requests import LATENCY
from iosonar.study.runs import RunJudgement, runs_of
from iosonar.study.window import due_words, window_words
from iosonar.table import SourceFile, Window, has_closed_stream, programs_of
from iosonar.table.footer import Extent
from iosonar.text import listed

OUTSIDE_STORAGE = (Scope.MACHINE, Scope.OPTION)
"""Settings outside the storage. If they differ, they may explain the difference in latency."""

LOAD_OPTIONS = (*(option.key for option in options_that_change(Changes.LOAD)), "closed", "reads_only")
"""Options that change the load while its requests stay the same."""


@dataclass(frozen=True)
class SideComparison(Compared):
    """The comparison of one side with the first."""

    side: Side
    pairs: Pairs | None
    settings: tuple[Setting, ...] = ()
    """Settings that differ between the runs of both sides."""

    @property
    def doubts(self) -> list[str]:
        """Why a difference may not come from the storage, as clauses."""
        letters = (self.first_letter, self.letter)
        names = [
            each.name for each in self.settings if each.scope in OUTSIDE_STORAGE and not each.is_repetition(*letters)
        ]
        return [*super().doubts, *([f"the runs differ in {', '.join(names)}"] if names else [])]

    def as_json(self) -> dict[str, Any]:
        """The numbers for programs; null in place of what is not known."""
        settings = [one.name for one in self.settings]
        return super().as_json() | {"settings": settings, "pairs": asdict(self.pairs) if self.pairs else None}


@dataclass(frozen=True)
class RunComparison(Comparison):
    """All sides, and the comparison of each with the first."""

    sides: tuple[Side, ...]
    against: tuple[SideComparison, ...]
    settings: tuple[Setting, ...] = ()
    """Settings that differ between the runs."""

    @property
    def figures(self) -> dict[str, Figure]:
        """The distributions of latency, and how they differ."""
        found = (curves(self.sides), changes({each.letter: each.differences for each in self.against}, self.sides))
        return {figure.name: figure for figure in found if figure}

    @property
    def window(self) -> Window | None:
        """The window of time that is compared; None for whole runs."""
        return self.sides[0].study.window

    def lines(self) -> Iterator[str]:
        """What was found, as sentences."""
        for side in self.sides:
            yield describe_side(side)
        for banner in sentences(self):
            yield ""
            yield f"{banner.head} {banner.text}"

    def as_json(self) -> dict[str, Any]:
        """What was found, for programs."""
        sides = [{"side": side.letter, "files": [file.path for file in side.study.files]} for side in self.sides]
        settings = [
            {"of": one.scope, "name": one.name, "values": {letter: list(found) for letter, found in one.values.items()}}
            for one in self.settings
        ]
        window = {"window": self.window.as_json()} if self.window else {}
        return {
            "sides": sides,
            **window,
            "settings": settings,
            "comparisons": [each.as_json() for each in self.against],
        }

    def subject(self, letter: str) -> Subject:
        """A side as what conditions are checked for."""
        study = next(side.study for side in self.sides if side.letter == letter)
        return subject_of_requests(study, letter)

    @property
    def summary(self) -> Summary:
        """What its page begins with."""
        return summary_of(self)

    def write(self, options: OutputOptions) -> Iterator[Written]:
        """Writes the page."""
        stem, files = self.sides[0].study.stem, [file for side in self.sides for file in side.study.files]
        options = replace(options, inputs=inputs_of(files, options.directory))
        refuse_others(stem, options, "compare")
        path = options.directory / f"{stem}.compare.html"
        write_claimed(path, options, lambda unfinished: write_page(page_of(self), unfinished, options.theme))
        yield Written("page", (path,))


def compare(sides: Sequence[Side]) -> RunComparison:
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
    settings, shares = differing(sides), shares_of(first.study, SHARES)
    against = []
    for side in sides[1:]:
        same_load, pairing = _pairing(first, side)
        matched = pairs(*_on_one_engine(first, side)) if pairing is Pairing.PAIRED else None
        found = [
            one.with_values(first.study.pooled(LATENCY), side.study.pooled(LATENCY))
            for one in differences(cut[first.letter], cut[side.letter], pairing, shares=shares)
        ]
        throughput = rate_difference(rates_of[first.letter], rates_of[side.letter], pairing)
        runs = [found for each in (first, side) for found in _unfaithful_runs(each)]
        unfaithful = tuple(name for name, run in runs if run.grade is Grade.BAD)
        unknown = tuple(name for name, run in runs if run.unknown)
        fakes = tuple(name for each in (first, side) for name, _ in _fake_runs(each))
        zeros = tuple(text for each in (first, side) for text in _unfilled(each))
        own_settings = tuple(setting for setting in settings if setting.differs(first.letter, side.letter))
        against.append(
            SideComparison(
                first.letter,
                side.letter,
                found,
                throughput,
                pairing,
                same_load,
                unfaithful,
                unknown,
                fakes,
                zeros,
                side,
                matched,
                own_settings,
            )
        )
    return RunComparison(tuple(sides), tuple(against), settings)


def refuse_loads(sides: Sequence[Side]) -> None:
    """Refuses loads: they have no results."""
    for side in sides:
        for file in side.study.requests.files:
            if not file.kind.is_run:
                raise UserError(
                    f"{file.path} is a load, not a run: compare takes results of `iosonar replay`; "
                    "for loads, use `iosonar report`"
                )


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
            span, counts = file.footer.span, file.footer.counts
            if has_closed_stream(file):
                # The storage determines how many requests closed streams ask for, and when.
                found.add(("program", *_program(file)))
                continue
            if file.option("closed"):
                # In a closed loop the storage determines the times.
                span = replace(span, first_ns=None, last_ns=None)
            ways = [str(file.option(name) or "") for name in LOAD_OPTIONS]
            ways += _program(file)
            found.add((str(span), str(counts), *ways) if span != Extent() else ())
        return found

    same = loads(a) == loads(b) and len(loads(a)) == 1 and loads(a) != {()}
    # If the storage determines the times, the same time is not the same request.
    files = [file for side in (a, b) for file in side.study.requests.files]
    closed = any(file.option("closed") or has_closed_stream(file) for file in files)
    return same, Pairing.PAIRED if same and not closed else Pairing.UNPAIRED


def _unlike_loads(a: Side, b: Side) -> str:
    """Why two sides did not replay the same load, as far as it is known."""
    widened = [{file.run.statistics.widened for file in side.study.requests.files} for side in (a, b)]
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


def _program(file: SourceFile) -> list[str]:
    """What determines the requests of the run's program: its name and text, its parameters, and its duration."""
    if not file.run.program or not file.program:
        return []
    values = (file.option(name) for name in ("set", "scale", "seed", "for"))
    return [file.program, file.run.program.text, file.run.load, *(str(value or "") for value in values)]


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
    of = f" of {listed(programs)}" if programs else ""
    return f"{side.name}: {units.counted(side.runs, 'run')}{of}, {units.requests(side.study.span.requests)}"


def sentences(compared: RunComparison) -> Iterator[Banner]:
    """The findings as sentences, after the window and doubts about the runs."""
    if window := compared.window:
        due = due_words(compared.sides[0].study.files)
        text = "" if window.is_all else f"only requests {due} {window_words(window)} are compared. "
        yield Banner(Severity.NEUTRAL, f"{text}{window.about}".strip(), "Window:" if text else "All requests:")
    for side in compared.sides:
        names: dict[str, list[str]] = {}
        for name, why in _fake_runs(side):
            names.setdefault(why, []).append(name)
        for why, of in names.items():
            yield Banner(
                Severity.BAD, f"{why}.", f"{listed(of)} {'are fake results' if len(of) > 1 else 'is a fake result'}:"
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
        which = "per side" if first.runs == each.side.runs else "of one side"
        if few < MIN_RUNS:
            yield Banner(
                Severity.WARNING,
                f"{units.counted(few, 'run')} {which} cannot separate a difference of the storage from chance; use at "
                f"least {MIN_RUNS} runs per side. The numbers below describe these runs only.",
                f"{each.side.letter} against {first.letter}: no claim.",
            )
        else:
            yield each.claims()
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
    return listed(programs_of(side.study.requests.files)) or "no program"


def _fake_runs(side: Side) -> Iterator[tuple[str, str]]:
    """The runs of a side that did no I/O, with the reason from their footers."""
    for file in side.study.requests.files:
        if file.fake:
            yield f"{file.name} of {side.letter}", file.fake


def _unfilled(side: Side) -> tuple[str, ...]:
    """A phrase for each run of a side whose target was not filled."""
    return tuple(f"{run.unfilled} ({side.letter})" for run in runs_of(side.study) if run.unfilled)


def _unfaithful_runs(side: Side) -> Iterator[tuple[str, RunJudgement]]:
    """The runs of a side that were not faithful, or of which that is unknown, by name."""
    for run in runs_of(side.study):
        if run.unknown or run.grade in (Grade.WARNING, Grade.BAD):
            yield f"{run.file.name} of {side.letter} ({run.unknown or run.decisive})", run


def _fidelity(sides: Sequence[Side]) -> Iterator[Banner]:
    """The runs that were not faithful, the worst grade first; one sentence for each grade."""
    by_words: dict[tuple[Severity, str], list[str]] = {}
    for side in sides:
        for name, run in _unfaithful_runs(side):
            by_words.setdefault((Severity(run.grade or Grade.WARNING), run.words), []).append(name)
    for (severity, words), runs in sorted(by_words.items(), key=lambda each: each[0][0] is not Severity.BAD):
        text = f"{', '.join(runs)}. The difference may come from the replay, not from the storage."
        yield Banner(severity, text, f"Replay {words}:")


def _settings(compared: RunComparison) -> Iterator[Banner]:
    """Settings that differ: within each side, then between the sides."""
    letters = [side.letter for side in compared.sides]
    for letter in letters:
        mixed = [setting for setting in compared.settings if setting.differs(letter)]
        if mixed:
            text = f"{'; '.join(setting.text(letter) for setting in mixed)}."
            repeated = all(setting.is_repetition(letter) for setting in mixed)
            more = "" if repeated else " So its runs are not repetitions of each other."
            severity = Severity.NEUTRAL if repeated else Severity.WARNING
            yield Banner(severity, f"{text}{more}", f"The runs of {letter} differ in:")
    between = [
        setting
        for setting in compared.settings
        if len({setting.values[letter] for letter in letters}) > 1 and not setting.is_repetition(*letters)
    ]
    if between:
        text = "; ".join(setting.text(*letters) for setting in between)
        hedge = any(setting.scope in OUTSIDE_STORAGE for setting in between)
        more = " The difference in latency may come from these, not from the storage." if hedge else ""
        severity = Severity.WARNING if hedge else Severity.NEUTRAL
        yield Banner(severity, f"{text}.{more}", f"{' and '.join(letters)} differ in:")


def page_of(compared: RunComparison) -> Page:
    """The page of a comparison."""
    sides, first = compared.sides, compared.sides[0]
    percentiles = [over_time(sides, share) for share in shares_of(first.study, (0.5, 0.99))]
    timed = (*(figure for figure in percentiles if figure), delivered(sides))
    sections = (
        Section("latency", "Latency", "All requests of all runs of each side.", tuple(compared.figures.values())),
        Section("time", "Over time", "These diagrams are linked: zoom one and the others follow.", timed),
    )
    return Page(summary_of(compared), sections)


def summary_of(compared: RunComparison) -> Summary:
    """What the page begins with."""
    sides, first = compared.sides, compared.sides[0]
    tables = tuple(each.table for each in compared.against)
    if compared.settings:
        letters = tuple(side.letter for side in sides)
        values = tuple((setting.name, *(setting.value(letter) for letter in letters)) for setting in compared.settings)
        tables = (Table("Differences between the runs", ("", *letters), values), *tables)
    shown = (*map(name_of, shares_of(first.study, (0.5, 0.99))), MEAN)
    tiles = tuple(
        Tile(
            f"{one.metric}, {each.side.letter} against {first.letter}",
            change_text(one.change),
            f"{change_text(one.low)} … {change_text(one.high)}",
        )
        for each in compared.against
        for one in each.differences
        if one.metric in shown
    )
    facts = tuple((side.letter, file.path) for side in sides for file in side.study.requests.files)
    return Summary(
        title=title_of([side.name for side in sides]),
        short="Comparison",
        lead=(f"Latency from issue to completion, compared with {first.letter}. A change above 0 is slower.",),
        banners=tuple(sentences(compared)),
        tiles=tiles,
        tables=tables,
        facts=facts,
        whole="all runs",
        about="Files",
    )
