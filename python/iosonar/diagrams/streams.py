"""The streams of a program beside each other: their latencies and their throughput over time."""

from __future__ import annotations

from functools import partial

from iosonar.diagrams.catalogue import Diagram, Group
from iosonar.diagrams.devices import FEWEST_SLICES, MAX_SLICES, REQUESTS_IN_A_SLICE, percentile_lines
from iosonar.diagrams.parts import time_axis
from iosonar.diagrams.throughput import throughput_lines
from iosonar.figures.model import Empty, Figure, Role, Unit
from iosonar.quantities.bands import bands
from iosonar.quantities.density import Cells
from iosonar.quantities.distribution import pooled
from iosonar.quantities.throughput import throughput
from iosonar.study.requests import Study
from iosonar.study.slow_devices import SHARES

ROLES = (Role.DEVICE_2, Role.DEVICE_1, Role.DEVICE_3, Role.DEVICE_4, Role.DEVICE_5, Role.DEVICE_6)
"""The roles of streams, the busiest first."""

NO_PROGRAM = "no program made requests"


def latency_over_time(study: Study, name: str, rank: str) -> Figure | Empty:
    """A percentile of the latency of each stream over time."""
    groups = study.stream_groups
    if not groups:
        return Empty(name, NO_PROGRAM)
    known = dict(enumerate(study.streams))
    values = {
        number: found
        for number, group in enumerate(groups)
        if (found := pooled([known[stream].values.latency for stream in group.streams])).count
    }
    if not values:
        return Empty(name, "no latencies in the file")
    fewest = min(found.count for found in values.values())
    slices = int(min(max(fewest // REQUESTS_IN_A_SLICE, FEWEST_SLICES), MAX_SLICES))
    cells = Cells(study.first_s, max(study.last_s, study.first_s + 1e-9), slices)
    table = study.by_stream_group
    found_bands = {
        number: bands(rows, rows.issued_ns / 1e9, rows.latency_ns, cells, list(SHARES))
        for number in values
        for rows in [table.filter(table.series == number)]
    }
    title = "Latency of each stream over time"
    return percentile_lines(study, found_bands, looks(study), values, time_axis(study, "Issue time"), title, name, rank)


def rate_over_time(study: Study, name: str, rank: str) -> Figure | Empty:
    """The completed requests per second of each stream over time."""
    if not study.stream_groups:
        return Empty(name, NO_PROGRAM)
    table = study.by_stream_group
    found = throughput(table, table.completed_ns, study.window_s)
    if not found.windows:
        return Empty(name, "no request was completed")
    lines = [(*looks(study)[number], counts) for number, counts in sorted(found.requests.items())]
    return throughput_lines(study, lines, found, Unit.REQUESTS_PER_S, "Throughput of each stream", name, rank)


def looks(study: Study) -> dict[int, tuple[Role, str]]:
    """The role and the title of each group of streams."""
    return {
        number: (ROLES[number] if len(group.streams) == 1 else Role.FAINT, group.title)
        for number, group in enumerate(study.stream_groups)
    }


DIAGRAMS = [
    Diagram(name, "g01", Group.STREAMS, partial(build, name=name, rank="g01"))
    for name, build in (("streams.latency", latency_over_time), ("streams.rate", rate_over_time))
]
