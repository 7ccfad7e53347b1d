"""The clouds: latency and delay of each request over time or over its place. The first of them is the sonar diagram."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from iosonar.diagrams.catalogue import Diagram, Group
from iosonar.diagrams.parts import (
    VALUE_COLUMNS,
    cells_of,
    cloud_parts,
    measure_axis,
    measure_legend,
    time_axis,
    verdict_note,
    verdict_rules,
)
from iosonar.diagrams.study import DELAY, LATENCY, Measure, Study
from iosonar.figures.model import Cloud, Empty, Figure, Legend
from iosonar.quantities.density import density

if TYPE_CHECKING:
    import ibis.expr.types as ir

TIMES = {
    "realtime": ("issued_ns", "Real time of issue", "real time"),
    "setpoint": ("intended_ns", "Intended time", "intended time"),
    "completed": ("completed_ns", "Time of completion", "time of completion"),
}
"""Orders of requests by time: the table's column, the axis' label, and a title's words."""


def cloud_over_time(study: Study, measure: Measure, order: str, name: str, rank: str) -> Figure | Empty:
    """A cloud of latencies or delays over one of the times of a request."""
    found = study.distribution(measure)
    if not found:
        return Empty(name, f"no request has a {measure.name}")
    column, label, words = TIMES[order]
    x, y = time_axis(study, label), measure_axis(study, measure)
    across, up = study.options.size.cells
    at_s: ir.NumericColumn = study.table[column] / 1e9
    value_s: ir.NumericColumn = study.table[measure.column] / 1e9
    cells = density(study.table, at_s, value_s, cells_of(x, across), cells_of(y, up))
    verdict = study.verdict(measure)
    return Figure(
        name,
        rank,
        f"{measure.name.capitalize()} over {words}",
        study.of,
        x,
        y,
        (Cloud(across, up, cloud_parts(cells)), *verdict_rules(verdict, measure, y, at_times=True)),
        Legend(VALUE_COLUMNS, measure_legend(found)),
        (*study.notes, verdict_note(verdict, measure)),
    )


DIAGRAMS = [
    Diagram(name, rank, Group.DYNAMIC, partial(cloud_over_time, measure=measure, order=order, name=name, rank=rank))
    for name, rank, measure, order in (
        ("latency.realtime", "g01", LATENCY, "realtime"),
        ("latency.setpoint", "g02", LATENCY, "setpoint"),
        ("latency.completed", "g03", LATENCY, "completed"),
        ("delay.setpoint", "g04", DELAY, "setpoint"),
    )
]
