"""Working sets over time, and how far they are spread over the device."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from numpy.typing import NDArray

from iosonar import units
from iosonar.diagrams.catalogue import Diagram, Group
from iosonar.diagrams.parts import log_axis, rate_row, time_axis
from iosonar.diagrams.study import Study
from iosonar.figures.model import Axis, Empty, Figure, Legend, Line, Role, Scale, Unit
from iosonar.quantities.distance import distances, reaches
from iosonar.quantities.working_set import Grid, WorkingSets, grid_for, working_sets

SECTOR_BYTES = 512
ROLES = (Role.ORDER_1, Role.ORDER_2, Role.ORDER_3, Role.ORDER_4, Role.ORDER_5)


def sizes(study: Study, name: str, rank: str, scale: Scale) -> Figure | Empty:
    """The size of the working set, a line for each window."""
    found = _working_sets(study)
    lines = {window: y * SECTOR_BYTES for window, y in found.sectors.items() if _any(y)}
    if not lines:
        return Empty(name, "no request moves data")
    most = max(float(np.nanmax(y)) for y in lines.values())
    least = min(float(np.nanmin(y[y > 0])) for y in lines.values() if (y > 0).any())
    y_axis = _byte_axis("Working set", least, most, scale)
    layers, rows = [], []
    for role, (window, y) in zip(ROLES, lines.items(), strict=False):
        label = window_text(window)
        layers.append(Line(role, label, found.grid.times_s, _positive(y, scale)))
        cells = (
            units.binary_bytes(float(np.nanmean(y))),
            units.binary_bytes(float(np.nanmax(y))),
            units.count(float(np.nanmax(y)) / SECTOR_BYTES),
        )
        rows.append(rate_row(role, label, cells))
    return Figure(
        name,
        rank,
        "Working set: what was touched within the last δ",
        study.of,
        time_axis(study, "Time"),
        y_axis,
        tuple(layers),
        Legend(("avg", "max", "sectors"), tuple(rows)),
        study.notes,
    )


def spread(study: Study, name: str, rank: str) -> Figure | Empty:
    """From the lowest to the highest sector of each working set; for `avg_dist` divided by its size."""
    found = _working_sets(study)
    lines: dict[float, NDArray[np.float64]] = {}
    for window, size in found.sectors.items():
        y = _distance(study, found.grid, window)
        if name == "avg_dist":
            y = y / np.where(size > 0, size, np.nan)
        if _any(y):
            lines[window] = y
    if not lines:
        return Empty(name, "no request moves data")
    most = max(float(np.nanmax(y)) for y in lines.values())
    least = (
        min(float(np.nanmin(np.where(y > 0, y, np.nan))) for y in lines.values() if (y > 0).any()) if most > 0 else 1.0
    )
    title, label = (
        ("Distance from the lowest to the highest sector", "Distance")
        if name == "sum_dist"
        else ("Spread: distance for each sector touched", "Distance for each sector touched")
    )
    rows = [
        rate_row(role, window_text(window), (units.count(float(np.nanmean(y))), units.count(float(np.nanmax(y)))))
        for role, (window, y) in zip(ROLES, lines.items(), strict=False)
    ]
    return Figure(
        name,
        rank,
        f"{title} within δ",
        study.of,
        time_axis(study, "Time"),
        log_axis(label, Unit.SECTORS, least, max(most, 1.0)),
        tuple(
            Line(role, window_text(window), found.grid.times_s, _positive(y, Scale.LOG))
            for role, (window, y) in zip(ROLES, lines.items(), strict=False)
        ),
        Legend(("avg", "max"), tuple(rows)),
        study.notes,
    )


def window_text(window_s: float) -> str:
    """How legends call a window."""
    return "δ = ∞" if math.isinf(window_s) else f"δ = {units.seconds(window_s)}"


def _working_sets(study: Study) -> WorkingSets:
    """Of all windows that the time is long enough for."""
    duration = study.span.last_intended_s or 0.0
    duration -= study.span.first_intended_s or 0.0
    windows = [window for window in study.options.windows_s if math.isinf(window) or window < duration]
    return study.once("working sets", lambda: working_sets(study.table, _grid(study), windows))


def _grid(study: Study) -> Grid:
    return grid_for(study.span.first_intended_s or 0.0, study.span.last_intended_s or 0.0, study.options.windows_s)


def _distance(study: Study, grid: Grid, window_s: float) -> NDArray[np.float64]:
    window = grid.count if math.isinf(window_s) else round(window_s / grid.step_s)
    found = study.once("reaches", lambda: reaches(study.table, grid))
    return study.once(("distance", window), lambda: distances(found, grid, window))


def _byte_axis(label: str, least: float, most: float, scale: Scale) -> Axis:
    if scale is Scale.LINEAR:
        return Axis(label, Unit.BYTES, 0.0, most * 1.06)
    low, high = 2.0 ** math.floor(math.log2(least)), 2.0 ** math.ceil(math.log2(most * 1.05))
    return Axis(label, Unit.BYTES, low, high, Scale.LOG)


def _any(y: NDArray[np.float64]) -> bool:
    return bool((np.nan_to_num(y) > 0).any())


def _positive(y: NDArray[np.float64], scale: Scale) -> NDArray[np.float64]:
    """On a logarithmic axis zero is a gap."""
    return np.where(y > 0, y, np.nan) if scale is Scale.LOG else y


DIAGRAMS = [
    Diagram("ws_log", "g30", Group.STATIC, partial(sizes, name="ws_log", rank="g30", scale=Scale.LOG)),
    Diagram("ws_lin", "g31", Group.STATIC, partial(sizes, name="ws_lin", rank="g31", scale=Scale.LINEAR)),
    Diagram("sum_dist", "g32", Group.STATIC, partial(spread, name="sum_dist", rank="g32")),
    Diagram("avg_dist", "g33", Group.STATIC, partial(spread, name="avg_dist", rank="g33")),
]
