"""The overviews: what was demanded and what was delivered, over time."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from numpy.typing import NDArray

from iosonar import units
from iosonar.diagrams.catalogue import Diagram, Group
from iosonar.diagrams.parts import linear_axis, rate_row, time_axis
from iosonar.diagrams.study import Study
from iosonar.figures.model import Empty, Figure, Legend, LegendRow, Mood, Note, NoteKind, Role, Steps, Stroke, Unit
from iosonar.quantities.throughput import Throughput

RATE_COLUMNS = ("avg", "max")


def overview(study: Study, name: str, rank: str, unit: Unit) -> Figure | Empty:
    """Demanded and actual throughput, in requests or sectors per second."""
    if not study.span.requests:
        return Empty(name, "no requests")
    demand = study.throughput("intended_ns")
    found = [_line(demand, unit, Role.DEMAND, "Demand", Stroke.DASHED)]
    notes = list(study.notes)
    if study.requests.is_run:
        actual = study.throughput("completed_ns")
        found.insert(0, _line(actual, unit, Role.ACTUAL, "Actual", Stroke.SOLID))
        notes.append(_ratio(study))
    lines = [line for line in found if line is not None]
    most = max((float(np.nanmax(steps.y)) for steps, _ in lines), default=0.0)
    what = "Throughput"
    return Figure(
        name,
        rank,
        f"{what}: demand and actual" if len(lines) > 1 else f"{what} demanded",
        f"{study.of} · windows of {units.seconds(study.window_s)}",
        time_axis(study, "Time"),
        linear_axis(what, unit, most),
        tuple(steps for steps, _ in lines),
        Legend(RATE_COLUMNS, tuple(row for _, row in reversed(lines))),
        tuple(notes),
    )


def rates(counts: NDArray[np.int64], windows: Throughput) -> NDArray[np.float64]:
    """Counts of each window per second; the partial window by the part that events cover, if that is half or more."""
    covered = np.diff(windows.edges_s)
    enough = covered >= 0.5 * windows.window_s
    return np.where(enough, counts / np.where(enough, covered, 1.0), math.nan)


def _line(windows: Throughput, unit: Unit, role: Role, label: str, stroke: Stroke) -> tuple[Steps, LegendRow] | None:
    if not windows.windows:
        return None
    counts = windows.requests if unit is Unit.REQUESTS_PER_S else windows.sectors
    total = np.sum(list(counts.values()), axis=0)
    y = rates(total, windows)
    if np.isnan(y).all():
        y = total / np.maximum(np.diff(windows.edges_s), 1e-9)
    duration = windows.end_s - windows.edges_s[0]
    average = float(total.sum()) / duration if duration > 0 else math.nan
    # What a part of a window has for a rate is no maximum, unless there is nothing else.
    whole = y[: windows.whole] if windows.whole and np.isfinite(y[: windows.whole]).any() else y
    steps = Steps(
        role, label, windows.edges_s, y, stroke, filled=role is Role.ACTUAL, partial=windows.windows - windows.whole
    )
    return steps, rate_row(role, label, (units.count(average), units.count(float(np.nanmax(whole)))), stroke)


def _ratio(study: Study) -> Note:
    """How long it took, against how long it should have."""
    demand = (study.span.last_intended_s or 0.0) - (study.span.first_intended_s or 0.0)
    actual = (study.span.last_completed_s or 0.0) - (study.span.first_intended_s or 0.0)
    ratio = actual / demand if demand > 0 else math.nan
    mood = Mood.WARNING if ratio > 1.05 else Mood.NEUTRAL
    text = f"Took {units.seconds(actual, 5)} for {units.seconds(demand, 5)} of load: ratio {units.number(ratio, 5)}"
    return Note(NoteKind.VERDICT, text, mood)


DIAGRAMS = [
    Diagram(name, rank, Group.ALWAYS, partial(overview, name=name, rank=rank, unit=unit))
    for name, rank, unit in (
        ("overview.thrp", "g000", Unit.REQUESTS_PER_S),
        ("overview.thrs", "g000", Unit.SECTORS_PER_S),
    )
]
