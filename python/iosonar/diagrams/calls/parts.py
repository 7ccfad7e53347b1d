"""Shared by several families of diagrams of calls: axes, bars, distribution curves, notes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from iosonar.diagrams.parts import MIN_AXIS_S, floor_notes, log_axis
from iosonar.figures.model import Axis, Figure, Layer, Legend, LegendRow, Line, Note, NoteKind, Role, Stroke, Unit
from iosonar.quantities.calls.response import ecdf
from iosonar.quantities.calls.series import CallSeries
from iosonar.quantities.distribution import Distribution
from iosonar.study.calls import PLACEHOLDERS, CallStudy

ROLES = {
    CallSeries.READ: Role.READ,
    CallSeries.WRITE: Role.WRITE,
    CallSeries.SYNC: Role.PUSHED_WRITE,
    CallSeries.METADATA: Role.OTHER,
    CallSeries.OTHER: Role.FAINT,
}
ONE_SIDE = "for a single trace or run; `iosonar report` draws it"
"""Why a comparison leaves a diagram out."""

LEAST_S = 1e-7
"""The lowest time on an axis: clocks are not more accurate."""

PATH_LENGTH = 64
"""Characters of a path in a title."""

BAR = 0.8
"""The width of the bars of a category, of the distance between two."""


@dataclass(frozen=True)
class Curve:
    """A distribution with its look. `unit` is that of its values on the axis."""

    role: Role
    label: str
    values: Distribution
    cells: tuple[str, ...] = ()
    stroke: Stroke = Stroke.SOLID


def time_axis(study: CallStudy) -> Axis:
    """An axis from the origin to the last end of all sides."""
    return Axis("Time", Unit.TIMELINE, 0.0, max(study.seconds * 1.01, MIN_AXIS_S))


def share_axis(label: str) -> Axis:
    """An axis from 0 to 100 %, with room for the names of rules above."""
    return Axis(label, Unit.PERCENT, 0.0, 106.0)


def curves(
    curves_: Sequence[Curve], label: str, unit: Unit, least: float, scale: float
) -> tuple[Axis, tuple[Line, ...], tuple[LegendRow, ...]]:
    """Empirical distribution functions on a logarithmic axis; smaller values than `least` are at its lower end."""
    lines, rows = [], []
    for curve in curves_:
        x, y = ecdf(curve.values, scale)
        lines.append(Line(curve.role, curve.label, *_staircase(np.maximum(x, least), y), curve.stroke))
        rows.append(LegendRow(curve.role, curve.label, curve.cells, curve.stroke))
    every = np.concatenate([line.x for line in lines])
    smallest = min(float(curve.values.minimum) for curve in curves_) * scale
    axis = log_axis(label, unit, max(float(every.min()), least), max(float(every.max()), 10 * least), smallest)
    # To the frame: nothing is below the first value, and everything below the last.
    framed = [
        Line(
            line.role,
            line.label,
            np.concatenate([[axis.low], line.x, [axis.high]]),
            np.concatenate([[0.0], line.y, [100.0]]),
            line.stroke,
        )
        for line in lines
    ]
    return axis, tuple(framed), tuple(rows)


def _staircase(x: NDArray[np.float64], y: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A step up at each value."""
    return np.repeat(x, 2), np.concatenate([[0.0], np.repeat(y, 2)[:-1]])


def bars(
    values: NDArray[np.float64], place: int = 0, places: int = 1
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Edges and heights of bars at 0, 1, …: the `place`th of `places` beside each other, with gaps between."""
    width = BAR / places
    left = np.arange(len(values)) - BAR / 2 + place * width
    edges = np.column_stack([left, left + width]).ravel()
    heights = np.full(2 * len(values) - 1, np.nan)
    heights[::2] = values
    # Adjacent edges must increase, also without a gap between two bars.
    return edges, heights


def category_axis(label: str, names: Sequence[str]) -> Axis:
    """An axis with a name at each of 0, 1, …."""
    return Axis(
        label, Unit.RANK, -0.6, len(names) - 0.4, named=tuple((float(at), name) for at, name in enumerate(names))
    )


def short_path(path: str, length: int = PATH_LENGTH) -> str:
    """The end of a path, from a component on if possible."""
    if len(path) <= length:
        return path
    tail = path[-(length - 1) :]
    slash = tail.find("/")
    return f"…{tail[slash:] if 0 <= slash < length // 2 else tail}"


def info(text: str) -> Note:
    """A note below a diagram."""
    return Note(NoteKind.INFO, text)


def figure(
    study: CallStudy,
    name: str,
    rank: str,
    title: str,
    x: Axis,
    y: Axis,
    layers: Sequence[Layer],
    legend: Legend,
    notes: Sequence[Note] = (),
    of: str = "",
) -> Figure:
    """A figure of a study, with the notes of its files."""
    return Figure(
        name, rank, title, of or study.of, x, y, tuple(layers), legend, (*notes, *floor_notes(x, y), *_warnings(study))
    )


def unreal_times(study: CallStudy) -> str:
    """A sentence if the study shows times of a replay beside those that strace took, or beside placeholders."""
    first = study.first.calls.file
    if not any(side.is_run for side in study.sides) or not (first.is_by_strace or first.is_generated):
        return ""
    trace = Path(first.run.trace or first.name).name if study.first.is_run else first.name
    if first.is_generated:
        return f"the original, {trace}, {PLACEHOLDERS}"
    return f"strace took the times of the original, {trace}, and slowed its calls down"


def _warnings(study: CallStudy) -> tuple[Note, ...]:
    """What each diagram must say about the files."""
    from iosonar.figures.model import Severity

    found = [
        Note(NoteKind.WARNING, f"{side.calls.file.name} was cut short", Severity.WARNING)
        for side in study.sides
        if not side.calls.file.complete
    ]
    lost = [(side, side.calls.file.footer.counts.lost_events) for side in study.sides]
    found += [
        Note(NoteKind.WARNING, f"{side.calls.file.name}: the recorder lost {events:,} events", Severity.WARNING)
        for side, events in lost
        if events
    ]
    if slowed := unreal_times(study):
        found.append(Note(NoteKind.WARNING, f"{slowed}: not comparable with those of the replay", Severity.WARNING))
    stamps = [fake for side in study.sides if (fake := side.calls.file.run.fake)]
    return (*found, *(Note(NoteKind.STAMP, text, Severity.WARNING) for text in stamps))
