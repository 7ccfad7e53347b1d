"""The size of a picture, and where in it the diagram lies."""

from __future__ import annotations

from dataclasses import dataclass

from iosonar.errors import UserError

# All in pixels of a picture of 1200 × 800; larger ones are scaled.
BASE_WIDTH, BASE_HEIGHT = 1200, 800
LEFT, RIGHT, TOP, BOTTOM = 84, 24, 138, 76

CELL = 2
"""Pixels of a cell of a cloud, in each direction, in a picture of the base size."""

FINEST = 1.4
"""By how much cells may be finer in large pictures: with finer ones each holds next to nothing, and bands turn pale."""

MOST_ACROSS = 1200
"""No cloud needs more cells than this: in larger pictures its cells grow."""


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
        width, _, height = text.lower().partition("x")
        if not (width.isdecimal() and height.isdecimal()):
            raise UserError(f"a picture's size looks like 1200x800 or 4k, not {text!r}")
        if not (400 <= int(width) <= 16384 and 300 <= int(height) <= 16384):
            raise UserError(f"a picture's size is between 400x300 and 16384x16384, not {text}")
        return cls(int(width), int(height))

    @property
    def scale(self) -> float:
        """How much larger than in a picture of the base size everything is drawn."""
        return min(self.width / BASE_WIDTH, self.height / BASE_HEIGHT)

    @property
    def cells(self) -> tuple[int, int]:
        """How many cells a cloud has in this picture, across and up."""
        across, up = self.width / self.scale - LEFT - RIGHT, self.height / self.scale - TOP - BOTTOM
        finer = min(max(self.scale, 1.0), FINEST)
        across, up = across / CELL * finer, up / CELL * finer
        shrink = min(1.0, MOST_ACROSS / across)
        return max(int(across * shrink), 10), max(int(up * shrink), 10)

    @property
    def slices(self) -> int:
        """Into how many slices of time a line is cut."""
        return self.cells[0]


@dataclass(frozen=True)
class PageSize(Size):
    """What figures of a page are computed for: finer than they are drawn, so that there is something to zoom into."""

    @property
    def cells(self) -> tuple[int, int]:
        """How many cells a cloud has, across and up. Over an hour that tells 0.2 s apart; see figures/levels.py."""
        return 16384, 1024

    @property
    def slices(self) -> int:
        """As for a picture: a line has nothing to gain from more."""
        return 2048


PAGE = PageSize()
