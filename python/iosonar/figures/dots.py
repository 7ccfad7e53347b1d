"""Draws a cloud as dots of equal size, so that densities can be compared: isolated dots are not emphasised.

The area is divided into a lattice; each lattice point with a request becomes a dot. If a cell of the cloud covers many
lattice points (the cloud counts integers, or the reader has zoomed in), its requests are spread over them, one dot per
request as long as there is room.

A dot has the colour of one series, chosen at random with the series' shares of the dot as probabilities. So the area of
each series is proportional to its share, and the order of the series does not matter. But rare series are never hidden:
in each patch of the lattice, each series with requests there has at least one dot. The page does the same, in
report/assets/clouds.js.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from iosonar.figures.model import Cloud, Role

PATCH = 16
"""Side of a patch, in lattice points."""

MAX_COLUMN = 24
"""The widest column of an integer, in lattice points: with few integers, columns do not become bars."""

STEPS = (0.7548776662466927, 0.5698402909980532)
"""The multiples of these are evenly distributed (R. Roberts, "The unreasonable effectiveness of quasirandom sequences",
2018)."""

WORD = 0xFFFFFFFF


@dataclass(frozen=True)
class Dots:
    """The dots of a cloud: column and row from the lower left, number of the series, and number of requests.

    `requests` is fractional if the requests of a cell are spread over several dots.
    """

    across: int
    up: int
    columns: NDArray[np.int64]
    rows: NDArray[np.int64]
    series: NDArray[np.int64]
    requests: NDArray[np.float64]

    @property
    def maximum(self) -> float:
        """The largest number of requests in a dot."""
        return float(self.requests.max()) if len(self.requests) else 1.0


def dots(cloud: Cloud, across: int, up: int) -> Dots:
    """Places the cloud on a lattice of `across` × `up` points."""
    cell, series, counts = _entries(cloud)
    if not len(cell):
        nothing = np.zeros(0, np.int64)
        return Dots(across, up, nothing, nothing, nothing, np.zeros(0))
    # Sorted by cell; within it, one entry for each series.
    order = np.lexsort((series, cell))
    cell, series, counts = cell[order], series[order], counts[order]
    first = np.flatnonzero(np.diff(cell, prepend=-1))
    total = np.add.reduceat(counts, first)
    column, row = cell[first] % cloud.across, cell[first] // cloud.across
    left, wide = _extent(column, cloud.across, across)
    low, high = _extent(row, cloud.up, up)
    if cloud.whole_numbers:
        left, wide = _with_gaps(left, wide)
    room = wide * high
    number = np.minimum(total, room)
    # The dots of all cells, in order: their cell, and their index in it.
    of = np.repeat(np.arange(len(first)), number)
    nth = np.arange(len(of)) - np.repeat(np.cumsum(number) - number, number)
    # A single request is at a random point in its cell, so that cells are invisible; for integers, in the middle.
    start = (_random(column, row) * room).astype(np.int64)
    if cloud.whole_numbers:
        start = high // 2 * wide + wide // 2
    place = _scattered(nth, of, start, room)
    columns, rows = left[of] + place % wide[of], low[of] + place // wide[of]
    # Systematic sampling: of n dots, each series gets its share, rounded up or down.
    position = (_quasirandom(left, low)[of] + nth) / number[of]
    before = np.cumsum(counts) - counts
    at = before[first][of] + np.minimum((position * total[of]).astype(np.int64), total[of] - 1)
    entry = np.searchsorted(before, at, side="right") - 1
    found = Dots(across, up, columns, rows, series[entry], total[of] / number[of])
    # The dot that each series of a cell would have, if it had one.
    starts = np.cumsum(number) - number
    within = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(cell))))
    dot = starts[within] + np.minimum(
        ((before - before[first][within]) * number[within] // total[within]), number[within] - 1
    )
    _show_rare_series(found, cloud, dot, series, counts / total[within])
    return found


def _entries(cloud: Cloud) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Cell, number of the series and count of all entries of the cloud."""
    cells = [part.rows.astype(np.int64) * cloud.across + part.columns for part in cloud.parts]
    series = [np.full(len(part.counts), number) for number, part in enumerate(cloud.parts)]
    nothing = [np.zeros(0, np.int64)]
    return (
        np.concatenate(cells + nothing),
        np.concatenate(series + nothing),
        np.concatenate([part.counts.astype(np.int64) for part in cloud.parts] + nothing),
    )


def _extent(cell: NDArray[np.int64], cells: int, places: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first lattice point of each cell and their number: at least the point at its middle."""
    begin, end = ((2 * (cell + by) * places + cells) // (2 * cells) for by in (0, 1))
    middle = (2 * cell + 1) * places // (2 * cells)
    return np.where(end > begin, begin, middle), np.maximum(end - begin, 1)


def _with_gaps(left: NDArray[np.int64], wide: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Narrows columns about their middle, with gaps between them."""
    narrow = np.minimum(np.where(wide > 4, wide - np.maximum(wide // 5, 1), wide), MAX_COLUMN)
    return left + (wide - narrow) // 2, narrow


def _scattered(
    nth: NDArray[np.int64], of: NDArray[np.int64], start: NDArray[np.int64], room: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The lattice point of the nth dot within its cell; all are different."""
    sizes, which = np.unique(room, return_inverse=True)
    steps = np.array([_step(int(size)) for size in sizes], np.int64)[which]
    place: NDArray[np.int64] = (start[of] + nth * steps[of]) % room[of]
    return place


def _step(size: int) -> int:
    """A number near the golden section of `size` and coprime to it, so that its multiples reach every point."""
    step = max(round(size * 0.6180339887498949), 1)
    while math.gcd(step, size) > 1:
        step += 1
    return step


def _quasirandom(columns: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """A quasirandom number in [0, 1) for each point: evenly spread among neighbours, and reproducible."""
    found: NDArray[np.float64] = (columns * STEPS[0] + rows * STEPS[1]) % 1.0
    return found


def _random(columns: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """A pseudorandom number in [0, 1) for each point."""
    mixed = (columns * 0x9E3779B1 & WORD) ^ (rows * 0x85EBCA77 & WORD)
    for shift, factor in ((15, 0x2C1B3C6D), (12, 0x297A2D39)):
        mixed = (mixed ^ mixed >> shift) * factor & WORD
    found: NDArray[np.float64] = (mixed ^ mixed >> 15) / 2.0**32
    return found


def _show_rare_series(
    found: Dots, cloud: Cloud, dot: NDArray[np.int64], series: NDArray[np.int64], share: NDArray[np.float64]
) -> None:
    """Gives each series at least one dot in each patch in which it has requests: at random, where its share is large.

    `dot`, `series` and `share` belong to the entries: `dot` is the dot that could show the entry. A series does not
    lose its only dot in a patch, except to failed requests.
    """
    kinds = max(len(cloud.parts), 1)
    patch = (found.rows // PATCH) * -(-found.across // PATCH) + found.columns // PATCH
    patches = -(-found.across // PATCH) * -(-found.up // PATCH)
    shown = np.bincount(patch * kinds + found.series, minlength=patches * kinds)
    target = patch[dot] * kinds + series
    missing = shown[target] == 0
    candidates = np.flatnonzero(missing)
    weight = share * (0.01 + _random(found.columns[dot], found.rows[dot]))
    candidates = candidates[np.lexsort((-weight[candidates], target[candidates]))]
    for entry in candidates.tolist():
        patch_series = target[entry]
        if shown[patch_series]:
            continue
        which = dot[entry]
        present = patch[which] * kinds + found.series[which]
        if shown[present] > 1 or cloud.parts[series[entry]].role is Role.FAILED:
            shown[present] -= 1
            shown[patch_series] += 1
            found.series[which] = series[entry]
