"""Compares each side with the first: differences, pairs of requests, and doubts about where a difference comes from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

from iosonar.diagrams.comparison import Side
from iosonar.diagrams.parts import shares_of
from iosonar.errors import UserError
from iosonar.pacing import Changes, options_that_change
from iosonar.progress import step
from iosonar.quantities import outcomes
from iosonar.quantities.difference import SHARES, Pairing
from iosonar.quantities.pairs import Pairs, pairs, without_failures
from iosonar.report.compared import Compared, SideTimes, compare_rates, compare_times
from iosonar.report.settings import Scope, Setting
from iosonar.study.grades import Grade
from iosonar.study.original import original_beside, pairing_of, response_of
from iosonar.study.requests import LATENCY
from iosonar.study.runs import RunJudgement, runs_of
from iosonar.table import SourceFile, has_closed_stream
from iosonar.table.footer import Extent
from iosonar.table.original import of_load

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
            each.name
            for each in self.settings
            if set(letters) <= set(each.values) and each.scope in OUTSIDE_STORAGE and not each.is_repetition(*letters)
        ]
        return [*super().doubts, *([f"the runs differ in {', '.join(names)}"] if names else [])]

    def as_json(self) -> dict[str, Any]:
        """The numbers for programs; null in place of what is not known."""
        settings = [one.name for one in self.settings]
        return super().as_json() | {"settings": settings, "pairs": asdict(self.pairs) if self.pairs else None}


def steps_of(sides: Sequence[Side]) -> int:
    """The steps of a comparison: the times of each side, each other against the first, and the page."""
    return 2 * len(sides)


def compare_sides(sides: Sequence[Side], settings: Sequence[Setting]) -> tuple[SideComparison, ...]:
    """Compares each side with the first. `settings`: those that differ between the runs."""
    for side in sides:
        if not side.study.pooled(LATENCY).count:
            raise UserError(f"{side.name}: no latencies to compare")
    low = min(side.study.span.first_scheduled_ns or 0 for side in sides)
    high = max(side.study.span.last_scheduled_ns or 0 for side in sides)
    first = sides[0]
    times, steps = {}, steps_of(sides)
    for number, side in enumerate(sides, 1):
        step(f"times of {side.letter}", number, steps)
        times[side.letter] = _times(side)
    shares = shares_of(first.study, SHARES)
    against = []
    for number, side in enumerate(sides[1:], len(sides) + 1):
        step(f"{side.letter} against {first.letter}", number, steps)
        sides_times = times[first.letter], times[side.letter]
        if original := original_beside(side.study):
            same_load, pairing = original.is_by_row, pairing_of(original)
            matched = (
                pairs(original.study.requests.table, of_load(without_failures(side.study.requests.table)))
                if same_load
                else None
            )
            found, throughput = response_of(side.study), compare_rates(*sides_times, pairing)
        else:
            same_load, pairing = _pairing(first, side)
            matched = pairs(*_on_one_engine(first, side)) if pairing is Pairing.PAIRED else None
            # If the storage sets the times, one run may take many times as long as another.
            whole = (low, high) if pairing is Pairing.PAIRED else None
            found, throughput = compare_times(*sides_times, pairing, shares, whole)
        runs = [found for each in (first, side) for found in unfaithful_runs(each)]
        unfaithful = tuple(name for name, run in runs if run.grade is Grade.BAD)
        unknown = tuple(name for name, run in runs if run.unknown)
        fakes = tuple(name for each in (first, side) for name, _ in fake_runs(each))
        zeros = tuple(text for each in (first, side) for text in unfilled(each))
        errors = tuple(failures(each) for each in (first, side) if have_many_failed(each))
        letters = [each.letter for each in (first, side) if not each.is_original]
        own_settings = tuple(setting for setting in settings if setting.differs(*letters))
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
                errors,
                side,
                matched,
                own_settings,
            )
        )
    return tuple(against)


def _times(side: Side) -> SideTimes:
    table = side.study.table
    runs = [table.filter(table.source == index) for index in range(side.runs)]
    return SideTimes(runs, partial(side.study.pooled, LATENCY))


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
            if _storage_sets_times(file):
                span = replace(span, first_ns=None, last_ns=None)
            ways = [str(file.option(name) or "") for name in LOAD_OPTIONS]
            ways += _program(file)
            found.add((str(span), str(counts), *ways) if span != Extent() else ())
        return found

    same = loads(a) == loads(b) and len(loads(a)) == 1 and loads(a) != {()}
    # If the storage sets the times, the same time is not the same request.
    files = [file for side in (a, b) for file in side.study.requests.files]
    is_timed = not any(_storage_sets_times(file) or has_closed_stream(file) for file in files)
    return same, Pairing.PAIRED if same and is_timed else Pairing.UNPAIRED


def _storage_sets_times(file: SourceFile) -> bool:
    """Whether requests were issued in a closed loop or as fast as possible."""
    return bool(file.option("closed") or file.option("asap"))


def _program(file: SourceFile) -> list[str]:
    """What determines the requests of the run's program: its name and text, its parameters, and its duration."""
    if not file.run.program or not file.program:
        return []
    values = (file.option(name) for name in ("set", "scale", "seed", "for"))
    return [file.program, file.run.program.text, file.run.load, *(str(value or "") for value in values)]


def _on_one_engine(a: Side, b: Side) -> tuple[Any, Any]:
    """Both tables on the engine of the first."""
    engine = a.study.requests.engine.backend
    table = without_failures(b.study.requests.table)
    columns = table.filter(table.latency_ns.notnull()).select("request", "iteration", "latency_ns")
    name = f"side_{b.letter}"
    # Not by Ibis's create_table, which fails with DuckDB 2.0.
    engine.con.register(name, columns.to_pyarrow())
    return without_failures(a.study.requests.table), engine.table(name)


def fake_runs(side: Side) -> Iterator[tuple[str, str]]:
    """The runs of a side that did no I/O, with the reason from their footers."""
    for file in side.study.requests.files:
        if file.fake:
            yield f"{file.name} of {side.letter}", file.fake


def failures(side: Side) -> str:
    """How many requests of a side's runs failed, as a clause; empty if none did."""
    number = _failed(side)
    return f"{number:,} of {side.study.span.requests:,} requests failed in {side.letter}" if number else ""


def have_many_failed(side: Side) -> bool:
    """Whether so many requests failed that latencies say nothing about the storage."""
    return 0 < _failed(side) >= outcomes.FAILED_SHARE * side.study.span.requests


def _failed(side: Side) -> int:
    """0 for an original, of which that is not known."""
    return 0 if side.is_original else side.study.outcomes.of(*outcomes.FAILED)


def unfilled(side: Side) -> tuple[str, ...]:
    """A phrase for each run of a side whose target was not filled."""
    return tuple(f"{run.unfilled} ({side.letter})" for run in runs_of(side.study) if run.unfilled)


def unfaithful_runs(side: Side) -> Iterator[tuple[str, RunJudgement]]:
    """The runs of a side that were not faithful, or of which that is unknown, by name."""
    for run in runs_of(side.study):
        if run.unknown or run.grade in (Grade.WARNING, Grade.BAD):
            yield f"{run.file.name} of {side.letter} ({run.unknown or run.decisive})", run
