"""Compares groups of runs of calls in numbers: changes of response times and throughput, with confidence intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from iosonar import units
from iosonar.diagrams.calls import CATALOGUE
from iosonar.diagrams.comparison import side_name
from iosonar.errors import UsageError, UserError
from iosonar.figures.model import Severity
from iosonar.figures.size import PAGE
from iosonar.pacing import Changes, options_that_change
from iosonar.progress import step
from iosonar.quantities.difference import SHARES, Finding, Pairing
from iosonar.quantities.distribution import Distribution, distributions, pooled
from iosonar.quantities.percentiles import share_of
from iosonar.report.calls_options import other_traces
from iosonar.report.calls_page import ShownComparison, calls_page, window_sentence
from iosonar.report.compared import CLAIMS, Compared, Comparison, SideTimes, compare_times
from iosonar.report.formats import write_report
from iosonar.report.gate import IOPS, MAX, MEAN, Fidelity, Subject
from iosonar.report.gate_subjects import time_of
from iosonar.report.output_options import DiagramFiles, OutputOptions
from iosonar.report.page import Banner, Summary
from iosonar.study.base import Options
from iosonar.study.calls import PLACEHOLDERS, RUN_ROLES, CallStudy, lost_changes, zero_of
from iosonar.table import SourceFile, calls_of
from iosonar.table.calls import Calls
from iosonar.table.engine import EngineOptions

if TYPE_CHECKING:
    import ibis.expr.types as ir

SAME_LOAD = ("order", "timing", "factor", "extra_delay", "start", "end", "instances", "threads")
"""Options that change what is issued, and when, beside those of pacing."""

SAID = ("speedup", "asap")
"""Options of pacing that also runs of version 0.1 have, as `factor` and `timing`."""

LISTED = 6
"""The most names of files in a sentence."""


@dataclass(frozen=True)
class CallsSide:
    """A trace, or runs that are repetitions of each other."""

    letter: str
    files: tuple[SourceFile, ...]
    calls: int
    mismatches: int
    times: SideTimes

    @property
    def names(self) -> str:
        """Its files, for people."""
        names = [file.name for file in self.files]
        return ", ".join(names if len(names) <= LISTED else [*names[: LISTED - 1], f"{len(names) - LISTED + 1} more"])

    @property
    def unfaithful(self) -> tuple[str, ...]:
        """Its runs that say that they were not faithful."""
        verdicts = ((file, file.run.statistics.verdict) for file in self.files)
        return tuple(f"{file.name} of {self.letter}" for file, found in verdicts if found and found.faithful is False)

    @property
    def fakes(self) -> tuple[str, ...]:
        """Its runs that issued no calls."""
        return tuple(f"{file.name} of {self.letter}" for file in self.files if file.fake)

    @cached_property
    def loads(self) -> set[tuple[str, ...]]:
        """What its runs replayed, and how; an empty entry for a trace."""
        found = set()
        of_pacing = [each for each in options_that_change(Changes.LOAD, Changes.ISSUE_TIMES) if each.key not in SAID]
        for file in self.files:
            trace = file.run.trace
            own = (str(file.option(name)) for name in SAME_LOAD)
            pacing = (option.words(file.option(option.key)) for option in of_pacing)
            found.add((trace, *own, *pacing) if trace else ())
        return found

    @property
    def is_trace(self) -> bool:
        """Whether it is a trace."""
        return not self.files[0].kind.is_run

    @property
    def traces(self) -> set[str]:
        """The names of the traces that it is, or that its runs replayed."""
        paths = (file.run.trace if file.kind.is_run else file.path for file in self.files)
        return {Path(path).name for path in paths if path}

    @property
    def keeps_times(self) -> bool:
        """Whether all of it has the times of the trace."""
        return all((file.option("timing") or "exact") == "exact" for file in self.files if file.kind.is_run)


@dataclass(frozen=True)
class CallsComparison(Compared):
    """The comparison of one side with the first."""

    first: CallsSide
    side: CallsSide
    left_out: int = 0
    """Calls of the first side, a trace, that the runs of the other side did not make: they are not compared."""

    unit = "calls/s"
    other_load = "the runs are not replays of the same trace in the same order and timing"

    @property
    def is_original(self) -> bool:
        """Whether the first side is the trace that the runs of the other one replayed."""
        return self.first.is_trace and self.first.traces == self.side.traces

    @property
    def incomparable(self) -> str:
        """That strace took the times of one side."""
        return why_incomparable(self.first, self.side)

    @property
    def doubts(self) -> list[str]:
        """Why a difference may not come from the storage: an original and its replay do have the same load."""
        return [each for each in super().doubts if not self.is_original or each != self.other_load]

    def as_json(self) -> dict[str, Any]:
        """The numbers for programs; null in place of what is not known."""
        return super().as_json() | {"left_out": self.left_out, "incomparable": self.incomparable}


@dataclass(frozen=True)
class ComparisonOfCalls(Comparison):
    """All sides, and the comparison of each with the first."""

    sides: tuple[CallsSide, ...]
    against: tuple[CallsComparison, ...]
    study: CallStudy
    """The first file of each side, with the others as its repetitions."""

    def lines(self) -> Iterator[str]:
        """What was found, as sentences."""
        if about := window_sentence(self.study):
            yield about
        yield from (describe_side(side) for side in self.sides)
        yield from (f"{banner.head} {banner.text}" for banner in self.sentences)

    @property
    def sentences(self) -> list[Banner]:
        """Doubts, and findings."""
        return [banner for each in self.against for banner in _sentences(each)]

    def as_json(self) -> dict[str, Any]:
        """What was found, for programs."""
        sides = [
            {"side": side.letter, "files": [file.path for file in side.files], "calls": side.calls}
            | {"mismatches": side.mismatches}
            for side in self.sides
        ]
        window = {"window": self.study.window.as_json()} if self.study.window else {}
        return {"sides": sides, **window, "comparisons": [each.as_json() for each in self.against]}

    def subject(self, letter: str) -> Subject:
        """A side as what conditions are checked for."""
        side = next(side for side in self.sides if side.letter == letter)
        return _subject(side)

    @property
    def summary(self) -> Summary:
        """What its page begins with."""
        return calls_page(self.study, (), compared=self._shown).summary

    def write(self, options: OutputOptions) -> Iterator[DiagramFiles]:
        """Writes the page."""
        return write_report(self.study, CATALOGUE, options, partial(calls_page, compared=self._shown))

    @property
    def _shown(self) -> ShownComparison:
        return ShownComparison(
            tuple(f"{side.letter} ({side.names})" for side in self.sides),
            tuple(describe_side(side) for side in self.sides),
            tuple(self.sentences),
            tuple(each.table for each in self.against),
        )


def _subject(side: CallsSide) -> Subject:
    """A side as what conditions are checked for."""
    file = side.files[0]

    def value(metric: str) -> float:
        if metric in (MEAN, MAX) or share_of(metric):
            return math.nan if side.is_trace and file.is_generated else time_of(side.times.latency, metric)
        numbers = {"requests": float(side.calls), "mismatches": float(side.mismatches)}
        if metric == IOPS:
            return float(np.mean([run.mean() for run in side.times.rates]))
        return numbers.get(metric, math.nan)

    fidelity = Fidelity.FAKE if side.fakes else Fidelity.UNFAITHFUL if side.unfaithful else Fidelity.FAITHFUL
    doubts = ("the result is fake" if side.fakes else "", "the replay was not faithful" if side.unfaithful else "")
    return Subject(side.letter, value, next((doubt for doubt in doubts if doubt), ""), fidelity)


def why_incomparable(first: CallsSide, side: CallsSide) -> str:
    """Why the times of two sides cannot be compared: of one, strace slowed the calls down, or they were generated."""
    traces = [each.files[0] for each in (first, side) if each.is_trace]
    if generated := next((file for file in traces if file.is_generated), None):
        return f"{generated.name} {PLACEHOLDERS}"
    slowed = [file for file in traces if file.is_by_strace]
    return f"strace took the times of {slowed[0].name}, and slowed its calls down" if len(slowed) == 1 else ""


def _all(groups: Sequence[Sequence[Calls]]) -> list[list[Calls]]:
    return [[*group] for group in groups]


def compare_calls(
    groups: Sequence[Sequence[SourceFile]],
    spill: Path,
    engine: EngineOptions,
    stack: ExitStack,
    percentiles: tuple[float, ...] = (),
    within: Callable[[Sequence[Sequence[Calls]]], list[list[Calls]]] = _all,
) -> ComparisonOfCalls:
    """Compares each group of files with the first; the page can be written until the stack unwinds.

    `within` leaves out what is outside of a window of time.
    """
    runs = [group for group in groups if group[0].kind.is_run]
    if len(runs) > len(RUN_ROLES):
        raise UsageError(f"at most {len(RUN_ROLES)} sides with runs of calls can be compared, not {len(runs)}; use vs")
    # A trace is the original.
    groups = sorted(groups, key=lambda group: group[0].kind.is_run)
    sides: list[CallsSide] = []
    originals: list[Calls] = []
    drawn: list[list[Calls]] = []
    for letter, group in zip("ABCDEF", groups, strict=False):
        if len(group) > 1 and not all(file.kind.is_run for file in group):
            raise UserError("a trace is a side of its own: separate it from the runs with vs")
        opened = [
            stack.enter_context(calls_of(file, spill.with_name(f"{spill.name}-{letter}{number}"), engine))
            for number, file in enumerate(group)
        ]
        drawn.append(opened)
        originals = originals or ([] if group[0].kind.is_run else opened)
    drawn = within(drawn)
    for number, (letter, group, opened) in enumerate(zip("ABCDEF", groups, drawn, strict=False), 1):
        step(f"calls of {letter}", number, len(groups))
        # Of a trace in a window of time, the calls that the first runs made in it.
        made = [each.made_by(drawn[1]) if each.is_part and not each.is_run else each for each in opened]
        sides.append(_side(letter, group, made))
    shares = percentiles or SHARES
    against = [
        _against(_beside(sides[0], runs, side, originals), side, sides[0].calls, shares)
        for side, runs in zip(sides[1:], drawn[1:], strict=True)
    ]
    firsts, others = [opened[0] for opened in drawn], [opened[1:] for opened in drawn]
    study = CallStudy(firsts, Options(size=PAGE, percentiles=percentiles), repetitions=others)
    return ComparisonOfCalls(tuple(sides), tuple(against), study)


def _side(letter: str, group: Sequence[SourceFile], opened: Sequence[Calls], zero_ns: int | None = None) -> CallsSide:
    mismatches = sum(int(calls.table.is_mismatch.sum().to_pyarrow().as_py() or 0) for calls in opened)
    # All calls of a trace, those that a run issued.
    counts = [int(calls.table.begin_ns.count().to_pyarrow().as_py()) for calls in opened]
    # A run's time counts from its start, as in its own statistics; a trace's beside runs from their window's.
    # With a window, they count from its start, or from the first call of a trace.
    starts = [calls.window.from_ns if calls.window else None for calls in opened]
    of_traces = [zero_ns if start is None else None for start in starts]
    origins = [start or 0 if calls.is_run else of for calls, start, of in zip(opened, starts, of_traces, strict=True)]
    results = [_as_results(calls.table) for calls in opened]
    times = SideTimes(results, lambda: pooled([_response(table) for table in results]), origins)
    if not times.rates:
        raise UserError(f"{group[0].path}: no response times to compare")
    return CallsSide(letter, tuple(group), sum(counts), mismatches, times)


def _beside(first: CallsSide, runs: Sequence[Calls], side: CallsSide, originals: Sequence[Calls]) -> CallsSide:
    """The first side as it is compared with another one: a trace has only the calls that those runs made."""
    if not originals:
        return first
    return _side(first.letter, first.files, [each.made_by(runs) for each in originals], zero_of(side.files))


def _against(first: CallsSide, side: CallsSide, calls: int, shares: Sequence[float]) -> CallsComparison:
    """Compares a side with the first, which has so many calls in all."""
    same_load = first.loads == side.loads and len(side.loads) == 1 and () not in side.loads
    # Without times to keep, the same time is not the same call.
    paired = same_load and first.keeps_times and side.keeps_times
    pairing = Pairing.PAIRED if paired else Pairing.UNPAIRED
    spans = [*first.times.spans, *side.times.spans] if paired else []
    whole = (min(low for low, _ in spans), max(high for _, high in spans)) if paired else None
    found, throughput = compare_times(first.times, side.times, pairing, shares, whole)
    compared = CallsComparison(
        first.letter,
        side.letter,
        found,
        throughput,
        pairing,
        same_load,
        first.unfaithful + side.unfaithful,
        # A run of calls always says whether it was faithful.
        (),
        first.fakes + side.fakes,
        (),
        # Calls fail in traces as well.
        (),
        first,
        side,
        calls - first.calls,
    )
    if compared.incomparable:
        compared = replace(compared, differences=[one.without_finding() for one in found])
    if throughput and (compared.incomparable or not (same_load or compared.is_original)):
        compared = replace(compared, throughput=throughput.without_finding())
    return compared


def _as_results(table: ir.Table) -> ir.Table:
    """Calls that returned, with the columns of results of requests."""
    made = table.filter(table.begin_ns.notnull() & table.duration_ns.notnull())
    return made.select(scheduled_ns=made.scheduled_ns, completed_ns=made.end_ns, latency_ns=made.duration_ns)


def _response(results: ir.Table) -> Distribution:
    series = results.mutate(series=0)
    return pooled(list(distributions(series, series.latency_ns).values()))


def describe_side(side: CallsSide) -> str:
    """The name of a side, and its numbers of files and calls."""
    what = "trace" if side.is_trace else "run"
    counted = f"{units.counted(len(side.files), what)}, {units.counted(side.calls, 'call')}"
    differ = f", {units.counted(side.mismatches, 'mismatch', 'mismatches')}" if side.mismatches else ""
    return f"{side_name(side.letter, side.files)}: {counted}{differ}"


def _sentences(each: CallsComparison) -> Iterator[Banner]:
    """What was found, after doubts, and which calls it is about."""
    found = [text.rstrip(".") for text in other_traces((*each.first.files, *each.side.files))]
    if each.left_out:
        without = units.counted(each.left_out, "call")
        found.append(f"without {without} of {each.first.letter} that the runs left out")
    lost = [(file.name, lost) for file in each.side.files if (lost := lost_changes(file))]
    found += [f"{name} did not replay {changes}" for name, changes in lost]
    if each.fakes:
        found.append(f"fake results: {', '.join(each.fakes)}")
    if each.unfaithful:
        found.append(f"not faithful: {', '.join(each.unfaithful)}")
    if each.incomparable:
        found.append(f"{each.incomparable}: only their results can be compared, not their times")
    if not each.same_load and not each.is_original:
        found.append(f"{each.other_load}: their throughput cannot be compared")
    yield from (Banner(Severity.WARNING, f"{text}.", f"{each.pair}:") for text in found)
    if any(one.finding in (*CLAIMS, Finding.NONE) for one in each.all):
        yield each.claims()
