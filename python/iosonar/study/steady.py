"""Whether, and from when on, the latency of a run was steady."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

import numpy as np

from iosonar import units
from iosonar.quantities.bands import Bands, bands
from iosonar.quantities.density import Cells
from iosonar.quantities.steady import MIN_RATIO, MIN_VALUES, drift_of, steady_from
from iosonar.study.base import Options
from iosonar.study.grades import Grade

if TYPE_CHECKING:
    import ibis.expr.types as ir

T = TypeVar("T")

PERCENTILES = (0.5, 0.9, 0.99, 0.999, 0.9999)
FEWEST_DRAWN, MAX_SLICES = 10, 180
STEADY_SLICES = 20
"""The fewest slices from which to determine whether a run was steady."""
REQUESTS_IN_A_SLICE = 1000
"""The fewest requests per slice on average, so that a 99th percentile is meaningful."""

LEAST_SLICES = 2 * MIN_VALUES
"""The fewest slices with requests from which to determine whether a run was steady."""


class Timed(Protocol):
    """Requests or calls with latencies: a `Study`, or what has the same columns and times."""

    options: Options

    @property
    def table(self) -> ir.Table:
        """Its columns `issued_ns` and `latency_ns` are used."""

    @property
    def completed(self) -> int:
        """How many rows have a latency."""

    @property
    def first_s(self) -> float:
        """The start of the time."""

    @property
    def last_s(self) -> float:
        """Its end."""

    def cached(self, key: Hashable, compute: Callable[[], T]) -> T:
        """Keeps what was computed."""


@dataclass(frozen=True)
class Steadiness:
    """The time in seconds from which the run was steady, None if there is none; its grade, None if it is not known."""

    since_s: float | None
    grade: Grade | None
    text: str


def bands_over_time(study: Timed, least: int = FEWEST_DRAWN) -> Bands:
    """The percentiles of latency in slices of the whole duration."""
    slices = min(max(study.completed // REQUESTS_IN_A_SLICE, least), MAX_SLICES)
    cells = Cells(study.first_s, max(study.last_s, study.first_s + 1e-9), slices)
    table, shares = study.table, sorted({*PERCENTILES, *study.options.percentiles})
    return study.cached(("bands", slices), lambda: bands(table, table.issued_ns / 1e9, table.latency_ns, cells, shares))


def steadiness(study: Timed) -> Steadiness:
    """By the mean logarithm of latency in slices of the whole duration."""
    found = bands_over_time(study, STEADY_SLICES)
    # With a coarse clock, latencies may be zero: count at least a nanosecond.
    means = np.log(np.maximum(found.mean, 1.0))
    if np.isfinite(means).sum() < LEAST_SLICES:
        return Steadiness(None, None, "Too short to tell whether latency was steady")
    start = steady_from(means)
    if start is None:
        return Steadiness(None, Grade.WARNING, "Not steady: latency was still changing when the run ended")
    at = float(found.edges[start])
    if drift := drift_of(means[start:]):
        since, times = units.span(float(found.edges[start + drift.at])), units.number(math.exp(drift.by), 2)
        text = f"Not steady: from {since} on, latency was {times} times as high as before on average"
        return Steadiness(None, Grade.WARNING, text)
    took, whole = at - study.first_s, study.last_s - study.first_s
    if took * MIN_RATIO > whole:
        text = f"Steady from {units.span(at)} on: a run should last {MIN_RATIO:g} times as long as its warm-up"
        return Steadiness(at, Grade.WARNING, text)
    text = f"Steady from {units.span(at)} on" if took else "Steady throughout: no warm-up, no drift"
    return Steadiness(at, Grade.GOOD, text)
