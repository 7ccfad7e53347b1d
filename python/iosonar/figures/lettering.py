"""Text as coverages of pixels, in the font that matplotlib brings."""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

Coverage = NDArray[np.uint8]

NAMES = {"normal": "DejaVuSans.ttf", "bold": "DejaVuSans-Bold.ttf"}


@lru_cache(10_000)
def width(text: str, pixels: float, weight: str) -> float:
    """The width of a line of text with letters of that height. Pictures of a report have many texts in common."""
    return float(_font(pixels, weight).getlength(text))


@lru_cache(1000)
def letters(text: str, pixels: float, weight: str, halo: float = 0.0) -> tuple[Coverage, int, int]:
    """The coverage of a text (0 to 255), and the place of its left upper corner, seen from the start of its baseline.

    A halo makes strokes wider by that much on each side.
    """
    font = _font(pixels, weight)
    left, top, right, bottom = font.getbbox(text, anchor="ls", stroke_width=halo)
    first, upper = int(np.floor(left)) - 1, int(np.floor(top)) - 1
    picture = Image.new("L", (max(int(np.ceil(right)) - first, 0) + 1, max(int(np.ceil(bottom)) - upper, 0) + 1))
    ImageDraw.Draw(picture).text((-first, -upper), text, 255, font, anchor="ls", stroke_width=halo)
    return np.asarray(picture), first, upper


def turned(coverage: Coverage, degrees: float) -> Coverage:
    """The same, turned counterclockwise about its middle."""
    return np.asarray(Image.fromarray(coverage).rotate(degrees, Image.Resampling.BICUBIC, expand=True))


@lru_cache(100)
def _font(pixels: float, weight: str) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(str(_directory() / NAMES[weight]), pixels)


@lru_cache(1)
def _directory() -> Path:
    """Where the fonts are, without importing matplotlib: that takes as long as twenty pictures."""
    found = find_spec("matplotlib")
    usual = Path((found and found.origin) or "").parent / "mpl-data" / "fonts" / "ttf"
    if (usual / NAMES["normal"]).exists():
        return usual
    import matplotlib

    return Path(matplotlib.get_data_path()) / "fonts" / "ttf"
