"""Measurements of the replayer itself, for experts: what a run with --verbose recorded of each request, by completion.

Large values here are mostly the device's doing, not the replayer's: a pipeline that is full because the device is slow.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from iosonar import units
from iosonar.diagrams.catalogue import Diagram, Group
from iosonar.diagrams.notes import common_notes
from iosonar.diagrams.parts import log_axis, rate_row
from iosonar.diagrams.sonar import place_of_all, points_axis
from iosonar.figures.model import Axis, Empty, Figure, Layer, Legend, Role, Steps, Unit
from iosonar.quantities.density import Cells
from iosonar.quantities.progress import progress
from iosonar.study.requests import DELAY, Study

if TYPE_CHECKING:
    from collections.abc import Callable

    import ibis.expr.types as ir


@dataclass(frozen=True)
class Inner:
    """A value that the replayer records: its name, title, unit and expression; times are in ns."""

    name: str
    title: str
    unit: Unit
    value: Callable[[ir.Table], ir.NumericColumn]
    cumulated: bool = False
    """Mostly small times, rarely large: shown with a sum on a logarithmic axis, so that peaks do not hide the mean."""
    nothing: str = ""
    """The meaning if all values are zero; empty if zeros are worth a diagram."""


def _delay_by(*reasons: str) -> Callable[[ir.Table], ir.NumericColumn]:
    """The delay of requests delayed by these reasons, and zero for others."""
    return lambda table: (table.delay_reason.isin(reasons)).ifelse(table.delay_ns, table.delay_ns * 0)


def _answer_wait(table: ir.Table) -> ir.NumericColumn:
    waited = table.delay_reason.isin(("depth", "order", "perturbed", "backlog")) | table.pushed_back
    return waited.ifelse(table.delay_ns, table.delay_ns * 0)


INNER = (
    Inner("submit_level", "Requests in flight, counted by the replayer", Unit.REQUESTS, lambda table: table.in_flight),
    Inner(
        "pushback_level",
        "Requests waiting to be issued",
        Unit.REQUESTS,
        lambda table: table.waiting,
        nothing="no request waited to be issued",
    ),
    Inner(
        "submit_ahead",
        "Lead time: from ready to scheduled time",
        Unit.SECONDS,
        lambda table: table.scheduled_ns - table.ready_ns,
    ),
    Inner("submit_lag", "Duration of the submission call", Unit.SECONDS, lambda t: t.submitted_ns - t.issued_ns, True),
    Inner(
        "answer_lag",
        "Time from completion to its detection, upper bound",
        Unit.SECONDS,
        lambda table: table.completed_ns - table.last_empty_poll_ns,
        True,
    ),
    Inner(
        "input_wait",
        "Delay from waiting for the load to be read",
        Unit.SECONDS,
        _delay_by("input"),
        True,
        "no request waited for the load to be read",
    ),
    Inner(
        "answer_wait",
        "Delay from waiting for other requests to complete",
        Unit.SECONDS,
        _answer_wait,
        True,
        "no request waited for another to complete",
    ),
)


def over_requests(study: Study, inner: Inner, name: str, rank: str) -> Figure | Empty:
    """The mean of slices as a line, with their maximum in the background; or the running total."""
    low, high = study.places
    table = study.requests.table
    at = place_of_all(study, table)
    cells = Cells(low, high, min(study.options.size.slices, high - low))
    # For the value and its sum.
    found = study.cached(("progress", inner.name, cells.count), lambda: progress(table, at, inner.value(table), cells))
    if found is None:
        why = "the run has no such column; replay with --verbose" if study.requests.is_run else "a load has no replayer"
        return Empty(name, why)
    if inner.nothing and not found.total.any():
        return Empty(name, inner.nothing)
    scale = 1e-9 if inner.unit is Unit.SECONDS else 1.0
    text = units.seconds if inner.unit is Unit.SECONDS else units.count
    if name.endswith("_cumul"):
        total = np.cumsum(found.total) * scale
        layers: list[Layer] = [Steps(Role.ALL, "Sum", found.edges, total, filled=True)]
        y = _linear(inner, total)
        legend = Legend(("total",), (rate_row(Role.ALL, "Sum", (text(float(total[-1])),)),))
    else:
        mean, most = found.mean * scale, found.maximum * scale
        layers = [Steps(Role.FAINT, "Max", found.edges, most, filled=True), Steps(Role.ALL, "Mean", found.edges, mean)]
        # Over all requests: a mean of means would give slices with few values too much weight.
        average = table.aggregate(mean=inner.value(table).cast("float64").mean()).to_pyarrow()["mean"][0].as_py()
        known = (average * scale, np.nanmin(found.minimum) * scale, np.nanmax(most))
        of_mean, of_least, of_most = (text(float(number)) for number in known)
        both = (rate_row(Role.ALL, "Mean", (of_mean, of_least)), rate_row(Role.FAINT, "Max", ("", "", of_most)))
        legend = Legend(("avg", "min", "max"), both)
        y = _logarithmic(mean, most) if inner.cumulated and known[1] >= 0 else _linear(inner, np.append(mean, most))
    return Figure(
        name,
        rank,
        inner.title + (", cumulative" if name.endswith("_cumul") else ""),
        study.of,
        points_axis(study),
        y,
        tuple(layers),
        legend,
        common_notes(study),
    )


def _linear(inner: Inner, values: NDArray[np.float64]) -> Axis:
    low, high = min(float(np.nanmin(values)), 0.0), max(float(np.nanmax(values)), 0.0)
    times = inner.unit is Unit.SECONDS
    room = (high - low) * 0.05 or (1e-6 if times else 1.0)
    return Axis("Time" if times else "Level", inner.unit, low - room if low < 0 else 0.0, high + room)


def _logarithmic(mean: NDArray[np.float64], most: NDArray[np.float64]) -> Axis:
    """A logarithmic axis of times; zeros are at its lower end."""
    least, highest = float(np.min(mean, where=mean > 0, initial=1.0)), float(np.nanmax(most))
    return log_axis("Time", Unit.SECONDS, max(least / 2, DELAY.minimum_s), max(highest, DELAY.minimum_s))


DIAGRAMS = [
    Diagram(name, "g50", Group.VERBOSE, partial(over_requests, inner=inner, name=name, rank="g50"))
    for inner in INNER
    for name in ((inner.name, f"{inner.name}_cumul") if inner.cumulated else (inner.name,))
]
