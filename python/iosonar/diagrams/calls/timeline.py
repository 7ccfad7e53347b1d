"""Diagrams over time: the response time of each call, and calls per second."""

from __future__ import annotations

from functools import partial

import numpy as np

from iosonar import units
from iosonar.diagrams.calls.catalogue import CallDiagram, Part
from iosonar.diagrams.calls.parts import LEAST_S, ONE_SIDE, ROLES, figure, info, time_axis
from iosonar.diagrams.parts import cells_of, linear_axis, log_axis, measure_row, shares_of, value_columns
from iosonar.figures.model import Cloud, CloudPart, Empty, Figure, Legend, LegendRow, Role, Steps, Stroke, Unit
from iosonar.quantities.calls.series import CallSeries
from iosonar.quantities.density import density
from iosonar.study.calls import CallSide, CallStudy


def response_over_time(study: CallStudy, name: str, rank: str) -> Figure | Empty:
    """The response time of each call over its begin: a sonar diagram of calls."""
    if not study.is_single:
        return Empty(name, ONE_SIDE)
    side = study.first
    if not side.response:
        return Empty(name, "no call returned")
    across, up = study.options.size.cells(side.extent.calls)
    x = time_axis(study)
    all_ = side.pooled_response
    y = log_axis(
        "Response time",
        Unit.SECONDS,
        max(all_.minimum / 1e9, LEAST_S),
        max(all_.maximum / 1e9, 1e-6),
        all_.minimum / 1e9,
    )
    cells = density(side.table, side.begin_s, side.table.duration_ns / 1e9, cells_of(x, across), cells_of(y, up))
    parts = tuple(
        CloudPart(ROLES[CallSeries(series)], CallSeries(series).title, found.columns, found.rows, found.counts)
        for series, found in sorted(cells.items(), reverse=True)
    )
    rows = tuple(
        measure_row(ROLES[CallSeries(series)], CallSeries(series).title, found, shares_of(study))
        for series, found in sorted(side.response.items())
    )
    return figure(
        study,
        name,
        rank,
        "Response time over time",
        x,
        y,
        (Cloud(across, up, parts, noun="calls"),),
        Legend(value_columns(study, "calls"), rows),
    )


def load_over_time(study: CallStudy, name: str, rank: str) -> Figure | Empty:
    """Calls per second over time, of each side."""
    layers, rows = [], []
    for side in study.sides:
        if not side.extent.calls:
            continue
        found = side.load(study.window_s)
        role = Role.ACTUAL if study.is_single else side.role
        layers.append(Steps(role, side.name, found.edges_s, found.drawn, filled=not side.is_run or study.is_single))
        rows.append(LegendRow(role, side.name, _statistics(side, study.window_s), Stroke.SOLID))
    most = max(float(np.nanmax(layer.y)) for layer in layers)
    return figure(
        study,
        name,
        rank,
        "Rate of calls",
        time_axis(study),
        linear_axis("Rate", Unit.CALLS_PER_S, most),
        layers,
        Legend(("median", "mean", "max", "CV"), tuple(rows)),
        [info(f"Windows of {units.span(study.window_s)}. CV: standard deviation divided by mean")],
    )


def _statistics(side: CallSide, window_s: float) -> tuple[str, ...]:
    found = side.load(window_s)
    return (
        units.count(found.median),
        units.count(found.mean),
        units.count(found.maximum),
        units.percent(found.variation),
    )


DIAGRAMS = [
    CallDiagram(name, rank, Part.TIME, partial(build, name=name, rank=rank))
    for name, rank, build in (
        ("response.realtime", "f01", response_over_time),
        ("load.realtime", "f02", load_over_time),
    )
]
