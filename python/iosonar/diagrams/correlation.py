"""Clouds without a time axis: latency and delay over queue depth, and over each other."""

from __future__ import annotations

from functools import partial

from iosonar.diagrams.catalogue import Diagram, Group
from iosonar.diagrams.notes import common_notes
from iosonar.diagrams.parts import (
    cells_of,
    cloud_parts,
    floor_notes,
    max_depth_of,
    measure_axis,
    measure_legend,
    value_columns,
)
from iosonar.figures.model import Axis, Cloud, Empty, Figure, Legend, Unit
from iosonar.quantities.density import Cells, density
from iosonar.quantities.depth import with_depth
from iosonar.study.requests import DELAY, LATENCY, Measure, Study


def over_depth(study: Study, measure: Measure, name: str, rank: str) -> Figure | Empty:
    """Latency or delay over the number of requests in flight at issue."""
    found = study.distribution(measure)
    if not found:
        return Empty(name, f"no {measure.plural} in the file")
    table = study.cached("depth", lambda: with_depth(study.table))
    deepest = max_depth_of(study, table)
    across, up = study.options.size.cells(study.pooled(measure).count)
    # A cell for each depth as long as there is room, so that no depth is between two cells.
    across = min(across, deepest)
    x = Axis("Requests in flight at issue", Unit.REQUESTS, 0.5, deepest + 0.5, whole=True)
    y = measure_axis(study, measure)
    cells = density(table, table.depth, table[measure.column] / 1e9, Cells(x.low, x.high, across), cells_of(y, up))
    return Figure(
        name,
        rank,
        f"{measure.name.capitalize()} over requests in flight at issue",
        study.of,
        x,
        y,
        (Cloud(across, up, cloud_parts(study, cells), whole_numbers=across == deepest),),
        Legend(value_columns(study), measure_legend(study, found)),
        (*common_notes(study), *floor_notes(y)),
    )


def latency_over_delay(study: Study, name: str, rank: str) -> Figure | Empty:
    """Latency over delay: whether requests that waited were slow as well."""
    found = study.distribution(LATENCY)
    if not found:
        return Empty(name, "no latencies in the file")
    table = study.table
    across, up = study.options.size.cells(study.pooled(LATENCY).count)
    x, y = measure_axis(study, DELAY), measure_axis(study, LATENCY)
    cells = density(table, table.delay_ns / 1e9, table.latency_ns / 1e9, cells_of(x, across), cells_of(y, up))
    return Figure(
        name,
        rank,
        "Latency over delay",
        study.of,
        x,
        y,
        (Cloud(across, up, cloud_parts(study, cells)),),
        Legend(value_columns(study), measure_legend(study, found)),
        (*common_notes(study), *floor_notes(x, y)),
    )


DIAGRAMS = [
    Diagram("latency.xy", "g10", Group.DYNAMIC, partial(over_depth, measure=LATENCY, name="latency.xy", rank="g10")),
    Diagram("delay.xy", "g11", Group.DYNAMIC, partial(over_depth, measure=DELAY, name="delay.xy", rank="g11")),
    Diagram("latency.delay.xy", "g12", Group.DYNAMIC, partial(latency_over_delay, name="latency.delay.xy", rank="g12")),
]
