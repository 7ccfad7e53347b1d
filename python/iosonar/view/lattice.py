"""The dots that a plot has for a window, as in report/assets/clouds.js: the view counts requests for just these.

Dots are at multiples of their distance from the start of the axis, so that they keep their places while a reader pans.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from iosonar.errors import UserError
from iosonar.figures.model import Axis, Scale

MARGIN = 0.15
"""The share of a window that is read beyond each of its ends, so that a small pan shows no gap."""

MAX_PIXELS = 8192


@dataclass(frozen=True)
class Window:
    """What a plot shows: ranges of its axes, in pixels of its frame."""

    x_low: float
    x_high: float
    y_low: float
    y_high: float
    width: int = 1280
    height: int = 284

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Window:
        """From the parameters of an address."""
        try:
            x_low, x_high, y_low, y_high = (float(query[name]) for name in ("x0", "x1", "y0", "y1"))
            width, height = (int(float(query.get(name, default))) for name, default in (("w", "1280"), ("h", "284")))
        except (KeyError, ValueError, OverflowError) as error:
            raise UserError("a window has the numbers x0, x1, y0, y1, w and h") from error
        if not all(map(math.isfinite, (x_low, x_high, y_low, y_high))) or x_low >= x_high or y_low >= y_high:
            raise UserError("the window is empty")
        size = (min(max(each, 50), MAX_PIXELS) for each in (width, height))
        return cls(x_low, x_high, y_low, y_high, *size)


@dataclass(frozen=True)
class Lattice:
    """`count` cells from `axis.low` to `axis.high`."""

    axis: Axis
    count: int

    def at(self, index: float) -> float:
        """The lower end of a cell."""
        axis, share = self.axis, index / self.count
        if axis.scale is Scale.LOG:
            return axis.low * float((axis.high / axis.low) ** share)
        return axis.low + (axis.high - axis.low) * share


def lattice(axis: Axis, low: float, high: float, pixels: int, dot: int, margin: float = 0.0) -> Lattice:
    """The dots of a part of an axis, with a margin within the axis."""
    start, to = share_of(axis, low), share_of(axis, high)
    place = max((to - start) * dot / pixels, 1e-15)
    first, last = math.floor(start / place + 1e-6), math.ceil(to / place - 1e-6)
    more = round((last - first) * margin)
    first = max(first - more, min(first, 0))
    last = max(min(last + more, max(last, math.ceil(1 / place))), first + 1)
    whole = Lattice(axis, 1)
    return Lattice(replace(axis, low=whole.at(first * place), high=whole.at(last * place)), last - first)


def share_of(axis: Axis, value: float) -> float:
    """The position of a value on an axis; values that a logarithmic axis lacks are at its start."""
    return 0.0 if axis.scale is Scale.LOG and value <= 0 else axis.share(value)
