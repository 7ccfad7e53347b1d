"""Requests in flight and requests waiting, over time."""

from __future__ import annotations

from functools import partial

import numpy as np

from iosonar import units
from iosonar.diagrams.catalogue import Diagram, Group
from iosonar.diagrams.parts import ROLES, linear_axis, rate_row, time_axis
from iosonar.diagrams.study import Study
from iosonar.diagrams.throughput import highest
from iosonar.figures.model import Empty, Figure, Legend, Role, Steps, Unit
from iosonar.quantities.density import Cells
from iosonar.quantities.in_flight import mean_levels, peaks

SMOOTH_SLICES = 60

KINDS = {
    "latency": ("issued_ns", "completed_ns", "In flight", "Requests in flight"),
    "delay": ("intended_ns", "issued_ns", "Waiting", "Requests due but not issued"),
}
"""From which time of a request to which it counts, the axis' label and the title."""


def flying(study: Study, kind: str, name: str, rank: str) -> Figure | Empty:
    """The mean level of each series in slices as fine as the picture, and the peaks of all together."""
    across, _ = study.options.size.cells
    return _levels(study, kind, name, rank, across, with_peaks=True)


def smooth(study: Study, kind: str, name: str, rank: str) -> Figure | Empty:
    """The same in few slices, so that trends are seen."""
    return _levels(study, kind, name, rank, SMOOTH_SLICES, with_peaks=False)


def _levels(study: Study, kind: str, name: str, rank: str, slices: int, *, with_peaks: bool) -> Figure | Empty:
    begin, end, label, title = KINDS[kind]
    if not study.span.issued:
        return Empty(name, "no request was issued")
    table = study.table.filter(study.table.issued_ns.notnull())
    axis = time_axis(study, "Time")
    across = Cells(study.first_s, max(study.last_s, study.first_s + 1e-6), slices)
    found = mean_levels(table, table[begin], table[end], across)
    # Rounding leaves a few billionths of a request where there is none.
    lines = [(ROLES[series], series.title, np.maximum(mean, 0.0)) for series, mean in found.mean.items()]
    total = np.sum([y for _, _, y in lines], axis=0)
    if len(lines) > 1:
        lines.insert(0, (Role.ALL, "All", total))
    layers = [Steps(role, label_, found.edges_s, y) for role, label_, y in lines]
    rows = [
        rate_row(role, label_, (units.count(float(y.mean())), units.count(highest(y)))) for role, label_, y in lines
    ]
    if with_peaks:
        peak = peaks(table, table[begin], table[end], across)
        layers.insert(0, Steps(Role.FAINT, "Peak", found.edges_s, peak, filled=True))
        rows.append(rate_row(Role.FAINT, "Peak of all", ("", units.count(highest(peak)))))
    slice_text = units.seconds((across.high - across.low) / slices)
    return Figure(
        name,
        rank,
        title,
        f"{study.of} · mean over slices of {slice_text}",
        axis,
        linear_axis(label, Unit.REQUESTS, max(highest(layer.y) for layer in layers)),
        tuple(layers),
        Legend(("avg", "max"), tuple(rows)),
        study.notes,
    )


DIAGRAMS = [
    Diagram(name, rank, Group.DYNAMIC, partial(build, kind=kind, name=name, rank=rank))
    for name, rank, build, kind in (
        ("latency.flying", "g08", flying, "latency"),
        ("smooth.latency.flying", "g08", smooth, "latency"),
        ("delay.flying", "g09", flying, "delay"),
        ("smooth.delay.flying", "g09", smooth, "delay"),
    )
]
