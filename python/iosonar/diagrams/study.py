"""What all diagrams of one report share: the table, the options, and numbers that several of them need."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from iosonar.figures.model import Note
from iosonar.figures.size import Size
from iosonar.quantities.distribution import Distribution, distributions, pooled
from iosonar.quantities.narrow import narrow
from iosonar.quantities.series import Series
from iosonar.quantities.span import Span, span
from iosonar.quantities.throughput import Throughput, throughput, window_for
from iosonar.quantities.verdict import Verdict, verdict
from iosonar.quantities.working_set import DEFAULT_WINDOWS_S
from iosonar.table import Requests

if TYPE_CHECKING:
    import ibis.expr.types as ir

T = TypeVar("T")


@dataclass(frozen=True)
class Options:
    """What a user may set about the diagrams."""

    bad_latency_s: float = 5.0
    bad_delay_s: float = 10.0
    window_s: float | None = None
    """Of throughput; None for the default (`window_for`)."""
    windows_s: tuple[float, ...] = DEFAULT_WINDOWS_S
    """Of working sets; may hold infinity."""
    size: Size = field(default_factory=Size)


@dataclass(frozen=True)
class Measure:
    """A quantity of each request that several diagrams show: latency or delay, in ns in the table."""

    name: str
    plural: str
    column: str
    least_s: float
    """Smaller values are drawn at the lower end of the axis: below it, clocks say nothing."""


LATENCY = Measure("latency", "latencies", "latency_ns", 1e-7)
DELAY = Measure("delay", "delays", "delay_ns", 1e-7)


class Study:
    """A table of requests that is looked at, with everything that is computed of it but once."""

    def __init__(self, requests: Requests, options: Options) -> None:
        self.requests = requests
        self.options = options
        self._known: dict[Hashable, Any] = {}

    @cached_property
    def table(self) -> ir.Table:
        """All requests, with the columns of `narrow`: once read, they are kept."""
        return self.requests.kept(narrow(self.requests.table, sum(file.rows for file in self.requests.files)))

    @cached_property
    def span(self) -> Span:
        """How many requests, and from when to when."""
        return span(self.table)

    @cached_property
    def notes(self) -> tuple[Note, ...]:
        """What is to be said beside every diagram."""
        from iosonar.diagrams.notes import common_notes

        return common_notes(self)

    @property
    def of(self) -> str:
        """Which files this is about, for people."""
        files = self.requests.files
        names = ", ".join(file.name for file in files[:4]) + (f" and {len(files) - 4} more" if len(files) > 4 else "")
        targets = ", ".join(str(path) for target in files[0].targets if (path := target.get("path")))
        where = f" on {targets}" if targets and len(files) == 1 else ""
        return f"{names}{where} · {self.span.requests:,} requests"

    @property
    def window_s(self) -> float:
        """The window of throughput in seconds."""
        return self.options.window_s or window_for(self.last_s - self.first_s)

    @property
    def first_s(self) -> float:
        """Where time axes begin: at zero, unless most of the axis would be empty."""
        first, last = self.span.first_intended_s or 0.0, self.last_s
        return first if first < 0 or first > 0.2 * last else 0.0

    @property
    def last_s(self) -> float:
        """Where time axes end."""
        ends = (self.span.last_intended_s, self.span.last_issued_s, self.span.last_completed_s)
        return max((end for end in ends if end is not None), default=0.0)

    def once(self, key: Hashable, compute: Callable[[], T]) -> T:
        """What `compute` returns, computed for the first that asks for `key`."""
        if key not in self._known:
            self._known[key] = compute()
        found: T = self._known[key]
        return found

    def distribution(self, measure: Measure) -> dict[Series, Distribution]:
        """How latency or delay is distributed, in ns, for each series."""
        return self.once(("distribution", measure), lambda: distributions(self.table, self.table[measure.column]))

    def pooled(self, measure: Measure) -> Distribution:
        """The same for all requests."""
        return self.once(("pooled", measure), lambda: pooled(list(self.distribution(measure).values())))

    def throughput(self, column: str) -> Throughput:
        """Throughput by one of the times of a request, such as `intended_ns`."""
        return self.once(("throughput", column), lambda: throughput(self.table, self.table[column], self.window_s))

    def verdict(self, measure: Measure) -> Verdict:
        """Whether latencies or delays stayed within their limit."""
        limit, at = (
            (self.options.bad_latency_s, self.table.issued_ns)
            if measure is LATENCY
            else (self.options.bad_delay_s, self.table.intended_ns)
        )
        return self.once(("verdict", measure), lambda: verdict(self.table, self.table[measure.column], at, limit))
