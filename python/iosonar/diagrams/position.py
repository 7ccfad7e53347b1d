"""Position over time of reads and writes, each device with its own scale."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from iosonar import units
from iosonar.diagrams.catalogue import Diagram, Group
from iosonar.diagrams.notes import common_notes
from iosonar.diagrams.parts import cells_of, cloud_parts, look, time_axis
from iosonar.figures.model import Axis, Cloud, Empty, Figure, Legend, LegendRow, Unit
from iosonar.quantities.density import density
from iosonar.quantities.places import Extent, above, extents, placed
from iosonar.study.requests import Study

if TYPE_CHECKING:
    import ibis.expr.types as ir

SECTOR_BYTES = 512

MAX_DEVICES = 12
"""The most devices above each other; of more, those with the most requests are drawn."""

LABELLED_ENDS = 4
"""With more devices, there is no room for labels at the ends of their scales."""

STRIPE, LABELLED_STRIPE = 0.92, 0.82
"""The share of a device's height that is drawn; the rest is a gap to the next one, for the labels of both."""

MAX_NAME = 10
"""The longest part of a device's name that fits beside the axis."""

ORDERS = {
    "setpoint": ("scheduled_ns", "Scheduled time", "scheduled time"),
    "realtime": ("issued_ns", "Issue time", "issue time"),
}


def position_over_time(study: Study, name: str, rank: str, order: str) -> Figure | Empty:
    """A cloud of the start positions of requests, over one of their times."""
    column, label, words = ORDERS[order]
    table = placed(study.table.filter(study.table[column].notnull()))
    found = extents(table)
    if not found:
        return Empty(name, "no request has a position")
    busiest = sorted(found, key=lambda extent: -extent.requests)[:MAX_DEVICES]
    shown = [extent for extent in found if extent in busiest]
    if len(shown) < len(found):
        table = table.filter(table.device.fill_null(0).isin([extent.device for extent in shown]))
    across, up = study.options.size.cells(sum(extent.requests for extent in shown))
    x, y = time_axis(study, label), _axis(study, shown)
    cells = density(table, table[column] / 1e9, _height(table, shown), cells_of(x, across), cells_of(y, up))
    moved = study.throughput(column).bytes
    rows = tuple(
        LegendRow(
            *look(study, series),
            (units.count(int(part.counts.sum())), units.transferred(float(np.sum(moved.get(series, 0.0))))),
        )
        for series, part in sorted(cells.items())
    )
    return Figure(
        name,
        rank,
        f"Position over {words}",
        f"{study.of}{_left_out(found, shown)}",
        x,
        y,
        (Cloud(across, up, cloud_parts(study, cells)),),
        Legend(("requests", "data"), rows),
        common_notes(study),
    )


def _height(table: ir.Table, shown: list[Extent]) -> ir.NumericColumn:
    """The position of each request on the axis of `_axis`."""
    import ibis

    if len(shown) == 1:
        return above(table, shown[0].base) * SECTOR_BYTES
    device, stripe = table.device.fill_null(0), _stripe(shown)
    return ibis.cases(
        *(
            (
                device == extent.device,
                above(table, extent.base) * (stripe / extent.sectors) + _floor(place, shown),
            )
            for place, extent in enumerate(shown)
        )
    )


def _floor(place: int, shown: list[Extent]) -> int:
    """The lower end of a device's stripe: the first device is at the top."""
    return len(shown) - 1 - place


def _stripe(shown: list[Extent]) -> float:
    return LABELLED_STRIPE if len(shown) <= LABELLED_ENDS else STRIPE


def _axis(study: Study, shown: list[Extent]) -> Axis:
    if len(shown) == 1:
        only = shown[0]
        label = f"Position, from sector {only.base:,} on" if only.base else "Position"
        return Axis(label, Unit.BYTES, -0.01 * only.sectors * SECTOR_BYTES, only.sectors * SECTOR_BYTES * 1.01)
    named: list[tuple[float, str]] = []
    stripe = _stripe(shown)
    for place, extent in enumerate(shown):
        floor = _floor(place, shown)
        named.append((floor + stripe / 2, _name(study, extent.device)))
        if len(shown) <= LABELLED_ENDS:
            named.append((floor, units.binary_bytes(extent.base * SECTOR_BYTES)))
            named.append((floor + stripe, units.binary_bytes((extent.base + extent.sectors) * SECTOR_BYTES)))
    low, high = -(1 - stripe) / 2, len(shown) - (1 - stripe) / 2
    return Axis("Position on each device", Unit.DEVICES, low, high, named=tuple(sorted(named)))


def _name(study: Study, device: int) -> str:
    for file in study.requests.files:
        devices = file.footer.devices
        if 0 <= device < len(devices) and (name := devices[device].name):
            return name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 1]}…"
    return f"device {device}"


def _left_out(found: list[Extent], shown: list[Extent]) -> str:
    if len(shown) == len(found):
        return ""
    others = units.requests(sum(extent.requests for extent in found) - sum(extent.requests for extent in shown))
    return f" · the {len(shown)} busiest of {len(found)} devices, without {others} of the others"


DIAGRAMS = [
    Diagram(name, "g01", group, partial(position_over_time, name=name, rank="g01", order=order))
    for name, group, order in (
        ("position.setpoint", Group.STATIC, "setpoint"),
        ("position.realtime", Group.DYNAMIC, "realtime"),
    )
]
