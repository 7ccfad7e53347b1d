"""The replayer itself, for experts: what a run with --verbose noted about each request, in the order of completion.

Large values here are mostly the device's doing, not the replayer's: a pipeline that is full because the device is slow.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from iosonar import units
from iosonar.diagrams.catalogue import Diagram, Group
from iosonar.diagrams.parts import rate_row
from iosonar.diagrams.sonar import place_of_all
from iosonar.diagrams.study import Study
from iosonar.figures.model import Axis, Empty, Figure, Legend, Role, Steps, Unit
from iosonar.quantities.density import Cells
from iosonar.quantities.progress import progress

if TYPE_CHECKING:
    from collections.abc import Callable

    import ibis.expr.types as ir


@dataclass(frozen=True)
class Inner:
    """A value that the replayer notes: its name, title, unit and expression; times are in ns."""

    name: str
    title: str
    unit: Unit
    value: Callable[[ir.Table], ir.NumericColumn]
    cumulated: bool = False
    nothing: str = ""
    """What it means if all values are zero; empty where zeros are worth a picture."""


def _held(*reasons: str) -> Callable[[ir.Table], ir.NumericColumn]:
    """The delay of requests that these reasons kept from going, and zero for the others."""
    return lambda table: (table.held_by.isin(reasons)).ifelse(table.delay_ns, table.delay_ns * 0)


def _answer_wait(table: ir.Table) -> ir.NumericColumn:
    waited = table.held_by.isin(("depth", "order", "perturbed")) | table.pushed_back
    return waited.ifelse(table.delay_ns, table.delay_ns * 0)


INNER = (
    Inner("submit_level", "Requests given to the target", Unit.REQUESTS, lambda table: table.in_flight),
    Inner("pushback_level", "Requests that wait to be issued", Unit.REQUESTS, lambda table: table.waiting),
    Inner(
        "submit_ahead",
        "How long before its time a request lay ready",
        Unit.SECONDS,
        lambda table: table.intended_ns - table.ready_ns,
    ),
    Inner("submit_lag", "How long the submission took", Unit.SECONDS, lambda t: t.submitted_ns - t.issued_ns, True),
    Inner(
        "answer_lag",
        "How long an answer may have waited to be seen, at most",
        Unit.SECONDS,
        lambda table: table.completed_ns - table.unanswered_ns,
        True,
    ),
    Inner(
        "input_wait",
        "Delay because the load was not read in time",
        Unit.SECONDS,
        _held("input"),
        True,
        "no request had to wait for the load to be read",
    ),
    Inner(
        "answer_wait",
        "Delay because others had not completed",
        Unit.SECONDS,
        _answer_wait,
        True,
        "no request had to wait for another to complete",
    ),
)


def over_requests(study: Study, inner: Inner, name: str, rank: str) -> Figure | Empty:
    """The mean of slices as a line and their most behind it; or the sum of all up to there."""
    rows = max(sum(file.rows for file in study.requests.files), 1)
    table = study.requests.table
    at = place_of_all(study, table)
    found = progress(table, at, inner.value(table), Cells(0, rows, min(study.options.size.slices, rows)))
    if found is None:
        return Empty(name, "the run was recorded without --verbose")
    if inner.nothing and not found.total.any():
        return Empty(name, inner.nothing)
    scale = 1e-9 if inner.unit is Unit.SECONDS else 1.0
    text = units.seconds if inner.unit is Unit.SECONDS else units.count
    if name.endswith("_cumul"):
        total = np.cumsum(found.total) * scale
        layers = [Steps(Role.ALL, "Sum", found.edges, total, filled=True)]
        legend = Legend(("at the end",), (rate_row(Role.ALL, "Sum", (text(float(total[-1])),)),))
    else:
        mean, most = found.mean * scale, found.most * scale
        layers = [Steps(Role.FAINT, "Most", found.edges, most), Steps(Role.ALL, "Mean", found.edges, mean)]
        # Of all requests: slices without some of the values would weigh too much in a mean of means.
        average = table.aggregate(mean=inner.value(table).cast("float64").mean()).to_pyarrow()["mean"][0].as_py()
        known = (average * scale, np.nanmin(found.least) * scale, np.nanmax(most))
        cells = tuple(text(float(number)) for number in known)
        legend = Legend(("avg", "min", "max"), (rate_row(Role.ALL, "Mean", cells), rate_row(Role.FAINT, "Most", ())))
    values = np.concatenate([layer.y for layer in layers])
    low, high = min(float(np.nanmin(values)), 0.0), max(float(np.nanmax(values)), 0.0)
    room = (high - low) * 0.05 or (1e-6 if inner.unit is Unit.SECONDS else 1.0)
    return Figure(
        name,
        rank,
        inner.title + (", in sum" if name.endswith("_cumul") else ""),
        study.of,
        Axis("Request, in the order of completion", Unit.REQUESTS, 0, rows),
        Axis("Time" if scale < 1 else "Level", inner.unit, low - room if low < 0 else 0.0, high + room),
        tuple(layers),
        legend,
        study.notes,
    )


DIAGRAMS = [
    Diagram(name, "g50", Group.VERBOSE, partial(over_requests, inner=inner, name=name, rank="g50"))
    for inner in INNER
    for name in ((inner.name, f"{inner.name}_cumul") if inner.cumulated else (inner.name,))
]
