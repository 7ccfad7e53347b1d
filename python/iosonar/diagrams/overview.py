"""The overviews: demanded and delivered throughput over time."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from iosonar import units
from iosonar.diagrams.catalogue import Diagram, Group
from iosonar.diagrams.notes import common_notes
from iosonar.diagrams.parts import linear_axis, rate_row, rate_text, time_axis, windows_text
from iosonar.figures.model import Empty, Figure, Legend, LegendRow, Note, NoteKind, Role, Severity, Steps, Stroke, Unit
from iosonar.quantities.throughput import Throughput
from iosonar.study.requests import Study

RATE_COLUMNS = ("avg", "max")
QUANTITIES = {Unit.REQUESTS_PER_S: "Throughput", Unit.BYTES_PER_S: "Bandwidth"}
"""The quantity and its unit."""

AT_ONCE = "all requests have the same time, so there is no rate"
"""The reason for an empty diagram."""


def overview(study: Study, name: str, rank: str, unit: Unit) -> Figure | Empty:
    """Throughput demanded and delivered, in requests or bytes per second; no demand without the load's times."""
    if not study.span.requests:
        return Empty(name, "no requests")
    demand = study.throughput("scheduled_ns")
    found = []
    notes = list(common_notes(study))
    if study.requests.is_run:
        found.append(_line(study, study.throughput("completed_ns"), unit, Role.ACTUAL, "Delivered", Stroke.SOLID))
    if study.has_demand:
        found.append(_line(study, demand, unit, Role.DEMAND, "Demanded", Stroke.DASHED))
    if study.requests.is_run and study.has_demand:
        notes.append(_ratio(study))
    lines = [line for line in found if line is not None]
    if not lines:
        return Empty(name, AT_ONCE)
    most = max(float(np.nanmax(steps.y)) for steps, _ in lines)
    what = QUANTITIES[unit]
    if not study.requests.is_run:
        title = f"{what} demanded, all requests"
    else:
        title = f"{what}: demanded and delivered" if study.has_demand else what
    return Figure(
        name,
        rank,
        title,
        f"{study.of} · {windows_text(study.throughput('completed_ns') if study.requests.is_run else demand)}",
        time_axis(study, "Time"),
        linear_axis(what, unit, most),
        tuple(steps for steps, _ in lines),
        Legend(RATE_COLUMNS, tuple(row for _, row in reversed(lines))),
        tuple(notes),
    )


def rates(counts: NDArray[Any], windows: Throughput) -> NDArray[np.float64]:
    """Rates from the counts of windows; that of the partial window only if events cover half of it or more."""
    covered = np.diff(windows.edges_s)
    enough = covered >= 0.5 * windows.window_s
    if not enough.any():
        # The only window is partial. Events at a single time have no rate.
        enough = covered > 0
    return np.where(enough, counts / np.where(enough, covered, 1.0), math.nan)


def average(study: Study, values: NDArray[Any], windows: Throughput) -> float:
    """The average rate of a series from the first request's time to the last event, as in `quantities.work`."""
    duration = windows.end_s - (study.span.first_scheduled_s or 0.0)
    return float(values.sum()) / duration if duration > 0 else math.nan


def _line(
    study: Study, windows: Throughput, unit: Unit, role: Role, label: str, stroke: Stroke
) -> tuple[Steps, LegendRow] | None:
    if not windows.windows:
        return None
    counts: Mapping[int, NDArray[Any]] = windows.requests if unit is Unit.REQUESTS_PER_S else windows.bytes
    total = np.sum(list(counts.values()), axis=0)
    y = rates(total, windows)
    if np.isnan(y).all():
        return None
    steps = Steps(
        role, label, windows.edges_s, y, stroke, filled=role is Role.ACTUAL, partial=windows.windows - windows.whole
    )
    cells = (rate_text(unit, average(study, total, windows)), rate_text(unit, float(np.nanmax(y))))
    return steps, rate_row(role, label, cells, stroke)


def _ratio(study: Study) -> Note:
    """The duration of the run relative to that of the load."""
    demand = (study.span.last_scheduled_s or 0.0) - (study.span.first_scheduled_s or 0.0)
    actual = (study.span.last_completed_s or 0.0) - (study.span.first_scheduled_s or 0.0)
    ratio = actual / demand if demand > 0 else math.nan
    severity = Severity.WARNING if ratio > 1.05 else Severity.NEUTRAL
    text = f"Took {units.span(actual)} for {units.span(demand)} of load"
    if not 0.99 < ratio < 1.01:
        text += f": {units.number(ratio)} times as long"
    return Note(NoteKind.VERDICT, text, severity)


DIAGRAMS = [
    Diagram(name, rank, Group.ALWAYS, partial(overview, name=name, rank=rank, unit=unit))
    for name, rank, unit in (
        ("overview.thrp", "g000", Unit.REQUESTS_PER_S),
        ("overview.thrs", "g000", Unit.BYTES_PER_S),
    )
]
