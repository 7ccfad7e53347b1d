"""The scaling curve: the time of a job over the number of instances at once, of a program and of its replay."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from iosonar import units
from iosonar.diagrams.calls.catalogue import Part
from iosonar.diagrams.catalogue import Diagram
from iosonar.diagrams.parts import linear_axis
from iosonar.figures.model import (
    Axis,
    Empty,
    Figure,
    Legend,
    LegendRow,
    Line,
    Note,
    NoteKind,
    Role,
    Scale,
    Stroke,
    Unit,
)
from iosonar.quantities.calls.scaling import JobTimes
from iosonar.study.scaling import ScaleStudy

NAME, RANK = "scale", "f16"
NETWORK = "network"
LOOKS = {"program": (Role.ALL, "Program"), "replay": (Role.ACTUAL, "Replay")}
CAP = 1.03
"""Half the width of the ends of a bar, as a factor."""


def scaling_curve(times: Sequence[JobTimes], of: str) -> Figure | Empty:
    """The mean time of an instance, with a bar from the shortest to the longest."""
    if not times:
        return Empty(NAME, "no instances in the file")
    layers, rows = [], []
    numbers = sorted({each.instances for each in times})
    for place, (what, (role, label)) in enumerate(LOOKS.items()):
        found = [each for each in times if each.what == what]
        if not found:
            continue
        # Bars of program and replay are beside each other.
        x = np.array([each.instances for each in found]) * 1.012 ** (2 * place - 1)
        layers.append(Line(role, label, x, np.array([each.mean for each in found])))
        # The same label: the page shows or hides both.
        layers.append(Line(role, label, *_ranges(found, x)))
        cells = tuple(_cell(found, number) for number in numbers)
        rows.append(LegendRow(role, label, cells, Stroke.SOLID))
    low, high = float(numbers[0]), float(max(numbers[-1], numbers[0] + 1))
    ticks = tuple((float(number), str(number)) for number in numbers)
    return Figure(
        NAME,
        RANK,
        "Scaling: time of an instance",
        of,
        Axis("Instances at once", Unit.RANK, low / 1.15, high * 1.15, Scale.LOG, named=ticks),
        linear_axis("Time of an instance", Unit.SECONDS, max(each.longest for each in times)),
        tuple(layers),
        Legend(tuple(str(number) for number in numbers), tuple(rows)),
        (Note(NoteKind.INFO, "Lines: mean of all instances. Bars: from the shortest to the longest"),),
    )


def _cell(found: Sequence[JobTimes], number: int) -> str:
    return next((units.span(each.mean) for each in found if each.instances == number), "–")


def _ranges(found: Sequence[JobTimes], x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A vertical line with ends for each number of instances; gaps between."""
    xs, ys = [], []
    for each, at in zip(found, x, strict=True):
        left, right, low, high = at / CAP, at * CAP, each.shortest, each.longest
        xs += [left, right, at, at, left, right, np.nan]
        ys += [low, low, low, high, high, high, np.nan]
    return np.array(xs), np.array(ys)


def scale(study: ScaleStudy) -> Figure | Empty:
    """The curve of an experiment."""
    return scaling_curve(study.times, study.file.name)


HOST_ROLES = (Role.ALL, Role.ACTUAL, Role.READ, Role.WRITE, Role.FAILED, Role.DEMAND)
"""Of the first hosts; more could not be distinguished."""


def network(study: ScaleStudy) -> Figure | Empty:
    """The bytes that each host received and sent while the instances ran."""
    found = study.traffic
    if not found:
        return Empty(NETWORK, "the file has no bytes on the network")
    numbers = sorted({each.instances for each in found})
    layers, rows = [], []
    hosts = list(dict.fromkeys(each.host for each in found))
    for host, role in zip(hosts, HOST_ROLES, strict=False):
        label = host or "This machine"
        moved = {each.instances: each.moved for each in found if each.host == host}
        layers.append(
            Line(role, label, np.array(list(moved), dtype=float), np.array(list(moved.values()), dtype=float))
        )
        cells = tuple(units.transferred(moved[number]) if number in moved else "–" for number in numbers)
        rows.append(LegendRow(role, label, cells, Stroke.SOLID))
    low, high = float(numbers[0]), float(max(numbers[-1], numbers[0] + 1))
    left_out = f"; only the first {len(HOST_ROLES)} hosts" if len(hosts) > len(HOST_ROLES) else ""
    return Figure(
        NETWORK,
        "f17",
        "Bytes on the network",
        study.file.name,
        Axis(
            "Instances at once",
            Unit.RANK,
            low / 1.15,
            high * 1.15,
            Scale.LOG,
            named=tuple((float(number), str(number)) for number in numbers),
        ),
        linear_axis("Received and sent by a host", Unit.BYTES, float(max(1, *(each.moved for each in found)))),
        tuple(layers),
        Legend(tuple(str(number) for number in numbers), tuple(rows)),
        (Note(NoteKind.INFO, f"By all programs of the host while the instances ran{left_out}"),),
    )


DIAGRAMS = (Diagram(NAME, RANK, Part.TIME, scale), Diagram(NETWORK, "f17", Part.TIME, network))
