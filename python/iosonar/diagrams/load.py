"""What a load is like: sizes and positions of its requests, turns, and how popular pages are."""

from __future__ import annotations

import math
from collections import Counter
from functools import partial

import numpy as np

from iosonar import units
from iosonar.diagrams.catalogue import Diagram, Group
from iosonar.diagrams.parts import ROLES, count_axis, linear_axis, log_axis, rate_row, time_axis
from iosonar.diagrams.study import Study
from iosonar.diagrams.throughput import highest
from iosonar.figures.model import Axis, Direction, Empty, Figure, Layer, Legend, Role, Rule, Scale, Steps, Unit
from iosonar.quantities.positions import SECTORS_PER_GIB, gibibytes, popularity, sizes
from iosonar.quantities.series import Series
from iosonar.quantities.throughput import window_for
from iosonar.quantities.turns import turns

SECTOR_BYTES = 512
PAGE_BYTES = 4096
QUANTILES = (64, 32, 16, 8, 4, 2)
TURNS_WINDOW_S = 1.0


def request_sizes(study: Study, name: str, rank: str) -> Figure | Empty:
    """How many requests are how long."""
    found = sizes(study.table)
    if not found:
        return Empty(name, "no request moves data")
    most = max(max(counts) for counts in found.values())
    # Ten bins to a decade, and none that holds no whole number.
    edges = np.unique(np.ceil(10.0 ** (np.arange(0, math.ceil(math.log10(most + 1) * 10) + 1) / 10)))
    layers: list[Layer] = []
    rows = []
    for role, label, counts in _with_all(found):
        lengths, n = np.array(list(counts)), np.array(list(counts.values()))
        y = np.histogram(lengths, edges, weights=n)[0]
        layers.append(Steps(role, label, edges, np.where(y > 0, y, np.nan)))
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
        "Sizes of requests",
        study.of,
        Axis("Length", Unit.SECTORS, 1.0, float(edges[-1]), Scale.LOG),
        count_axis("Requests", Unit.REQUESTS, tallest),
        tuple(layers),
        Legend(("requests", "avg", "most often", "max"), (*rows[1:], *rows[:1])),
        study.notes,
    )


def request_positions(study: Study, name: str, rank: str) -> Figure | Empty:
    """How many requests begin in which GiB, with the end of the device."""
    found = gibibytes(study.table)
    if not found:
        return Empty(name, "no request moves data")
    device = _device_gib(study)
    last = max(max(counts) for counts in found.values())
    count = max(last + 1, math.ceil(max(device, default=0)))
    edges = np.arange(count + 1, dtype=np.float64)
    layers: list[Layer] = []
    rows = []
    for role, label, counts in _with_all(found):
        y = np.full(count, np.nan)
        y[list(counts)] = list(counts.values())
        layers.append(Steps(role, label, edges, y))
        rows.append(rate_row(role, label, (units.count(sum(counts.values())), str(len(counts)))))
    tallest = max(float(np.nanmax(layer.y)) for layer in layers if isinstance(layer, Steps))
    layers += [Rule(Role.GOOD, Direction.VERTICAL, end, "end of the device") for end in device]
    return Figure(
        name,
        rank,
        "Positions of requests",
        f"{study.of} · bins of 1 GiB",
        Axis("Position", Unit.GIB, 0.0, count * 1.02),
        count_axis("Requests", Unit.REQUESTS, tallest),
        tuple(layers),
        Legend(("requests", "GiB hit"), (*rows[1:], *rows[:1])),
        study.notes,
    )


def _with_all(found: dict[Series, dict[int, int]]) -> list[tuple[Role, str, dict[int, int]]]:
    """Each series, over the sum of all if there are several."""
    lines = [(ROLES[series], series.title, counts) for series, counts in found.items()]
    if len(lines) > 1:
        together: Counter[int] = Counter()
        for counts in found.values():
            together.update(counts)
        lines.insert(0, (Role.ALL, "All", dict(sorted(together.items()))))
    return lines


def _device_gib(study: Study) -> list[float]:
    """The sizes of the targets, or of the load's devices, in GiB; each but once."""
    known = set()
    for file in study.requests.files:
        targets = [sectors for target in file.targets if (sectors := target.get("sectors"))]
        devices = targets or [device.get("sectors") for device in file.footer.get("devices", [])]
        known |= {sectors / SECTORS_PER_GIB for sectors in devices if sectors}
    return sorted(known)


def turns_over_time(study: Study, name: str, rank: str, column: str) -> Figure | Empty:
    """How many percent of the requests in a window are turns."""
    window_s = window_for(study.last_s - study.first_s, TURNS_WINDOW_S)
    found = turns(study.table, column, window_s)
    if not found.requests:
        return Empty(name, "no request moves data")
    lines = [(ROLES[series], series.title, found.turns[series], found.requests[series]) for series in found.requests]
    if len(lines) > 1:
        lines.insert(
            0,
            (Role.ALL, "All", np.sum([line[2] for line in lines], axis=0), np.sum([line[3] for line in lines], axis=0)),
        )
    count = len(lines[0][2])
    edges = (found.first + np.arange(count + 1, dtype=np.float64)) * window_s
    # A last window of which most is missing says nothing.
    last = (study.span.last_intended_s if column == "intended_ns" else study.span.last_completed_s) or 0.0
    enough = np.ones(count, bool)
    enough[-1] = count == 1 or last - edges[-2] >= 0.5 * window_s
    layers, rows = [], []
    for role, label, turned, requests in lines:
        y = np.where((requests > 0) & enough, 100.0 * turned / np.maximum(requests, 1), np.nan)
        layers.append(Steps(role, label, edges, y))
        average = 100.0 * float(turned.sum()) / float(requests.sum())
        rows.append(rate_row(role, label, (f"{units.number(average)} %", f"{units.number(highest(y))} %")))
    most = max(highest(layer.y) for layer in layers)
    words = "intended" if column == "intended_ns" else "completed"
    return Figure(
        name,
        rank,
        f"Turns: requests below their predecessor, as {words}",
        f"{study.of} · windows of {units.seconds(window_s)}",
        time_axis(study, "Time"),
        linear_axis("Turns", Unit.PERCENT, min(most, 100.0 / 1.06)),
        tuple(layers),
        Legend(("avg", "max"), (*rows[1:], *rows[:1])),
        study.notes,
    )


def page_popularity(study: Study, name: str, rank: str) -> Figure | Empty:
    """Pages by how often they are touched, and how few of them get which share of all accesses."""
    found = popularity(study.table)
    if not found:
        return Empty(name, "no request moves data")
    kinds = {"all": (Role.ALL, "All"), "read": (Role.READ, "Reads"), "write": (Role.WRITE, "Writes")}
    if len(found) == 2:
        del found["all"]
    layers: list[Layer] = []
    rows = []
    for kind, (role, label) in kinds.items():
        if kind not in found:
            continue
        pages = found[kind]
        # A page has the width from its own rank to the next one's.
        edges = np.concatenate([[1.0], pages.ranks + 1.0])
        layers.append(Steps(role, label, edges, pages.accesses.astype(np.float64)))
        half = pages.pages_for(0.5)
        cells = (units.count(pages.total), units.count(int(pages.ranks[-1])), units.binary_bytes(half * PAGE_BYTES))
        rows.append(rate_row(role, label, cells))
    whole = found.get("all") or next(iter(found.values()))
    for part in QUANTILES:
        needed = whole.pages_for(1 / part)
        layers.append(Rule(Role.FAINT, Direction.VERTICAL, max(needed, 1.0), f"1/{part}"))
    most_pages = max(int(pages.ranks[-1]) for pages in found.values())
    most_accesses = max(int(pages.accesses[0]) for pages in found.values())
    return Figure(
        name,
        rank,
        "Popularity of pages of 4 KiB",
        f"{study.of} · grey: as many pages get that share of all accesses",
        log_axis("Pages, the most popular first", Unit.RANK, 1, most_pages + 1),
        count_axis("Accesses to the page", Unit.REQUESTS, most_accesses),
        tuple(layers),
        Legend(("accesses", "pages", "half in"), (*rows[1:], *rows[:1])),
        study.notes,
    )


DIAGRAMS = [
    Diagram("rqsize.bins", "g40", Group.STATIC, partial(request_sizes, name="rqsize.bins", rank="g40")),
    Diagram("rqpos.bins", "g41", Group.STATIC, partial(request_positions, name="rqpos.bins", rank="g41")),
    *(
        Diagram(name, rank, group, partial(turns_over_time, name=name, rank=rank, column=column))
        for name, rank, group, column in (
            ("turns.setpoint", "g42", Group.BOTH, "intended_ns"),
            ("turns.completed", "g43", Group.DYNAMIC, "completed_ns"),
        )
    ),
    Diagram("freq.bins", "g44", Group.STATIC, partial(page_popularity, name="freq.bins", rank="g44")),
]
