"""Properties of a load: sizes and positions of its requests, turns, and the popularity of pages."""

from __future__ import annotations

import math
from collections import Counter
from functools import partial

import numpy as np

from iosonar import units
from iosonar.diagrams.catalogue import Diagram, Group
from iosonar.diagrams.notes import common_notes
from iosonar.diagrams.parts import ROLES, count_axis, linear_axis, log_axis, look, rate_row, time_axis
from iosonar.diagrams.throughput import highest
from iosonar.figures.model import (
    NEAR_RIGHT,
    Axis,
    Direction,
    Empty,
    Figure,
    Layer,
    Legend,
    Role,
    Rule,
    Scale,
    Steps,
    Unit,
)
from iosonar.quantities.positions import places, popularity, sizes
from iosonar.quantities.series import Series
from iosonar.quantities.throughput import window_for
from iosonar.quantities.turns import turns
from iosonar.study.requests import Study

SECTOR_BYTES = 512
PAGE_BYTES = 4096
QUANTILES = (64, 32, 16, 8, 4, 2)
"""In ascending order of pages."""

NAME_WIDTH = 0.05
"""The share of the axis that a name takes in the narrowest picture."""

LABEL_ROOM = 2
"""Factor between the tallest line and the top of a logarithmic axis, which leaves room for a rule's name."""

TURNS_WINDOW_S = 1.0
MAX_ENDS = 4
"""The most device sizes that are marked, the largest ones."""


def request_sizes(study: Study, name: str, rank: str) -> Figure | Empty:
    """The number of requests by size."""
    found = sizes(study.table)
    if not found:
        return Empty(name, "no request transfers data")
    most = max(max(counts) for counts in found.values())
    # Ten bins per decade, none without an integer; and an empty one after the largest request.
    edges = np.unique(np.ceil(10.0 ** (np.arange(0, math.ceil(math.log10(most + 1) * 10) + 2) / 10)))
    layers: list[Layer] = []
    rows = []
    for role, label, counts in _with_all(found):
        lengths, n = np.array(list(counts)), np.array(list(counts.values()))
        y = np.histogram(lengths, edges, weights=n)[0]
        layers.append(Steps(role, label, edges * SECTOR_BYTES, y.astype(np.float64)))
        usual = int(lengths[np.argmax(n)])
        cells = (
            units.count(int(n.sum())),
            units.binary_bytes(float((lengths * n).sum() / n.sum()) * SECTOR_BYTES),
            units.binary_bytes(usual * SECTOR_BYTES),
            units.binary_bytes(int(lengths.max()) * SECTOR_BYTES),
        )
        rows.append(rate_row(role, label, cells))
    tallest = max(float(np.nanmax(layer.y)) for layer in layers if isinstance(layer, Steps))
    return Figure(
        name,
        rank,
        "Request sizes",
        study.of,
        Axis("Size", Unit.BYTES, SECTOR_BYTES, float(edges[-1]) * SECTOR_BYTES, Scale.LOG),
        count_axis("Requests", Unit.REQUESTS, tallest),
        tuple(layers),
        Legend(("requests", "avg", "most frequent", "max"), (*rows[1:], *rows[:1])),
        common_notes(study),
    )


def request_positions(study: Study, name: str, rank: str) -> Figure | Empty:
    """The number of requests by start position on the device, with the end of the device."""
    ends = _device_sectors(study)
    found = places(study.table, max(ends, default=0))
    if found is None:
        return Empty(name, "no request transfers data")
    size = found.sectors_per_bin
    last = max(max(counts) for counts in found.requests.values())
    count = max(last + 1, math.ceil(max(ends, default=0) / size))
    edges = np.arange(count + 1, dtype=np.float64) * size * SECTOR_BYTES
    if ends and last * size < ends[-1]:
        # No line extends past the end of the device.
        edges[-1] = ends[-1] * SECTOR_BYTES
    layers: list[Layer] = []
    rows = []
    for role, label, counts in _with_all(found.requests):
        y = np.full(count, np.nan)
        y[list(counts)] = list(counts.values())
        layers.append(Steps(role, label, edges, y))
        rows.append(rate_row(role, label, (units.count(sum(counts.values())), str(len(counts)))))
    tallest = max(float(np.nanmax(layer.y)) for layer in layers if isinstance(layer, Steps))
    named = "end of the device" if len(ends) < 2 else "end of a device"
    layers += [Rule(Role.GOOD, Direction.VERTICAL, float(end * SECTOR_BYTES), named) for end in ends[-MAX_ENDS:]]
    return Figure(
        name,
        rank,
        "Request positions",
        f"{study.of} · bins of {units.binary_bytes(size * SECTOR_BYTES)}",
        Axis("Position", Unit.BYTES, 0.0, float(edges[-1]) * 1.02),
        # The name of the device's end is above the lines.
        count_axis("Requests", Unit.REQUESTS, tallest * (LABEL_ROOM if ends else 1)),
        tuple(layers),
        Legend(("requests", "bins hit"), (*rows[1:], *rows[:1])),
        common_notes(study),
    )


def _with_all(found: dict[Series, dict[int, int]]) -> list[tuple[Role, str, dict[int, int]]]:
    """Each series, and the total if there are several."""
    lines = [(ROLES[series], series.title, counts) for series, counts in found.items()]
    if len(lines) > 1:
        together: Counter[int] = Counter()
        for counts in found.values():
            together.update(counts)
        lines.insert(0, (Role.ALL, "All", dict(sorted(together.items()))))
    return lines


def _device_sectors(study: Study) -> list[int]:
    """The distinct sizes of the targets, or of the load's devices, in sectors, in ascending order."""
    known = set()
    for file in study.requests.files:
        targets = [target.sectors for target in file.targets if target.sectors]
        known |= {*targets} or {device.sectors for device in file.footer.devices if device.sectors}
    return sorted(known)


def turns_over_time(study: Study, name: str, rank: str, column: str) -> Figure | Empty:
    """The percentage of turns among the requests of each window."""
    window_s = window_for(study.last_s - study.first_s, TURNS_WINDOW_S)
    found = turns(study.table, column, window_s, by_series=study.options.each_device)
    if not found.requests:
        return Empty(name, "no request transfers data")
    lines = [(*look(study, series), found.turns[series], found.requests[series]) for series in found.requests]
    if len(lines) > 1:
        lines.insert(
            0,
            (Role.ALL, "All", np.sum([line[2] for line in lines], axis=0), np.sum([line[3] for line in lines], axis=0)),
        )
    count = len(lines[0][2])
    edges = (found.first + np.arange(count + 1, dtype=np.float64)) * window_s
    # A mostly empty last window is meaningless.
    last = (study.span.last_scheduled_s if column == "scheduled_ns" else study.span.last_completed_s) or 0.0
    enough = np.ones(count, bool)
    enough[-1] = count == 1 or last - edges[-2] >= 0.5 * window_s
    layers, rows = [], []
    for role, label, turned, requests in lines:
        y = np.where((requests > 0) & enough, 100.0 * turned / np.maximum(requests, 1), np.nan)
        layers.append(Steps(role, label, edges, y))
        average = 100.0 * float(turned.sum()) / float(requests.sum())
        rows.append(rate_row(role, label, (units.percent(average / 100), units.percent(highest(y) / 100))))
    most = max(highest(layer.y) for layer in layers)
    words = "scheduled time" if column == "scheduled_ns" else "completion"
    return Figure(
        name,
        rank,
        f"Turns: requests at a lower position than the previous one, in the order of {words}",
        f"{study.of} · windows of {units.span(window_s)}",
        time_axis(study, "Time"),
        linear_axis("Turns", Unit.PERCENT, min(most, 100.0 / 1.06)),
        tuple(layers),
        Legend(("avg", "max"), (*rows[1:], *rows[:1])),
        common_notes(study),
    )


def page_popularity(study: Study, name: str, rank: str) -> Figure | Empty:
    """Accesses to pages by rank, and the number of pages that get certain shares of all accesses."""
    found = popularity(study.table)
    if not found:
        return Empty(name, "no request transfers data")
    kinds = {"all": (Role.ALL, "All"), "read": (Role.READ, "Reads"), "write": (Role.WRITE, "Writes")}
    if len(found) == 2:
        del found["all"]
    layers: list[Layer] = []
    rows = []
    for kind, (role, label) in kinds.items():
        if kind not in found:
            continue
        pages = found[kind]
        # A page extends from its own rank to the next one.
        edges = np.concatenate([[1.0], pages.ranks + 1.0])
        layers.append(Steps(role, label, edges, pages.accesses.astype(np.float64)))
        half = pages.pages_for(0.5)
        cells = (units.count(pages.total), units.count(int(pages.ranks[-1])), units.binary_bytes(half * PAGE_BYTES))
        rows.append(rate_row(role, label, cells))
    whole = found.get("all") or next(iter(found.values()))
    max_pages = max(int(pages.ranks[-1]) for pages in found.values())
    x_axis = log_axis("Pages, most accessed first", Unit.RANK, 1, max_pages + 1)
    layers += _shares(x_axis, {f"1/{part}": max(whole.pages_for(1 / part), 1.0) for part in QUANTILES})
    max_accesses = max(int(pages.accesses[0]) for pages in found.values())
    return Figure(
        name,
        rank,
        "Access frequency of 4 KiB pages",
        f"{study.of} · grey: how many pages receive 1/2, 1/4, … of all accesses",
        x_axis,
        count_axis("Accesses per page", Unit.REQUESTS, max_accesses),
        tuple(layers),
        Legend(("accesses", "pages", "half of them in"), (*rows[1:], *rows[:1])),
        common_notes(study),
    )


def _shares(axis: Axis, places: dict[str, float]) -> list[Rule]:
    """A rule at each position; where names could overlap, that of the rule further left can be left out."""
    rules: list[Rule] = []
    free = math.inf
    for name, at in reversed(places.items()):
        share = axis.share(at)
        left = share - NAME_WIDTH if share > NEAR_RIGHT else share
        fits = left + NAME_WIDTH <= free
        free = left if fits else free
        rules.append(Rule(Role.FAINT, Direction.VERTICAL, at, name, can_be_nameless=not fits))
    return rules[::-1]


DIAGRAMS = [
    Diagram("rqsize.bins", "g40", Group.STATIC, partial(request_sizes, name="rqsize.bins", rank="g40")),
    Diagram("rqpos.bins", "g41", Group.STATIC, partial(request_positions, name="rqpos.bins", rank="g41")),
    *(
        Diagram(name, rank, group, partial(turns_over_time, name=name, rank=rank, column=column))
        for name, rank, group, column in (
            ("turns.setpoint", "g42", Group.BOTH, "scheduled_ns"),
            ("turns.completed", "g43", Group.DYNAMIC, "completed_ns"),
        )
    ),
    Diagram("freq.bins", "g44", Group.STATIC, partial(page_popularity, name="freq.bins", rank="g44")),
]
