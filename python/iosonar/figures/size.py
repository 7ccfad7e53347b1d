"""The size of a picture, and where in it the diagram lies."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from iosonar.errors import UserError

# All in pixels of a picture of 1200 × 800; larger ones are scaled.
BASE_WIDTH, BASE_HEIGHT = 1200, 800
LEFT, RIGHT, TOP, BOTTOM = 100, 32, 154, 94

DOTS = ((3_000, 4), (30_000, 3), (math.inf, 2))
"""Up to how many requests a cloud has dots of how many pixels, in a picture of the base size: few are seen better."""

FINEST = 1.4
"""By how much dots may be finer in large pictures: with finer ones each holds next to nothing, and bands turn pale."""


SLICE = 2
"""Pixels of a slice of time of a line, in a picture of the base size."""

FEW = 200_000
"""Requests that a page holds one by one: clouds of more are joined where they are dense."""


def dot_of(requests: int) -> int:
    """The size of the dots of a cloud of so many requests, in pixels of the base size."""
    return next(pixels for most, pixels in DOTS if requests <= most)


@dataclass(frozen=True)
class Size:
    """Width and height of a picture in pixels."""

    width: int = BASE_WIDTH
    height: int = BASE_HEIGHT

    @classmethod
    def parse(cls, text: str) -> Size:
        """From `1200x800` or `4k`."""
        if text.lower() == "4k":
            return cls(3840, 2160)
        found = re.fullmatch(r"0*([0-9]+)x0*([0-9]+)", text.lower())
        if found is None:
            raise UserError(f"invalid picture size {text!r}: write it like 1200x800 or 4k")
        # Python makes no number of thousands of digits.
        width, height = (int(digits[:6]) for digits in found.groups())
        if not (400 <= width <= 16384 and 300 <= height <= 16384):
            raise UserError(f"picture size {text} is out of range: use 400x300 to 16384x16384")
        return cls(width, height)

    @property
    def scale(self) -> float:
        """How much larger than in a picture of the base size everything is drawn."""
        return min(self.width / BASE_WIDTH, self.height / BASE_HEIGHT)

    def dot(self, requests: int) -> int:
        """How many pixels of the picture itself the dots of a cloud of so many requests have, in each direction."""
        return max(round(dot_of(requests) * self.scale / min(max(self.scale, 1.0), FINEST)), 1)

    def cells(self, requests: int) -> tuple[int, int]:
        """How many cells a cloud of so many requests has in this picture, across and up: one for each dot."""
        across, up = self.width - (LEFT + RIGHT) * self.scale, self.height - (TOP + BOTTOM) * self.scale
        dot = self.dot(requests)
        return max(round(across / dot), 10), max(round(up / dot), 10)

    @property
    def slices(self) -> int:
        """Into how many slices of time a line is cut."""
        return max(round((self.width / self.scale - LEFT - RIGHT) / SLICE), 10)


@dataclass(frozen=True)
class PageSize(Size):
    """What figures of a page are computed for: finer than they are drawn, so that there is something to zoom into."""

    def cells(self, requests: int) -> tuple[int, int]:
        """How many cells a cloud has, across and up: so fine that the few don't meet, see figures/levels.py.

        Only cells that hold anything cost anything. Of many requests, an hour is cut into steps of 0.2 s.
        """
        return (1 << 19, 1 << 12) if requests <= FEW else (1 << 14, 1 << 10)

    @property
    def slices(self) -> int:
        """As for a picture: a line has nothing to gain from more."""
        return 2048


PAGE = PageSize()
