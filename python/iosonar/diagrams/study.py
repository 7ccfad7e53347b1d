"""Shared by all diagrams of a report: the table, the options, and cached quantities."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from iosonar import units
from iosonar.figures.size import Size
from iosonar.quantities.distribution import Distribution, distributions, pooled
from iosonar.quantities.narrow import narrow
from iosonar.quantities.series import Series
from iosonar.quantities.span import Span, span
from iosonar.quantities.throughput import Throughput, throughput, window_for
from iosonar.quantities.verdict import Verdict, verdict
from iosonar.quantities.working_set import DEFAULT_WINDOWS_S
from iosonar.table import Kind, Requests

if TYPE_CHECKING:
    import ibis.expr.types as ir

T = TypeVar("T")

SECOND_NS = 1_000_000_000
FAR_NS = 1 << 53
"""104 days: the largest range in which float64 distinguishes nanoseconds."""

TIMES = ("scheduled_ns", "issued_ns", "completed_ns")


@dataclass(frozen=True)
class Options:
    """The user's options for diagrams."""

    bad_latency_s: float = 5.0
    bad_delay_s: float = 10.0
    window_s: float | None = None
    """The window of throughput; None for the default (`window_for`)."""
    windows_s: tuple[float, ...] = DEFAULT_WINDOWS_S
    """The windows of working sets; may include infinity."""
    size: Size = field(default_factory=Size)


@dataclass(frozen=True)
class Measure:
    """A quantity of each request that several diagrams show: latency or delay, in ns in the table."""

    name: str
    plural: str
    column: str
    minimum_s: float
    """Smaller values are drawn at the lower end of the axis: clocks are not more accurate."""


LATENCY = Measure("latency", "latencies", "latency_ns", 1e-7)
DELAY = Measure("delay", "delays", "delay_ns", 1e-7)


class Study:
    """A table of requests, with all quantities computed on it, each once."""

    def __init__(self, requests: Requests, options: Options, origin_ns: int | None = None) -> None:
        self.requests = requests
        self.options = options
        self._given_origin_ns = origin_ns
        self._cache: dict[Hashable, Any] = {}

    @cached_property
    def _kept(self) -> ir.Table:
        """All requests, with the columns of `narrow`, kept after the first read."""
        return self.requests.kept(narrow(self.requests.table, sum(file.rows for file in self.requests.files)))

    @cached_property
    def _kept_span(self) -> Span:
        return span(self._kept)

    @cached_property
    def origin_ns(self) -> int:
        """Subtracted from all times, in whole seconds: zero, unless the times are too far from the table's zero.

        Axes are float64, which does not distinguish neighbouring times far from zero.
        """
        if self._given_origin_ns is not None:
            return self._given_origin_ns
        first, last = self._kept_span.first_ns, self._kept_span.last_ns
        far = max(abs(first), abs(last))
        return first // SECOND_NS * SECOND_NS if far >= FAR_NS and last - first < far // 5 else 0

    @cached_property
    def table(self) -> ir.Table:
        """All requests, with the columns of `narrow`; times count from `origin_ns`."""
        if not self.origin_ns:
            return self._kept
        return self._kept.mutate(**{name: self._kept[name] - self.origin_ns for name in TIMES})

    @cached_property
    def span(self) -> Span:
        """The number of requests, and the range of their times."""
        return span(self.table) if self.origin_ns else self._kept_span

    @property
    def of(self) -> str:
        """The files and the target, for people."""
        files = self.requests.files
        names = ", ".join(file.name for file in files[:4]) + (f" and {len(files) - 4} more" if len(files) > 4 else "")
        real = (target for target in files[0].targets if target.get("kind") != "none")
        targets = ", ".join(str(path) for target in real if (path := target.get("path")))
        where = f" on {targets}" if targets and len(files) == 1 else ""
        return f"{names}{where} · {units.requests(self.span.requests)}"

    @property
    def has_delays(self) -> bool:
        """Whether requests of a run had scheduled times; those issued as fast as possible had none."""
        return any(not file.option("asap") for file in self.requests.files if file.kind is Kind.REPLAY)

    @property
    def has_demand(self) -> bool:
        """Whether the load set the times of a run; in a closed loop, the storage sets them."""
        return any(not (file.option("asap") or file.option("closed")) for file in self.requests.files)

    @property
    def window_s(self) -> float:
        """The window of throughput in seconds."""
        return self.options.window_s or window_for(self.last_s - self.first_s)

    @property
    def first_s(self) -> float:
        """The start of time axes: zero, unless most of the axis would be empty."""
        return self.first_ns / 1e9

    @property
    def first_ns(self) -> int:
        """The same in nanoseconds."""
        first, last = self.span.first_ns, self.span.last_ns
        return first if first < 0 or 5 * first > last else 0

    @property
    def last_s(self) -> float:
        """The end of time axes."""
        return self.last_ns / 1e9

    @property
    def last_ns(self) -> int:
        """The same in nanoseconds."""
        return self.span.last_ns

    def once(self, key: Hashable, compute: Callable[[], T]) -> T:
        """The result of `compute`, computed once for each `key`."""
        if key not in self._cache:
            self._cache[key] = compute()
        found: T = self._cache[key]
        return found

    def distribution(self, measure: Measure) -> dict[Series, Distribution]:
        """The distribution of latency or delay, in ns, for each series."""
        return self.once(("distribution", measure), lambda: distributions(self.table, self.table[measure.column]))

    def pooled(self, measure: Measure) -> Distribution:
        """The same for all requests."""
        return self.once(("pooled", measure), lambda: pooled(list(self.distribution(measure).values())))

    def throughput(self, column: str) -> Throughput:
        """Throughput by one of the times of a request, such as `scheduled_ns`."""
        return self.once(("throughput", column), lambda: throughput(self.table, self.table[column], self.window_s))

    def verdict(self, measure: Measure) -> Verdict:
        """Whether latencies or delays stayed within their limit."""
        limit, at = (
            (self.options.bad_latency_s, self.table.issued_ns)
            if measure is LATENCY
            else (self.options.bad_delay_s, self.table.scheduled_ns)
        )
        return self.once(("verdict", measure), lambda: verdict(self.table, self.table[measure.column], at, limit))
