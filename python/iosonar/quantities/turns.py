"""Turns: requests whose sector is lower than their predecessor's, for which a disk must seek backwards."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from iosonar.quantities.address import transfers
from iosonar.quantities.batches import array_of
from iosonar.quantities.integers import cuts
from iosonar.quantities.series import MAX_SERIES, operation_of
from iosonar.quantities.threads import in_threads

if TYPE_CHECKING:
    import ibis.expr.types as ir

ROWS_AT_ONCE = 2_500_000
"""Requests sorted at once; more are processed in segments of time."""


@dataclass(frozen=True)
class Turns:
    """The number of requests and of turns in consecutive windows from `first` × `window_s` on."""

    window_s: float
    first: int
    requests: dict[int, NDArray[np.int64]]
    turns: dict[int, NDArray[np.int64]]


_Rows = list[NDArray[np.int64]]
"""Columns of requests: time, place, device, sector, series."""


@dataclass(frozen=True)
class _Device:
    """The first and last request of a device in a segment of time."""

    extent: int
    first_sector: int
    first_cell: int
    last_sector: int


_Counted = tuple[NDArray[np.int64], NDArray[np.int64], list[_Device]]
"""For a segment of time: requests and turns in each cell, without a turn at its start, and its devices."""


def turns(table: ir.Table, order: str, window_s: float, *, by_series: bool = False) -> Turns:
    """Counts turns in order of a time, `scheduled_ns` or `completed_ns`, separately for each device of each file.

    Requests at the same nanosecond count in the order of their file. They are counted by operation, or by the column
    `series`.
    """
    moved = transfers(table)
    moved = moved.filter(moved[order].notnull())
    at = moved[order]
    span = moved.aggregate(first=at.min(), last=at.max(), n=moved.count()).to_pyarrow().to_pylist()[0]
    if not span["n"]:
        return Turns(window_s, 0, {}, {})
    window_ns, kinds = max(round(window_s * 1e9), 1), MAX_SERIES
    first = span["first"] // window_ns
    count = span["last"] // window_ns - first + 1
    series = moved.series if by_series else operation_of(moved)
    rows = moved.select(at=at, place=moved.place, extent=moved.extent, sector=moved.sector, series=series)

    def segments() -> Iterator[_Rows]:
        for low, high in cuts(rows, "at", span["first"], span["last"] + 1, span["n"], ROWS_AT_ONCE):
            found = rows.filter((rows["at"] >= low) & (rows["at"] < high)).to_pyarrow()
            yield [array_of(found[name]) for name in found.column_names]

    def counted(found: _Rows) -> _Counted:
        at, extent, sector, series = _by_time(found)
        cell = (at // window_ns - first) * kinds + series
        devices, turned = _devices(extent, sector, cell)
        return np.bincount(cell, minlength=count * kinds), np.bincount(turned, minlength=count * kinds), devices

    requests, turned = np.zeros(count * kinds, np.int64), np.zeros(count * kinds, np.int64)
    last_sectors: dict[int, int] = {}
    for found_requests, found_turns, devices in in_threads(counted, segments()):
        requests += found_requests
        turned += found_turns
        for each in devices:
            if each.first_sector < last_sectors.get(each.extent, each.first_sector):
                turned[each.first_cell] += 1
            last_sectors[each.extent] = each.last_sector
    present = [number for number in range(kinds) if requests[number::kinds].any()]
    return Turns(
        window_s,
        first,
        {number: requests[number::kinds] for number in present},
        {number: turned[number::kinds] for number in present},
    )


def _by_time(found: _Rows) -> _Rows:
    """Sorts rows by time, then by place, and drops the places.

    Rows arrive nearly sorted by place and by any of their times: two stable sorts of nearly sorted data take a tenth of
    the time of one sort by both.
    """
    at, place, *others = found
    found.clear()
    order = np.argsort(place, kind="stable")
    order = order[np.argsort(at[order], kind="stable")]
    return [at[order], *(column[order] for column in others)]


def _devices(
    extent: NDArray[np.int64], sector: NDArray[np.int64], cell: NDArray[np.int64]
) -> tuple[list[_Device], NDArray[np.int64]]:
    """Each device, and the cells of all turns, for requests in order of time."""
    if not len(extent):
        return [], cell
    if not (extent == extent[0]).all():
        order = np.argsort(extent, kind="stable")
        extent, sector, cell = extent[order], sector[order], cell[order]
    same = extent[1:] == extent[:-1]
    turned = cell[1:][same & (sector[1:] < sector[:-1])]
    begins = np.flatnonzero(np.concatenate([[True], ~same]))
    ends = np.append(begins[1:], len(extent)) - 1
    columns = (extent[begins], sector[begins], cell[begins], sector[ends])
    return [_Device(*map(int, row)) for row in zip(*columns, strict=True)], turned
