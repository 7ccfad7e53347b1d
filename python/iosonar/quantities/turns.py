"""Turns: requests whose sector is lower than their predecessor's. A disk has to seek backwards for them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from iosonar.quantities.address import transfers
from iosonar.quantities.series import Series, operation_of
from iosonar.quantities.threads import in_threads

if TYPE_CHECKING:
    import ibis.expr.types as ir

ROWS_AT_ONCE = 2_500_000
"""Requests that are sorted at once; of more, one stretch of time after the other."""


@dataclass(frozen=True)
class Turns:
    """How many requests, and how many turns among them, in consecutive windows from `first` × `window_s` on."""

    window_s: float
    first: int
    requests: dict[Series, NDArray[np.int64]]
    turns: dict[Series, NDArray[np.int64]]


_Rows = list[NDArray[np.int64]]
"""Requests by columns: time, place, device, sector, series."""


@dataclass(frozen=True)
class _Device:
    """The requests of one device in a stretch of time: the cells of its turns, and what it begins and ends with."""

    extent: int
    first_sector: int
    first_cell: int
    last_sector: int
    turns: NDArray[np.int64]


_Counted = tuple[NDArray[np.int64], NDArray[np.int64], list[_Device]]
"""Of a stretch of time: requests and turns in each cell, but for a turn at its beginning, and its devices."""


def turns(table: ir.Table, order: str, window_s: float) -> Turns:
    """Counts turns in the order of a time, `intended_ns` or `completed_ns`. Each device of each file is on its own.

    Of requests at the same nanosecond, that which stands first in its file is first.
    """
    moved = transfers(table)
    moved = moved.filter(moved[order].notnull())
    at = moved[order]
    span = moved.aggregate(first=at.min(), last=at.max(), n=moved.count()).to_pyarrow().to_pylist()[0]
    if not span["n"]:
        return Turns(window_s, 0, {}, {})
    window_ns = round(window_s * 1e9)
    first = span["first"] // window_ns
    count = span["last"] // window_ns - first + 1
    kinds = len(Series)
    rows = moved.select(at=at, place=moved.place, extent=moved.extent, sector=moved.sector, series=operation_of(moved))

    def stretches() -> Iterator[_Rows]:
        for low, high in _stretches(span["first"], span["last"], span["n"]):
            found = rows.filter((rows["at"] >= low) & (rows["at"] < high)).to_pyarrow()
            yield [found[name].to_numpy() for name in found.column_names]

    def counted(found: _Rows) -> _Counted:
        at, extent, sector, series = _by_time(found)
        cell = (at // window_ns - first) * kinds + series
        devices = _devices(extent, sector, cell)
        turned = np.bincount(np.concatenate([cell[:0], *(each.turns for each in devices)]), minlength=count * kinds)
        return np.bincount(cell, minlength=count * kinds), turned, devices

    requests, turned = np.zeros(count * kinds, np.int64), np.zeros(count * kinds, np.int64)
    before: dict[int, int] = {}
    for found_requests, found_turns, devices in in_threads(counted, stretches()):
        requests += found_requests
        turned += found_turns
        for each in devices:
            if each.first_sector < before.get(each.extent, each.first_sector):
                turned[each.first_cell] += 1
            before[each.extent] = each.last_sector
    present = [series for series in Series if requests[int(series) :: kinds].any()]
    return Turns(
        window_s,
        first,
        {series: requests[int(series) :: kinds] for series in present},
        {series: turned[int(series) :: kinds] for series in present},
    )


def _stretches(first: int, last: int, rows: int) -> list[tuple[int, int]]:
    """Stretches of time that hold everything, each with about ROWS_AT_ONCE requests if they come evenly."""
    parts = math.ceil(rows / ROWS_AT_ONCE)
    borders = np.linspace(first, last + 1, parts + 1).astype(np.int64)
    return list(pairwise(borders.tolist()))


def _by_time(found: _Rows) -> _Rows:
    """The rows in the order of their times, and of their places where times are equal; the places are left out.

    Rows come in stretches that are in the order of their places, and that is close to the order of any of their times:
    two stable sorts of what is nearly sorted are a tenth of one sort by both.
    """
    at, place, *others = found
    found.clear()
    order = np.argsort(place, kind="stable")
    order = order[np.argsort(at[order], kind="stable")]
    return [at[order], *(column[order] for column in others)]


def _devices(extent: NDArray[np.int64], sector: NDArray[np.int64], cell: NDArray[np.int64]) -> list[_Device]:
    """The turns of each device, among requests in the order of their times."""
    only = bool((extent == extent[0]).all()) if len(extent) else False
    found = []
    for device in extent[:1].tolist() if only else np.unique(extent).tolist():
        mine = slice(None) if only else extent == device
        sectors, cells = sector[mine], cell[mine]
        turns = cells[1:][sectors[1:] < sectors[:-1]]
        found.append(_Device(device, int(sectors[0]), int(cells[0]), int(sectors[-1]), turns))
    return found
