"""Throughput of each series, as scheduled and as completed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from iosonar.diagrams.catalogue import Diagram, Group
from iosonar.diagrams.notes import common_notes
from iosonar.diagrams.overview import AT_ONCE, QUANTITIES, RATE_COLUMNS, average, rates
from iosonar.diagrams.parts import linear_axis, look, rate_row, rate_text, time_axis, windows_text
from iosonar.figures.model import Empty, Figure, Layer, Legend, LegendRow, Role, Steps, Unit
from iosonar.quantities.throughput import Throughput
from iosonar.study.requests import Study

ORDERS = {"setpoint": ("scheduled_ns", "demanded"), "completed": ("completed_ns", "delivered")}


def throughput_by_series(study: Study, name: str, rank: str, unit: Unit, order: str) -> Figure | Empty:
    """A line for each series and one for the total, in requests or bytes per second."""
    column, words = ORDERS[order]
    found = study.throughput(column)
    if not found.windows:
        return Empty(name, "no request was completed" if order == "completed" else "no requests")
    counts: Mapping[int, NDArray[Any]] = found.requests if unit is Unit.REQUESTS_PER_S else found.bytes
    lines = [(*look(study, series), counts[series]) for series in sorted(counts)]
    if len(lines) > 1:
        lines.insert(0, (Role.ALL, "All", np.sum(list(counts.values()), axis=0)))
    return throughput_lines(study, lines, found, unit, f"{QUANTITIES[unit]} {words}", name, rank)


def throughput_lines(
    study: Study,
    lines: Sequence[tuple[Role, str, NDArray[Any]]],
    found: Throughput,
    unit: Unit,
    title: str,
    name: str,
    rank: str,
) -> Figure | Empty:
    """A line for each series, with its counts by window. A total comes first, but is last in the legend."""
    if all(np.isnan(rates(counts, found)).all() for _, _, counts in lines):
        return Empty(name, AT_ONCE)
    quantity = QUANTITIES[unit]
    layers: list[Layer] = []
    rows: list[LegendRow] = []
    for role, label, values in lines:
        y = rates(values, found)
        layers.append(Steps(role, label, found.edges_s, y, partial=found.windows - found.whole))
        rows.append(
            rate_row(
                role,
                label,
                (rate_text(unit, average(study, values, found)), rate_text(unit, highest(y))),
            )
        )
    if lines[0][0] is Role.ALL:
        rows = [*rows[1:], rows[0]]
    return Figure(
        name,
        rank,
        title,
        f"{study.of} · {windows_text(found)}",
        time_axis(study, "Time"),
        linear_axis(quantity, unit, max(highest(layer.y) for layer in layers if isinstance(layer, Steps))),
        tuple(layers),
        Legend(RATE_COLUMNS, tuple(rows)),
        common_notes(study),
    )


def highest(y: NDArray[np.float64]) -> float:
    """The largest value, ignoring NaN; zero without values."""
    return float(np.nanmax(y)) if not np.isnan(y).all() else 0.0


DIAGRAMS = [
    Diagram(
        f"{kind}.{order}",
        "g00",
        group,
        partial(throughput_by_series, name=f"{kind}.{order}", rank="g00", unit=unit, order=order),
    )
    for kind, unit in (("thrp", Unit.REQUESTS_PER_S), ("thrs", Unit.BYTES_PER_S))
    for order, group in (("setpoint", Group.ALWAYS), ("completed", Group.DYNAMIC))
]
