"""The size of a picture, and the position of the diagram in it."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from iosonar.errors import UserError

# All in pixels of a picture of 1200 × 800; larger ones are scaled.
BASE_WIDTH, BASE_HEIGHT = 1200, 800
LEFT, RIGHT, TOP, BOTTOM = 100, 32, 154, 94

DOTS = ((3_000, 4), (30_000, 3), (math.inf, 2))
"""Dot size by number of requests in the cloud: (up to requests, pixels of the base size). Fewer dots are larger."""

MAX_REFINEMENT = 1.4
"""The largest refinement of dots in large pictures: with finer ones each would hold hardly any request."""


SLICE = 2
"""Width of a line's time slice, in pixels of the base size."""

MAX_SINGLE_REQUESTS = 200_000
"""The most requests that a page has individually: larger clouds are joined where they are dense."""


def dot_of(requests: int) -> int:
    """The dot size for a cloud of that many requests, in pixels of the base size."""
    return next(pixels for limit, pixels in DOTS if requests <= limit)


@dataclass(frozen=True)
class Size:
    """Width and height of a picture in pixels."""

    width: int = BASE_WIDTH
    height: int = BASE_HEIGHT

    @classmethod
    def parse(cls, text: str) -> Size:
        """Parses `1200x800` or `4k`."""
        if text.lower() == "4k":
            return cls(3840, 2160)
        found = re.fullmatch(r"0*([0-9]+)x0*([0-9]+)", text.lower())
        if found is None:
            raise UserError(f"invalid picture size {text!r}: write it like 1200x800 or 4k")
        # Python refuses to parse thousands of digits.
        width, height = (int(digits[:6]) for digits in found.groups())
        if not (400 <= width <= 16384 and 300 <= height <= 16384):
            raise UserError(f"picture size {text} is out of range: use 400x300 to 16384x16384")
        return cls(width, height)

    @property
    def scale(self) -> float:
        """The scale relative to the base size."""
        return min(self.width / BASE_WIDTH, self.height / BASE_HEIGHT)

    def dot(self, requests: int) -> int:
        """The dot size for a cloud of that many requests, in pixels of this picture."""
        return max(round(dot_of(requests) * self.scale / min(max(self.scale, 1.0), MAX_REFINEMENT)), 1)

    def cells(self, requests: int) -> tuple[int, int]:
        """The number of cells of a cloud in this picture, across and up: one for each dot."""
        across, up = self.width - (LEFT + RIGHT) * self.scale, self.height - (TOP + BOTTOM) * self.scale
        dot = self.dot(requests)
        return max(round(across / dot), 10), max(round(up / dot), 10)

    @property
    def slices(self) -> int:
        """The number of time slices of a line."""
        return max(round((self.width / self.scale - LEFT - RIGHT) / SLICE), 10)


@dataclass(frozen=True)
class PageSize(Size):
    """The resolution of figures on a page: finer than they are drawn, so that the reader can zoom in."""

    def cells(self, requests: int) -> tuple[int, int]:
        """The number of cells of a cloud, across and up: so fine that few requests stay apart, see figures/levels.py.

        Only nonempty cells take space. With many requests, an hour is divided into steps of 0.2 s.
        """
        return (1 << 19, 1 << 12) if requests <= MAX_SINGLE_REQUESTS else (1 << 14, 1 << 10)

    @property
    def slices(self) -> int:
        """About as for a picture: more would not improve a line."""
        return 2048


@dataclass(frozen=True)
class AxesSize(Size):
    """The size of a diagram alone, without the texts around it."""

    def cells(self, requests: int) -> tuple[int, int]:
        """The number of cells of a cloud, across and up: one for each dot."""
        dot = self.dot(requests)
        return max(round(self.width / dot), 10), max(round(self.height / dot), 10)


PAGE = PageSize()
