"""Working sets over time, and their spread over the device."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from iosonar import units
from iosonar.diagrams.catalogue import Diagram, Group
from iosonar.diagrams.notes import common_notes
from iosonar.diagrams.parts import log_axis, rate_row, time_axis
from iosonar.figures.model import Axis, Empty, Figure, Legend, Line, Note, NoteKind, Role, Scale, Unit
from iosonar.quantities.distance import distances, reaches
from iosonar.quantities.working_set import Grid, WorkingSets, grid_for, nanoseconds, working_sets
from iosonar.study.requests import Study

SECTOR_BYTES = 512
SLICES = 300
"""Slices of the whole duration: for windows shorter than a slice, means are drawn."""

MIN_LATE = 50
"""A line that starts later than this fraction of the duration has an average of another time."""

ROLES = (Role.ORDER_1, Role.ORDER_2, Role.ORDER_3, Role.ORDER_4, Role.ORDER_5)


def sizes(study: Study, name: str, rank: str, scale: Scale) -> Figure | Empty:
    """The size of the working set, a line for each window."""
    found = _working_sets(study)
    lines = {window: y * SECTOR_BYTES for window, y in found.sectors.items() if _any(y)}
    if not lines:
        return Empty(name, "no request transfers data")
    drawn = {window: drawn_of(found.grid, window, y) for window, y in lines.items()}
    least, most = _positive_range(drawn)
    y_axis = _byte_axis("Working set", least, most, scale)
    layers, rows = [], []
    for role, (window, y) in zip(ROLES, lines.items(), strict=False):
        label = window_text(window)
        x_drawn, y_drawn = drawn[window]
        layers.append(Line(role, label, x_drawn, _positive(y_drawn, scale)))
        cells = (
            units.binary_bytes(float(np.nanmean(y))),
            units.binary_bytes(float(np.nanmax(y))),
        )
        rows.append(rate_row(role, label, cells))
    return Figure(
        name,
        rank,
        f"Working set: data accessed within the last δ{' (logarithmic)' if scale is Scale.LOG else ''}",
        _of(study, found.grid, lines),
        time_axis(study, "Time"),
        y_axis,
        tuple(layers),
        Legend(("avg", "max"), tuple(rows)),
        (*common_notes(study), *_start_notes(found.grid, lines)),
    )


def spread(study: Study, name: str, rank: str) -> Figure | Empty:
    """The distance from the lowest to the highest sector of each working set; for `avg_dist` divided by its size."""
    found = _working_sets(study)
    ratio = name == "avg_dist"
    lines: dict[float, NDArray[np.float64]] = {}
    for window, size in found.sectors.items():
        y = _distance(study, found.grid, window)
        y = y / np.where(size > 0, size, np.nan) if ratio else y * SECTOR_BYTES
        if _any(y):
            lines[window] = y
    if not lines:
        return Empty(name, "no request transfers data")
    drawn = {window: drawn_of(found.grid, window, y) for window, y in lines.items()}
    least, most = _positive_range(drawn)
    title, text = (
        ("Spread: distance divided by working set size", _times)
        if ratio
        else ("Distance from the lowest to the highest byte accessed", units.binary_bytes)
    )
    rows = [
        rate_row(role, window_text(window), (text(float(np.nanmean(y))), text(float(np.nanmax(y)))))
        for role, (window, y) in zip(ROLES, lines.items(), strict=False)
    ]
    return Figure(
        name,
        rank,
        f"{title}, within δ",
        _of(study, found.grid, lines),
        time_axis(study, "Time"),
        log_axis("Spread", Unit.TIMES, least, max(most, 1.0))
        if ratio
        else _byte_axis("Distance", least, max(most, least), Scale.LOG),
        tuple(
            Line(role, window_text(window), x, _positive(y, Scale.LOG))
            for role, (window, (x, y)) in zip(ROLES, drawn.items(), strict=False)
        ),
        Legend(("avg", "max"), tuple(rows)),
        (*common_notes(study), *_start_notes(found.grid, lines)),
    )


def drawn_of(grid: Grid, window_s: float, y: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Times and values to draw: the samples, or their means over time slices that are longer than the window.

    Samples that have nothing in common with their neighbours would fill the picture from top to bottom.
    """
    together = _samples_together(grid)
    if together < 2 or window_s * 1e9 >= together * grid.step_ns:
        return grid.times_s, y
    first = np.arange(0, grid.count, together)
    known = np.add.reduceat(np.isfinite(y).astype(np.float64), first)
    mean = np.add.reduceat(np.nan_to_num(y), first) / np.where(known > 0, known, np.nan)
    return np.add.reduceat(grid.times_s, first) / np.add.reduceat(np.ones(grid.count), first), mean


def _samples_together(grid: Grid) -> int:
    """The number of samples in a slice."""
    return grid.count // SLICES


def _positive_range(drawn: dict[float, tuple[NDArray[np.float64], NDArray[np.float64]]]) -> tuple[float, float]:
    """The smallest and largest positive values; 1 and 0 without any."""
    every = np.concatenate([y for _, y in drawn.values()])
    above = every[every > 0]
    return (float(above.min()), float(above.max())) if len(above) else (1.0, 0.0)


def _times(value: float) -> str:
    return f"{units.count(value)} ×"


def window_text(window_s: float) -> str:
    """The name of a window in legends."""
    return "δ = ∞" if math.isinf(window_s) else f"δ = {units.span(window_s)}"


def _working_sets(study: Study) -> WorkingSets:
    """The working sets of all windows that fit into the duration."""
    first, last = _scheduled_ns(study)
    windows = [window for window in study.options.windows_s if math.isinf(window) or window * 1e9 < last - first]
    return study.cached("working sets", lambda: working_sets(study.table, grid_for(first, last, windows), windows))


def _scheduled_ns(study: Study) -> tuple[int, int]:
    return study.span.first_scheduled_ns or 0, study.span.last_scheduled_ns or 0


def _distance(study: Study, grid: Grid, window_s: float) -> NDArray[np.float64]:
    window = nanoseconds(window_s)
    found = study.cached("reaches", lambda: reaches(study.table, grid))
    rest = window % grid.step_ns if window else 0
    # The remaining part of a cell is computed separately.
    partial = study.cached(("reaches", rest), lambda: reaches(study.table, grid, rest)) if rest else None
    return study.cached(("distance", window), lambda: distances(found, grid, window, partial))


def _of(study: Study, grid: Grid, windows: Iterable[float]) -> str:
    text = f"{study.of} · sampled every {units.span(grid.step_ns / 1e9)}"
    slice_s = _samples_together(grid) * grid.step_ns / 1e9
    short = [window for window in windows if window < slice_s] if _samples_together(grid) > 1 else []
    if not short:
        return text
    return f"{text}; up to {window_text(max(short))}, means over {units.span(slice_s)}"


def _start_notes(grid: Grid, windows: Iterable[float]) -> tuple[Note, ...]:
    """Why averages of different windows are not of the same time, if they differ visibly."""
    latest = max(grid.unfilled(nanoseconds(window)) for window in windows)
    if latest * MIN_LATE < grid.count:
        return ()
    return (
        Note(NoteKind.INFO, "A line starts when its δ has passed (δ = ∞: at once): averages cover different times"),
    )


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
