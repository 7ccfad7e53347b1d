"""A cloud as dots of one size, so that what is seen can be compared: no dot is larger or stronger for standing alone.

The area is cut into a lattice, and a place of the lattice that holds any request is a dot. Where a cell of the cloud
covers many places (the cloud counts whole numbers, or the reader has zoomed in), its requests are scattered over them,
one dot for each while there is room.

A dot has the colour of one series. Which one is drawn by lot, with the series' shares of the dot as the odds, so that
the area of each series is its share and the order of the series doesn't matter. But chance never hides what is rare: in
each patch of the lattice, a series that has any request there has at least one dot. The page does the same, in
report/assets/clouds.js.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from iosonar.figures.model import Cloud, Role

PATCH = 16
"""Places of the lattice in each direction in which no series goes unseen."""

WIDEST = 24
"""Places that a column for a whole number takes at most: with few of them, columns don't run into bars."""

STEPS = (0.7548776662466927, 0.5698402909980532)
"""Multiples of these (R. Roberts, "The unreasonable effectiveness of quasirandom sequences", 2018) lie evenly."""

WORD = 0xFFFFFFFF


@dataclass(frozen=True)
class Dots:
    """The dots of a cloud: column and row from the lower left, the number of its series, and how many requests.

    `requests` is not whole where the requests of a cell are spread over more dots than one.
    """

    across: int
    up: int
    columns: NDArray[np.int64]
    rows: NDArray[np.int64]
    series: NDArray[np.int64]
    requests: NDArray[np.float64]

    @property
    def most(self) -> float:
        """The most requests in a dot."""
        return float(self.requests.max()) if len(self.requests) else 1.0


def dots(cloud: Cloud, across: int, up: int) -> Dots:
    """The cloud on a lattice of `across` × `up` places."""
    cell, series, counts = _entries(cloud)
    if not len(cell):
        nothing = np.zeros(0, np.int64)
        return Dots(across, up, nothing, nothing, nothing, np.zeros(0))
    # One stretch of entries for each cell, one entry for each series in it.
    order = np.lexsort((series, cell))
    cell, series, counts = cell[order], series[order], counts[order]
    first = np.flatnonzero(np.diff(cell, prepend=-1))
    total = np.add.reduceat(counts, first)
    column, row = cell[first] % cloud.across, cell[first] // cloud.across
    left, wide = _extent(column, cloud.across, across)
    low, high = _extent(row, cloud.up, up)
    if cloud.whole_numbers:
        left, wide = _apart(left, wide)
    room = wide * high
    number = np.minimum(total, room)
    # Each cell's dots in a row: which cell, and the how manyth of it.
    of = np.repeat(np.arange(len(first)), number)
    nth = np.arange(len(of)) - np.repeat(np.cumsum(number) - number, number)
    # A lone request is anywhere in its cell, so that cells are not seen; over a whole number, in its middle.
    start = (_chance(column, row) * room).astype(np.int64)
    if cloud.whole_numbers:
        start = high // 2 * wide + wide // 2
    place = _scattered(nth, of, start, room)
    columns, rows = left[of] + place % wide[of], low[of] + place // wide[of]
    # Systematic sampling: of n dots each series gets its share of n, rounded up or down.
    chance = (_lot(left, low)[of] + nth) / number[of]
    before = np.cumsum(counts) - counts
    at = before[first][of] + np.minimum((chance * total[of]).astype(np.int64), total[of] - 1)
    entry = np.searchsorted(before, at, side="right") - 1
    found = Dots(across, up, columns, rows, series[entry], total[of] / number[of])
    # Where a series of a cell would have its dot, were it given one.
    starts = np.cumsum(number) - number
    within = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(cell))))
    dot = starts[within] + np.minimum(
        ((before - before[first][within]) * number[within] // total[within]), number[within] - 1
    )
    _show_what_is_rare(found, cloud, dot, series, counts / total[within])
    return found


def _entries(cloud: Cloud) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Cell, number of the series and count of everything that the cloud holds."""
    cells = [part.rows.astype(np.int64) * cloud.across + part.columns for part in cloud.parts]
    series = [np.full(len(part.counts), number) for number, part in enumerate(cloud.parts)]
    nothing = [np.zeros(0, np.int64)]
    return (
        np.concatenate(cells + nothing),
        np.concatenate(series + nothing),
        np.concatenate([part.counts.astype(np.int64) for part in cloud.parts] + nothing),
    )


def _extent(cell: NDArray[np.int64], cells: int, places: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first place of each cell and how many it has: at least the one that its middle lies in."""
    begin, end = ((2 * (cell + by) * places + cells) // (2 * cells) for by in (0, 1))
    middle = (2 * cell + 1) * places // (2 * cells)
    return np.where(end > begin, begin, middle), np.maximum(end - begin, 1)


def _apart(left: NDArray[np.int64], wide: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Narrower columns about the same middles, with room between them."""
    narrow = np.minimum(np.where(wide > 4, wide - np.maximum(wide // 5, 1), wide), WIDEST)
    return left + (wide - narrow) // 2, narrow


def _scattered(
    nth: NDArray[np.int64], of: NDArray[np.int64], start: NDArray[np.int64], room: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The place of the nth dot within its cell, each a place of its own."""
    sizes, which = np.unique(room, return_inverse=True)
    steps = np.array([_step(int(size)) for size in sizes], np.int64)[which]
    place: NDArray[np.int64] = (start[of] + nth * steps[of]) % room[of]
    return place


def _step(size: int) -> int:
    """A number near the golden section of `size` that has no divisor with it, so that its multiples miss no place."""
    step = max(round(size * 0.6180339887498949), 1)
    while math.gcd(step, size) > 1:
        step += 1
    return step


def _lot(columns: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """A number from 0 to below 1 for each place, evenly spread among neighbours, and always the same."""
    found: NDArray[np.float64] = (columns * STEPS[0] + rows * STEPS[1]) % 1.0
    return found


def _chance(columns: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """The same without any pattern."""
    mixed = (columns * 0x9E3779B1 & WORD) ^ (rows * 0x85EBCA77 & WORD)
    for shift, factor in ((15, 0x2C1B3C6D), (12, 0x297A2D39)):
        mixed = (mixed ^ mixed >> shift) * factor & WORD
    found: NDArray[np.float64] = (mixed ^ mixed >> 15) / 2.0**32
    return found


def _show_what_is_rare(
    found: Dots, cloud: Cloud, dot: NDArray[np.int64], series: NDArray[np.int64], share: NDArray[np.float64]
) -> None:
    """Gives each series a dot in each patch where it would have none: by lot, one in which its share is large.

    `dot`, `series` and `share` are of the entries: which dot could show them. A series is not robbed of its only dot
    in a patch, but for failed requests.
    """
    kinds = max(len(cloud.parts), 1)
    patch = (found.rows // PATCH) * -(-found.across // PATCH) + found.columns // PATCH
    patches = -(-found.across // PATCH) * -(-found.up // PATCH)
    shown = np.bincount(patch * kinds + found.series, minlength=patches * kinds)
    wanted = patch[dot] * kinds + series
    missing = shown[wanted] == 0
    candidates = np.flatnonzero(missing)
    weight = share * (0.01 + _chance(found.columns[dot], found.rows[dot]))
    candidates = candidates[np.lexsort((-weight[candidates], wanted[candidates]))]
    for entry in candidates.tolist():
        want = wanted[entry]
        if shown[want]:
            continue
        which = dot[entry]
        have = patch[which] * kinds + found.series[which]
        if shown[have] > 1 or cloud.parts[series[entry]].role is Role.FAILED:
            shown[have] -= 1
            shown[want] += 1
            found.series[which] = series[entry]
