"""Requests in flight and requests waiting, over time."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from iosonar import units
from iosonar.diagrams.catalogue import Diagram, Group
from iosonar.diagrams.notes import common_notes
from iosonar.diagrams.parts import linear_axis, log_axis, look, rate_row, time_axis
from iosonar.diagrams.throughput import highest
from iosonar.figures.model import Axis, Empty, Figure, Legend, Role, Steps, Unit
from iosonar.quantities.in_flight import Events, Slices, events, mean_levels, peaks
from iosonar.study.requests import Study

if TYPE_CHECKING:
    import ibis.expr.types as ir

SMOOTH_SLICES = 60

HIGH_PEAK = 20
"""A peak so many times as high as the level of half of the busy time needs a logarithmic axis."""

MAX_RANGE = 1e4
"""The greatest ratio of the ends of that axis."""

KINDS = {
    "latency": ("issued_ns", "completed_ns", "In flight", "Requests in flight"),
    "delay": ("scheduled_ns", "issued_ns", "Waiting", "Requests due but not yet issued"),
}
"""Start and end column of the level, the axis label and the title."""


def flying(study: Study, kind: str, name: str, rank: str) -> Figure | Empty:
    """The mean level of each series in slices of the picture's resolution, and the peaks of the total."""
    return _levels(study, kind, name, rank, with_peaks=True)


def smooth(study: Study, kind: str, name: str, rank: str) -> Figure | Empty:
    """The same in few slices, to show trends."""
    return _levels(study, kind, name, rank, with_peaks=False)


def _levels(study: Study, kind: str, name: str, rank: str, *, with_peaks: bool) -> Figure | Empty:
    begin, end, label, title = KINDS[kind]
    if not study.span.issued:
        return Empty(name, "no request was issued")
    begins, ends = (_events(study, column, begin, end) for column in (begin, end))
    axis = time_axis(study, "Time")
    width_ns = begins.across.width_ns
    found = mean_levels(begins, ends)
    if not with_peaks:
        together = max(study.options.size.slices // SMOOTH_SLICES, 1)
        found = found.joined(together)
        width_ns *= together
    # Rounding leaves a few billionths of a request instead of zero.
    lines = [(*look(study, series), np.maximum(mean, 0.0)) for series, mean in found.mean.items()]
    total = np.sum([y for _, _, y in lines], axis=0)
    if len(lines) > 1:
        lines.insert(0, (Role.ALL, "All", total))
    layers = [Steps(role, label_, found.edges_s, y) for role, label_, y in lines]
    rows = [
        rate_row(role, label_, (units.count(float(y.mean())), units.count(highest(y)))) for role, label_, y in lines
    ]
    # The highest mean depends on the width of the slices; a peak does not.
    columns: tuple[str, ...] = ("avg", "highest mean")
    if with_peaks:
        peak = peaks(_present(study, begin, end), begin, end, begins.across)
        layers.insert(0, Steps(Role.FAINT, "Peak, all requests", found.edges_s, peak, filled=True))
        rows.append(rate_row(Role.FAINT, "Peak, all requests", ("", "", units.count(highest(peak)))))
        columns = (*columns, "peak")
    return Figure(
        name,
        rank,
        title if with_peaks else f"{title}, smoothed",
        f"{study.of} · mean over slices of {units.span(width_ns / 1e9)}",
        axis,
        _axis(label, total, [layer.y for layer in layers]),
        tuple(layers),
        Legend(columns, tuple(rows)),
        common_notes(study),
    )


def _axis(label: str, total: NDArray[np.float64], drawn: Sequence[NDArray[np.float64]]) -> Axis:
    """A linear axis; a logarithmic one if short peaks would leave no room for the level of most of the time."""
    most = max(highest(y) for y in drawn)
    some = total[total > 0]
    if not len(some) or most < HIGH_PEAK * float(np.median(some)):
        return linear_axis(label, Unit.REQUESTS, most)
    least = max(float(np.quantile(some, 0.2)), most / MAX_RANGE)
    return log_axis(label, Unit.REQUESTS, least, most)


def _events(study: Study, column: str, begin: str, end: str) -> Events:
    """A time of all issued requests, in slices of the picture's resolution, several to each slice of the smooth one."""
    slices = study.options.size.slices
    # Each smooth slice consists of the same number of fine ones.
    cells = Slices.of(study.first_ns, study.last_ns, slices, max(slices // SMOOTH_SLICES, 1))
    table = _present(study, begin, end)
    return study.cached(("events", column, begin, slices), lambda: events(table, table[column], cells))


def _present(study: Study, begin: str, end: str) -> ir.Table:
    """The issued requests. Of a window, also those before and after it that are in flight, or waiting, at its times."""
    table = study.present.filter(study.present.issued_ns.notnull())
    if not study.is_part:
        return table
    is_later = table[end].isnull() | (table[end] >= study.first_ns)
    return table.filter(is_later & (table[begin] <= study.last_ns))


DIAGRAMS = [
    Diagram(name, rank, Group.DYNAMIC, partial(build, kind=kind, name=name, rank=rank))
    for name, rank, build, kind in (
        ("latency.flying", "g08", flying, "latency"),
        ("smooth.latency.flying", "g08", smooth, "latency"),
        ("delay.flying", "g09", flying, "delay"),
        ("smooth.delay.flying", "g09", smooth, "delay"),
    )
]
