"""Turns: requests whose sector is lower than their predecessor's. A disk has to seek backwards for them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from iosonar.quantities.address import transfers
from iosonar.quantities.series import Series, operation_of

if TYPE_CHECKING:
    import ibis.expr.types as ir

ROWS_AT_ONCE = 5_000_000
"""Requests that are sorted at once; of more, one stretch of time after the other."""


@dataclass(frozen=True)
class Turns:
    """How many requests, and how many turns among them, in consecutive windows from `first` × `window_s` on."""

    window_s: float
    first: int
    requests: dict[Series, NDArray[np.int64]]
    turns: dict[Series, NDArray[np.int64]]


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
    requests, turned = np.zeros(count * kinds, np.int64), np.zeros(count * kinds, np.int64)
    before: dict[int, int] = {}
    rows = moved.select(at=at, place=moved.place, extent=moved.extent, sector=moved.sector, series=operation_of(moved))
    for low, high in _stretches(span["first"], span["last"], span["n"]):
        found = rows.filter((rows["at"] >= low) & (rows["at"] < high)).to_pyarrow()
        times, place, extent, sector, series = (found[name].to_numpy() for name in found.column_names)
        by_time = _by_time(times, place)
        turn = _below_predecessor(sector[by_time], extent[by_time], before)
        cell = (times[by_time] // window_ns - first) * kinds + series[by_time]
        requests += np.bincount(cell, minlength=count * kinds)
        turned += np.bincount(cell[turn], minlength=count * kinds)
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


def _by_time(times: NDArray[np.int64], place: NDArray[np.int64]) -> NDArray[np.int64]:
    """The order of the times, and of the places where times are equal.

    Rows come in stretches that are in the order of their places, and that is close to the order of any of their times:
    two stable sorts of what is nearly sorted are a tenth of one sort by both.
    """
    by_place = np.argsort(place, kind="stable")
    by_time: NDArray[np.int64] = by_place[np.argsort(times[by_place], kind="stable")]
    return by_time


def _below_predecessor(
    sector: NDArray[np.int64], extent: NDArray[np.int64], before: dict[int, int]
) -> NDArray[np.bool_]:
    """Whether each sector is lower than the one before it on the same device; `before` holds the last ones so far."""
    turn = np.zeros(len(sector), bool)
    for device in np.unique(extent).tolist():
        mine = slice(None) if extent.min() == extent.max() else extent == device
        own = sector[mine]
        turn[mine] = own < np.concatenate([[before.get(device, own[0])], own[:-1]])
        before[device] = int(own[-1])
    return turn
