"""Throughput of each series, as demanded and as delivered."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from numpy.typing import NDArray

from iosonar import units
from iosonar.diagrams.catalogue import Diagram, Group
from iosonar.diagrams.overview import RATE_COLUMNS, rates
from iosonar.diagrams.parts import ROLES, linear_axis, rate_row, time_axis
from iosonar.diagrams.study import Study
from iosonar.figures.model import Empty, Figure, Layer, Legend, LegendRow, Role, Steps, Unit
from iosonar.quantities.throughput import Throughput

ORDERS = {"setpoint": ("intended_ns", "demanded"), "completed": ("completed_ns", "delivered")}


def throughput_by_series(study: Study, name: str, rank: str, unit: Unit, order: str) -> Figure | Empty:
    """A line for each series and one for all, in requests or sectors per second."""
    column, words = ORDERS[order]
    found = study.throughput(column)
    if not found.windows:
        return Empty(name, "no request was completed" if order == "completed" else "no requests")
    counts = found.requests if unit is Unit.REQUESTS_PER_S else found.sectors
    lines = [(ROLES[series], series.title, counts[series]) for series in sorted(counts)]
    if len(lines) > 1:
        lines.insert(0, (Role.ALL, "All", np.sum(list(counts.values()), axis=0)))
    layers: list[Layer] = []
    rows: list[LegendRow] = []
    for role, label, values in lines:
        y = rates(values, found)
        layers.append(Steps(role, label, found.edges_s, y, partial=found.windows - found.whole))
        rows.append(
            rate_row(
                role,
                label,
                (units.count(average(values, found)), units.count(highest(y[: found.whole] if found.whole else y))),
            )
        )
    return Figure(
        name,
        rank,
        f"Throughput {words}",
        f"{study.of} · windows of {units.seconds(study.window_s)}",
        time_axis(study, "Time"),
        linear_axis("Throughput", unit, max(highest(layer.y) for layer in layers if isinstance(layer, Steps))),
        tuple(layers),
        Legend(RATE_COLUMNS, (*rows[1:], *rows[:1])),
        study.notes,
    )


def average(values: NDArray[np.int64], windows: Throughput) -> float:
    """Of a series, per second of the whole time."""
    duration = windows.end_s - windows.edges_s[0]
    return float(values.sum()) / duration if duration > 0 else math.nan


def highest(y: NDArray[np.float64]) -> float:
    """The largest of the values that are numbers; zero if none is."""
    return float(np.nanmax(y)) if not np.isnan(y).all() else 0.0


DIAGRAMS = [
    Diagram(
        f"{kind}.{order}",
        "g00",
        group,
        partial(throughput_by_series, name=f"{kind}.{order}", rank="g00", unit=unit, order=order),
    )
    for kind, unit in (("thrp", Unit.REQUESTS_PER_S), ("thrs", Unit.SECTORS_PER_S))
    for order, group in (("setpoint", Group.ALWAYS), ("completed", Group.DYNAMIC))
]
