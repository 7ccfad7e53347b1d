"""The original beside a run: the load's own requests, with what makes them differ from those of the run."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from iosonar import units
from iosonar.quantities.at_issue import at_issue, seen
from iosonar.quantities.blocks import blocks
from iosonar.quantities.difference import SHARES, Difference, Pairing, differences
from iosonar.quantities.distribution import Distribution, distributions, pooled
from iosonar.quantities.gap import Gap, largest_gap
from iosonar.study.base import cached
from iosonar.study.requests import LATENCY, Study
from iosonar.table import SourceFile
from iosonar.table.embedded import Embedded
from iosonar.table.original import original_requests, speedup_of

if TYPE_CHECKING:
    import ibis.expr.types as ir

MAX_ROWS_SORTED = 5_000_000
"""Up to that many requests are sorted in memory to count what each saw; the engine sorts more on disk."""

OF_DISTANCES = (0.5, 0.95, 0.99)
"""Percentiles of what requests saw that are compared with the original's, if none are chosen."""


@dataclass(frozen=True)
class Original:
    """The study of an original, at the times of the run."""

    study: Study
    run: Study
    is_by_row: bool
    """Whether its requests are row by row those of the run."""

    @property
    def name(self) -> str:
        """The name of the load."""
        return self.study.files[0].name

    @cached_property
    def other_times(self) -> str:
        """Why the run's requests did not come at the times of the original, as a clause; empty if they did."""
        files = self.run.files
        if any(file.option("asap") for file in files):
            return "the replay was as fast as possible (--asap)"
        if any(file.option("closed") for file in files):
            return "the replay was a closed loop"
        speeds = {float(file.option("speedup") or 1) for file in files} - {1.0}
        if speeds:
            return f"the replay was {units.number(max(speeds))} times as fast as the original"
        return "the replay moved requests in time (--perturb)" if any(f.option("perturb") for f in files) else ""

    @property
    def keeps_times(self) -> bool:
        """Whether the run's requests came at the times of the original."""
        return self.is_by_row and not self.other_times

    @property
    def left_out(self) -> int:
        """Requests of the load that are not compared: the run did not issue them, or their latency is not known."""
        return self.study.files[0].rows - self.study.span.requests

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know before the two are compared, as sentences without a full stop."""
        found = []
        if not self.is_by_row:
            found.append(
                f"The requests of {self.name} are not row by row those of the run: all of them are shown, and none is "
                "compared request by request"
            )
        if self.left_out:
            why = "not issued by the replay, or without a latency" if self.is_by_row else "without a latency"
            found.append(f"{units.requests(self.left_out)} of {self.name} left out: {why}")
        if self.other_times:
            found.append(f"{self.other_times[:1].upper()}{self.other_times[1:]}: it demanded other rates")
        if (speed := speedup_of(self.run.files)) != 1:
            found.append(f"The times of {self.name} are divided by {units.number(speed)}, its latencies are not")
        return tuple(found)


def original_of(run: Study, file: SourceFile) -> Original:
    """The original of a run: a load with latencies."""
    found = original_requests(run.requests, file)
    return Original(Study(found.requests, run.options, origin_ns=run.origin_ns), run, found.is_by_row)


@cached
def original_beside(run: Study) -> Original | None:
    """The load that a run replayed, if it is known and has latencies."""
    found: Original | None = run.find_original(run)
    return found


@cached
def seen_at_issue(study: Study) -> ir.Table:
    """The requests with the queue length and the requests in the last second that each saw at its issue."""
    engine = study.requests.engine
    if isinstance(engine, Embedded) and study.rows <= MAX_ROWS_SORTED and (found := seen(study.table)) is not None:
        return engine.keep_rows(found)
    return engine.keep(at_issue(study.table), study.rows)


@dataclass(frozen=True)
class Quantity:
    """What is compared of each request: a column of `study.table`, or of `seen_at_issue`."""

    name: str
    label: str
    column: str
    is_seen: bool = True

    def of(self, study: Study) -> ir.Table:
        """The table with the column."""
        return seen_at_issue(study) if self.is_seen else study.table

    def distribution(self, study: Study) -> Distribution:
        """The values of all requests."""

        def compute() -> Distribution:
            table = self.of(study).mutate(series=0)
            return pooled(list(distributions(table, table[self.column]).values()))

        return study.cached(("original", self.column), compute)

    def text(self, value: float) -> str:
        """A value for people."""
        return units.count(value) if self.is_seen else units.span(value / 1e9)


RESPONSE = Quantity("latency", "Latency", "latency_ns", is_seen=False)
QUEUE = Quantity("queue length", "Queue length at issue, itself included", "queue")
LAST_SECOND = Quantity("requests in the last second", "Requests in the second before, itself included", "last_second")


@dataclass(frozen=True)
class Distance:
    """How far the values of a run are from those of its original."""

    quantity: Quantity
    differences: list[Difference]
    gap: Gap


@cached
def distances(run: Study) -> tuple[Distance, ...]:
    """The distances of a run from its original; none without one."""
    original = original_beside(run)
    if original is None or not run.pooled(LATENCY).count:
        return ()
    pairing = pairing_of(original)
    spans = [_span(each) for each in (original.study, run)]
    if original.keeps_times:
        spans = [(min(low for low, _ in spans), max(high for _, high in spans))] * 2
    found = []
    for quantity in (RESPONSE, QUEUE, LAST_SECOND):
        a, b = (
            [blocks(quantity.of(study), *span, quantity.column)]
            for study, span in zip((original.study, run), spans, strict=True)
        )
        shares = run.options.percentiles or (OF_DISTANCES if quantity.is_seen else SHARES)
        values = [quantity.distribution(study) for study in (original.study, run)]
        changes = [one.with_values(*values) for one in differences(a, b, pairing, shares=shares)]
        found.append(Distance(quantity, changes, largest_gap(a, b, pairing)))
    return tuple(found)


def pairing_of(original: Original) -> Pairing:
    """Whether the same time is the same request on both sides."""
    return Pairing.PAIRED if original.keeps_times else Pairing.UNPAIRED


def response_of(run: Study) -> list[Difference]:
    """The changes in latency from the original to the run."""
    return next((one.differences for one in distances(run) if one.quantity is RESPONSE), [])


def _span(study: Study) -> tuple[int, int]:
    return study.span.first_scheduled_ns or 0, study.span.last_scheduled_ns or 0
