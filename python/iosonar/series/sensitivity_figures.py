"""The figures of a sensitivity series: response time and queue length over the error of the issue times."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from iosonar import units
from iosonar.diagrams.parts import linear_axis, log_axis
from iosonar.figures.model import (
    Axis,
    Figure,
    Legend,
    LegendRow,
    Line,
    Note,
    Role,
    Scale,
    Stroke,
    Unit,
)
from iosonar.series.sensitivity import EXACT, Degradation, Row

LABELS = {Degradation.QUANTIZE: "quantised to X", Degradation.DELAY: "delayed by up to X"}
ROLES = {Degradation.QUANTIZE: Role.DEVICE_2, Degradation.DELAY: Role.DEVICE_1}

LOG_FROM = 10.0
"""Ratios that differ by more than this factor have a logarithmic axis."""


def figures(of: str, rows: Sequence[Row], notes: Sequence[Note]) -> tuple[Figure, ...]:
    """The response times, and the requests in flight."""
    response = [("mean", Stroke.SOLID, "ratio_mean"), ("p99", Stroke.DASHED, "ratio_p99")]
    return (
        _figure("sensitivity.response", "g01", "Response time with degraded issue times", of, rows, response, notes),
        _figure(
            "sensitivity.in-flight",
            "g02",
            "Requests in flight with degraded issue times",
            of,
            rows,
            [("mean", Stroke.SOLID, "ratio_in_flight")],
            notes,
        ),
    )


def _figure(
    name: str,
    rank: str,
    title: str,
    of: str,
    rows: Sequence[Row],
    values: Sequence[tuple[str, Stroke, str]],
    notes: Sequence[Note],
) -> Figure:
    layers, legend = [], []
    for how in Degradation:
        used = [row for row in rows if row.how is how]
        for word, stroke, value in values:
            x = np.array([row.time_s for row in used])
            y = np.array([getattr(row, value) for row in used])
            label = f"{LABELS[how]}: {word}"
            layers.append(Line(ROLES[how], label, x, y, stroke, marks=True))
            legend.append(
                LegendRow(ROLES[how], label, (units.number(float(y.min())), units.number(float(y.max()))), stroke)
            )
    every = np.concatenate([layer.y for layer in layers])
    low, high = float(min(every.min(), 1.0)), float(max(every.max(), 1.0))
    y_axis = (
        log_axis("Relative to the exact replay", Unit.TIMES, low * 0.95, high)
        if high / low > LOG_FROM
        else linear_axis("Relative to the exact replay", Unit.TIMES, high)
    )
    x_axis = _x_axis([row.time_s for row in rows if row.how])
    return Figure(
        name,
        rank,
        title,
        of,
        x_axis,
        y_axis,
        (Line(Role.FAINT, EXACT, np.array([x_axis.low, x_axis.high]), np.ones(2)), *layers),
        Legend(("least", "most"), (*legend, LegendRow(Role.FAINT, EXACT, (), Stroke.SOLID))),
        tuple(notes),
    )


def _x_axis(times: Sequence[float]) -> Axis:
    return Axis("X: multiple, or greatest delay", Unit.SECONDS, min(times) * 0.7, max(times) * 1.4, Scale.LOG)
