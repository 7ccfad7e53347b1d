"""The comparison of one side with the first, whatever the rows are: changes with confidence intervals, and doubts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from iosonar import units
from iosonar.figures.model import Figure, Severity
from iosonar.quantities.blocks import Blocks, blocks, rates
from iosonar.quantities.difference import (
    THROUGHPUT,
    Difference,
    Finding,
    Pairing,
    RateDifference,
    differences,
    rate_difference,
    runs_to_decide,
)
from iosonar.quantities.distribution import Distribution
from iosonar.report.gate import Subject
from iosonar.report.output_options import DiagramFiles, OutputOptions
from iosonar.report.page import Banner, Summary, Table
from iosonar.study.base import Cached
from iosonar.text import listed

if TYPE_CHECKING:
    import ibis.expr.types as ir

TAIL = "p99"
"""The percentile for which the number of runs is named that would show a difference."""

PAIRINGS = {Pairing.PAIRED: "at the same times of the same load", Pairing.UNPAIRED: "not at the same times of a load"}

CLAIMS = (Finding.SLOWER, Finding.FASTER)
"""Findings that say something about the storage, if nothing casts doubt on them."""


class SideTimes(Cached):
    """The times of a side's runs, from which the comparison resamples."""

    def __init__(
        self,
        runs: Sequence[ir.Table],
        latency: Callable[[], Distribution],
        origins_ns: Sequence[int | None] | None = None,
    ) -> None:
        """`runs` are the results of each run, and `latency` is of all; the rates count from the origins of the runs."""
        super().__init__()
        self.runs = runs
        self._latency = latency
        self._origins_ns = origins_ns or [None] * len(runs)

    @property
    def latency(self) -> Distribution:
        """The latencies of all runs."""
        return self.cached("latency", self._latency)

    @property
    def rates(self) -> list[NDArray[np.float64]]:
        """The rates of each run in which something completed."""

        def compute() -> list[NDArray[np.float64]]:
            each = (rates(run, origin) for run, origin in zip(self.runs, self._origins_ns, strict=True))
            return [found for found in each if len(found)]

        return self.cached("rates", compute)

    @property
    def spans(self) -> list[tuple[int, int]]:
        """The first and the last scheduled time of each run."""

        def span(run: ir.Table) -> tuple[int, int]:
            ends = run.aggregate(low=run.scheduled_ns.min(), high=run.scheduled_ns.max()).to_pyarrow().to_pylist()[0]
            return int(ends["low"] or 0), int(ends["high"] or 0)

        return self.cached("spans", lambda: [span(run) for run in self.runs])

    def blocks(self, span: tuple[int, int] | None) -> list[Blocks]:
        """The blocks of each run, of this span or of its own."""

        def compute() -> list[Blocks]:
            spans = [span] * len(self.runs) if span else self.spans
            each = (blocks(run, low, high) for run, (low, high) in zip(self.runs, spans, strict=True))
            return [found for found in each if found.counts.any()]

        return self.cached(("blocks", span), compute)


def compare_times(
    first: SideTimes, side: SideTimes, pairing: Pairing, shares: Sequence[float], span: tuple[int, int] | None
) -> tuple[list[Difference], RateDifference | None]:
    """The changes of latency, in the blocks of this span or of each run's own, and of the throughput."""
    found = differences(first.blocks(span), side.blocks(span), pairing, shares=shares)
    latency = [one.with_values(first.latency, side.latency) for one in found]
    return latency, compare_rates(first, side, pairing)


def compare_rates(first: SideTimes, side: SideTimes, pairing: Pairing) -> RateDifference | None:
    """The change of the throughput."""
    return rate_difference(first.rates, side.rates, pairing)


@dataclass(frozen=True)
class Compared:
    """One side against the first, by their letters. Runs of either side are named as `NAME of LETTER`."""

    first_letter: str
    letter: str
    differences: list[Difference]
    """Changes of the percentiles and of the mean of latency, or of response times."""
    throughput: RateDifference | None
    pairing: Pairing
    same_load: bool
    """Whether all runs replayed the same load in the same way."""
    unfaithful: tuple[str, ...]
    """Runs that were not faithful: their times say nothing about the storage."""
    unknown: tuple[str, ...]
    """Runs that may have been unfaithful."""
    fakes: tuple[str, ...]
    """Runs that did no I/O."""
    unfilled: tuple[str, ...]
    """Runs whose target was not filled, as their reads show."""
    failed: tuple[str, ...]
    """Sides of which so many requests failed that latencies say nothing, as phrases."""

    unit: ClassVar[str] = "requests/s"
    """Of the throughput."""
    other_load: ClassVar[str] = "the loads differ"
    """The doubt if not all runs replayed the same load in the same way."""

    @property
    def incomparable(self) -> str:
        """Why the times of the two sides cannot be compared; empty if they can."""
        return ""

    @property
    def pair(self) -> str:
        """Both sides: B against A."""
        return f"{self.letter} against {self.first_letter}"

    @property
    def all(self) -> list[Difference | RateDifference]:
        """All differences; that of the throughput is the last."""
        return [*self.differences, *([self.throughput] if self.throughput else [])]

    @property
    def doubts(self) -> list[str]:
        """Why a difference may not come from the storage, as clauses."""
        return [
            *(["a result is fake"] if self.fakes else []),
            *(["requests failed"] if self.failed else []),
            *(["reads returned only zeros"] if self.unfilled else []),
            *(["a replay was not faithful"] if self.unfaithful else []),
            *(["it is not known whether a replay was faithful"] if self.unknown else []),
            *([] if self.same_load else [self.other_load]),
        ]

    @property
    def columns(self) -> tuple[str, ...]:
        """The header of `rows`."""
        return ("", self.first_letter, self.letter, "change", "95 % interval", "finding")

    @property
    def rows(self) -> tuple[tuple[str, ...], ...]:
        """A row of texts for each difference."""
        values: list[tuple[Difference | RateDifference, str, str]] = [
            (one, units.span(one.a_ns / 1e9), units.span(one.b_ns / 1e9)) for one in self.differences
        ]
        if rate := self.throughput:
            a_rate, b_rate = (f"{units.count(value)} {self.unit}" for value in (rate.a_per_s, rate.b_per_s))
            values.append((rate, a_rate, b_rate))
        doubtful = bool(self.doubts)
        return tuple(
            (
                metric_of(one),
                a,
                b,
                change_text(one.change),
                "–" if one.finding is Finding.INCOMPARABLE else f"{change_text(one.low)} … {change_text(one.high)}",
                f"{one.finding} (no verdict)" if doubtful and one.finding in CLAIMS else str(one.finding),
            )
            for one, a, b in values
        )

    @property
    def table(self) -> Table:
        """The rows for a page."""
        return Table(f"{self.pair}, {PAIRINGS[self.pairing]}", self.columns, self.rows)

    def claims(self) -> Banner:
        """The findings in a sentence; with doubts, only what was measured."""
        head = f"{self.pair}:"
        by = {finding: [one for one in self.all if one.finding is finding] for finding in Finding}
        claims = [
            f"{finding} at {', '.join(f'{metric_of(one)} ({change_text(one.change)})' for one in by[finding])}"
            for finding in CLAIMS
            if by[finding]
        ]
        tail = next((one for one in by[Finding.NONE] if metric_of(one) == TAIL), None)
        runs = runs_to_decide(tail) if tail else None
        takes = f" It takes about {runs} runs per side, or longer ones, to show whether {TAIL} differs."
        hint = takes if runs else ""
        if not claims:
            return Banner(Severity.NEUTRAL, f"no significant difference.{hint}", head)
        rest = [metric_of(one) for one in by[Finding.NONE]]
        more = f"; no significant difference at {', '.join(rest)}" if rest else ""
        if doubts := self.doubts:
            text = f"measured {'; '.join(claims)}{more}. No verdict on the storage: {' and '.join(doubts)}."
            return Banner(Severity.WARNING, text, head)
        severity = Severity.BAD if by[Finding.SLOWER] else Severity.GOOD
        return Banner(severity, f"{'; '.join(claims)}{more}.{hint}", head)

    def as_json(self) -> dict[str, Any]:
        """The numbers for programs; null in place of what is not known."""
        return {
            "side": self.letter,
            "against": self.first_letter,
            "pairing": self.pairing,
            "same_load": self.same_load,
            "unfaithful": list(self.unfaithful),
            "unknown": list(self.unknown),
            "fakes": list(self.fakes),
            "unfilled": list(self.unfilled),
            "failed": list(self.failed),
            "doubts": self.doubts,
            "differences": [numbers(one) for one in self.differences],
            "throughput": numbers(self.throughput) if self.throughput else None,
        }


class Comparison(ABC):
    """Several sides, each compared with the first."""

    against: tuple[Compared, ...]
    """The comparison of each other side with the first."""

    @property
    def figures(self) -> Mapping[str, Figure]:
        """The diagrams that can be drawn by themselves."""
        return {}

    @abstractmethod
    def lines(self) -> Iterator[str]:
        """What was found, as sentences."""

    @abstractmethod
    def as_json(self) -> dict[str, Any]:
        """What was found, for programs."""

    @abstractmethod
    def subject(self, letter: str) -> Subject:
        """A side as what conditions are checked for."""

    @property
    @abstractmethod
    def summary(self) -> Summary:
        """What its page begins with."""

    @abstractmethod
    def write(self, options: OutputOptions) -> Iterator[DiagramFiles]:
        """Writes the page."""


def title_of(names: Sequence[str]) -> str:
    """The title of a page: all sides but the first against the first."""
    return f"{listed(names[1:])} against {names[0]}"


def metric_of(one: Difference | RateDifference) -> str:
    """The name of the metric, as in conditions."""
    return one.metric if isinstance(one, Difference) else THROUGHPUT


def change_text(change: float) -> str:
    """A relative change, for people: +12.3 %; from a hundredfold on, the factor: × 331."""
    return units.change_or_factor(change)


def deciding(one: Difference | RateDifference, limit: float) -> str:
    """What narrows an interval that has the limit of a condition in it."""
    runs = runs_to_decide(one, limit)
    if runs is None:
        return (
            "the change is closer to the limit than runs vary: no practical number of runs would decide this condition"
        )
    return f"about {runs} runs per side, or longer runs, would decide this condition"


def numbers(one: Difference | RateDifference) -> dict[str, Any]:
    """The fields of a difference; null in place of what is not known."""
    return {name: None if value != value else value for name, value in asdict(one).items()}
