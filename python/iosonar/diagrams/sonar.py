"""The clouds: latency and delay of each request over time or over its row. The first one is the sonar diagram."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING

from iosonar.diagrams.catalogue import Diagram, Group
from iosonar.diagrams.notes import common_notes
from iosonar.diagrams.parts import (
    cells_of,
    cloud_parts,
    floor_notes,
    measure_axis,
    measure_legend,
    time_axis,
    value_columns,
    verdict_note,
    verdict_rules,
)
from iosonar.figures.model import Axis, Cloud, Empty, Figure, Legend, Unit
from iosonar.quantities.density import density
from iosonar.study.requests import DELAY, LATENCY, Measure, Study

if TYPE_CHECKING:
    import ibis.expr.types as ir

ORDERS = {
    "realtime": ("issued_ns", "Issue time", "issue time"),
    "setpoint": ("scheduled_ns", "Scheduled time", "scheduled time"),
    "completed": ("completed_ns", "Completion time", "completion time"),
    "points": ("", "Request, in the order of completion", "requests in the order of completion"),
}
"""Orders of requests: the time column, the axis label, and words of the title. Points are the requests in order of
completion, equally spaced."""

RUN_BY_RUN = "Request, run by run in the order of completion"
"""The label of the points of several files: one run after the other."""


def cloud(study: Study, measure: Measure, order: str, name: str, rank: str) -> Figure | Empty:
    """A cloud of latencies or delays over one of the times of a request, or over its row."""
    found = study.distribution(measure)
    if not found:
        return Empty(name, f"no {measure.plural} in the file")
    column, label, words = ORDERS[order]
    y = measure_axis(study, measure)
    if order == "points":
        x = points_axis(study)
        words = words if label == x.label else "requests, run by run in the order of completion"
        at = place_of_all(study, study.table)
    else:
        x = time_axis(study, label)
        at = study.table[column] / 1e9
    across, up = study.options.size.cells(study.pooled(measure).count)
    value_s: ir.NumericColumn = study.table[measure.column] / 1e9
    cells = density(study.table, at, value_s, cells_of(x, across), cells_of(y, up))
    verdict, run = study.verdict(measure), study.requests.is_run
    title = f"{measure.name.capitalize()} over {words}"
    if not run and order == "realtime":
        title, x = f"Recorded {measure.name} over time", replace(x, label="Time")
    # Limits are for runs.
    rules = verdict_rules(verdict, measure, x, y, at_times=order in ("realtime", "setpoint")) if run else []
    return Figure(
        name,
        rank,
        title,
        study.of,
        x,
        y,
        (
            Cloud(across, up, cloud_parts(study, cells)),
            *rules,
        ),
        Legend(value_columns(study), measure_legend(study, found)),
        (*common_notes(study), *floor_notes(y), *([verdict_note(study, measure)] if run else [])),
    )


def points_axis(study: Study) -> Axis:
    """An axis of the requests of all files, for `place_of_all`."""
    files = study.requests.files
    label = RUN_BY_RUN if len(files) > 1 else ORDERS["points"][1]
    return Axis(label, Unit.REQUESTS, *study.places)


def place_of_all(study: Study, table: ir.Table) -> ir.IntegerColumn:
    """A request's row number in all files together; `table` has requests of the study."""
    import ibis

    *before, _ = accumulate((file.rows for file in study.requests.files), initial=0)
    return table.place + ibis.cases(*((table.source == index, number) for index, number in enumerate(before)))


DIAGRAMS = [
    Diagram(name, rank, Group.DYNAMIC, partial(cloud, measure=measure, order=order, name=name, rank=rank))
    for name, rank, measure, order in (
        ("latency.realtime", "g01", LATENCY, "realtime"),
        ("latency.setpoint", "g02", LATENCY, "setpoint"),
        ("latency.completed", "g03", LATENCY, "completed"),
        ("latency.points", "g03", LATENCY, "points"),
        ("delay.setpoint", "g04", DELAY, "setpoint"),
        ("delay.points", "g05", DELAY, "points"),
    )
]
