"""Lines as coverages of pixels.

A pixel is covered as its middle is near to a segment: fully within half the width, less half a pixel; not at all beyond
that, plus half a pixel. Of several segments the nearest counts, so that joints are round and not darker.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]

AT_ONCE = 1_000_000
"""Pixels of segments that are computed at once."""


@dataclass(frozen=True)
class Segments:
    """Straight lines from (x0, y0) to (x1, y1)."""

    x0: Numbers
    y0: Numbers
    x1: Numbers
    y1: Numbers

    def at(self, which: NDArray[np.bool_] | slice) -> Segments:
        """Some of them."""
        return Segments(self.x0[which], self.y0[which], self.x1[which], self.y1[which])

    def clipped(self, left: float, top: float, right: float, bottom: float) -> Segments:
        """Their parts within a rectangle."""
        dx, dy = self.x1 - self.x0, self.y1 - self.y0
        begin, end = np.zeros(len(dx)), np.ones(len(dx))
        with np.errstate(divide="ignore", invalid="ignore"):
            for change, start, low, high in ((dx, self.x0, left, right), (dy, self.y0, top, bottom)):
                one, two = (low - start) / change, (high - start) / change
                still = change == 0
                outside = still & ((start < low) | (start > high))
                begin = np.where(still, np.where(outside, 2.0, begin), np.maximum(begin, np.minimum(one, two)))
                end = np.where(still, end, np.minimum(end, np.maximum(one, two)))
        kept = begin <= end
        x0, y0, dx, dy, begin, end = (each[kept] for each in (self.x0, self.y0, dx, dy, begin, end))
        return Segments(x0 + begin * dx, y0 + begin * dy, x0 + end * dx, y0 + end * dy)


def of_points(x: Numbers, y: Numbers) -> Segments:
    """Joins points; NaN leaves a gap, and a point without neighbours is a dot."""
    known = np.isfinite(x) & np.isfinite(y)
    lonely = known & ~np.concatenate([[False], known[:-1]]) & ~np.concatenate([known[1:], [False]])
    joined = known[1:] & known[:-1]
    return Segments(
        np.concatenate([x[:-1][joined], x[lonely]]),
        np.concatenate([y[:-1][joined], y[lonely]]),
        np.concatenate([x[1:][joined], x[lonely]]),
        np.concatenate([y[1:][joined], y[lonely]]),
    )


def dashed(x: Numbers, y: Numbers, on: float, off: float) -> Segments:
    """The dashes of a line through points, of these lengths; NaN leaves a gap."""
    parts = []
    known = np.isfinite(x) & np.isfinite(y)
    borders = np.flatnonzero(np.diff(np.concatenate([[False], known, [False]]).astype(np.int8)))
    for first, end in zip(borders[::2].tolist(), borders[1::2].tolist(), strict=True):
        own_x, own_y = x[first:end], y[first:end]
        upto = np.concatenate([[0.0], np.cumsum(np.hypot(np.diff(own_x), np.diff(own_y)))])
        starts = np.arange(0.0, upto[-1], on + off)
        cuts = np.unique(np.concatenate([upto, starts, np.minimum(starts + on, upto[-1])]))
        middle = (cuts[1:] + cuts[:-1]) / 2
        shown = middle % (on + off) < on
        at_x, at_y = np.interp(cuts, upto, own_x), np.interp(cuts, upto, own_y)
        parts.append((at_x[:-1][shown], at_y[:-1][shown], at_x[1:][shown], at_y[1:][shown]))
    if not parts:
        return Segments(*(np.zeros(0) for _ in range(4)))
    return Segments(*(np.concatenate(each) for each in zip(*parts, strict=True)))


def cover(shape: tuple[int, int], segments: Segments, width: float, *, blunt: bool = False) -> NDArray[np.float32]:
    """The coverage of an area of pixels, from 0 to 1; `blunt` segments end at their ends, others are round there."""
    found = np.zeros(shape, np.float32)
    margin = width + 1
    segments = segments.clipped(-margin, -margin, shape[1] + margin, shape[0] + margin)
    steep = np.abs(segments.y1 - segments.y0) > np.abs(segments.x1 - segments.x0)
    flat, upright = segments.at(~steep), segments.at(steep)
    _cover(found, flat, width, blunt)
    _cover(found.T, Segments(upright.y0, upright.x0, upright.y1, upright.x1), width, blunt)
    return found


def _cover(area: NDArray[np.float32], segments: Segments, width: float, blunt: bool) -> None:
    """Covers by segments that are not steep: column by column."""
    if not len(segments.x0):
        return
    swapped = segments.x0 > segments.x1
    x0, x1 = (np.where(swapped, one, two) for one, two in ((segments.x1, segments.x0), (segments.x0, segments.x1)))
    y0, y1 = (np.where(swapped, one, two) for one, two in ((segments.y1, segments.y0), (segments.y0, segments.y1)))
    reach = width / 2 + 0.5
    first = np.maximum(np.floor(x0 - reach), 0).astype(np.int64)
    last = np.minimum(np.floor(x1 + reach), area.shape[1] - 1).astype(np.int64)
    number = np.maximum(last - first + 1, 0)
    # Pixels above each other, of a line as steep as possible.
    high = math.ceil(2 * reach * math.sqrt(2)) + 1
    upto = np.cumsum(number)
    cuts = np.searchsorted(upto, np.arange(0, int(upto[-1]) + AT_ONCE // high, AT_ONCE // high), side="left")
    for low, end in zip(cuts[:-1].tolist(), [*cuts[1:-1].tolist(), len(number)], strict=True):
        some = slice(low, end)
        if low < end:
            _columns(area, (x0[some], y0[some], x1[some], y1[some]), first[some], number[some], width, high, blunt)


def _columns(
    area: NDArray[np.float32],
    ends: tuple[Numbers, Numbers, Numbers, Numbers],
    first: NDArray[np.int64],
    number: NDArray[np.int64],
    width: float,
    high: int,
    blunt: bool,
) -> None:
    x0, y0, x1, y1 = ends
    length = np.hypot(x1 - x0, y1 - y0)
    safe = np.where(length > 0, length, 1.0)
    of = np.repeat(np.arange(len(number)), number)
    column = np.arange(len(of)) - np.repeat(np.cumsum(number) - number, number) + first[of]
    # Of each column: the way along the segment and beside it, seen from a pixel at y = 0.
    across, up = ((x1 - x0) / safe)[of], ((y1 - y0) / safe)[of]
    across[length[of] == 0] = 1.0
    ahead = column + 0.5 - x0[of]
    slope = up / across
    middle = y0[of] + np.clip(ahead, 0, (x1 - x0)[of]) * slope
    row = np.floor(middle - high / 2 + 0.5).astype(np.int64)
    flat = area.reshape(-1) if area.flags.c_contiguous else area.T.reshape(-1)
    by_row, by_column = (area.strides[0] // area.itemsize, area.strides[1] // area.itemsize)
    longest = length[of]
    for step in range(high):
        at = row + step
        off = at + 0.5 - y0[of]
        along = ahead * across + off * up
        beside = np.abs(off * across - ahead * up)
        if blunt:
            beyond = np.maximum(-along, along - longest)
            share = np.clip(width / 2 + 0.5 - beside, 0, min(width, 1.0)) * np.clip(0.5 - beyond, 0, 1)
        else:
            beyond = np.maximum(np.maximum(-along, along - longest), 0)
            share = np.clip(width / 2 + 0.5 - np.hypot(beside, beyond), 0, min(width, 1.0))
        kept = (share > 0) & (at >= 0) & (at < area.shape[0])
        place = at[kept] * by_row + column[kept] * by_column
        np.maximum.at(flat, place, share[kept].astype(np.float32))


def below(shape: tuple[int, int], edges: Numbers, y: Numbers, base: float) -> NDArray[np.float32]:
    """The coverage of the area between steps and `base`; NaN leaves a gap. Each column is looked at four times."""
    many = 4
    places = (np.arange(shape[1] * many) + 0.5) / many
    step = np.searchsorted(edges, places, side="right") - 1
    inside = (step >= 0) & (step < len(y))
    value = np.full(len(places), np.nan)
    value[inside] = y[step[inside]]
    known = np.isfinite(value)
    value = np.where(known, value, base)
    begin, end = (np.clip(each, 0, shape[0]) for each in (np.minimum(value, base), np.maximum(value, base)))
    change = np.zeros((shape[0] + 2, shape[1]), np.float32)
    column = np.arange(len(places)) // many
    for at, sign in ((begin, 1.0), (end, -1.0)):
        row = np.floor(at).astype(np.int64)
        np.add.at(change, (row, column), sign * (1 - (at - row)) / many)
        np.add.at(change, (row + 1, column), sign * (at - row) / many)
    found: NDArray[np.float32] = np.cumsum(change[: shape[0]], axis=0, dtype=np.float32)
    np.clip(found, 0, 1, out=found)
    found[found < 1e-4] = 0
    return found
