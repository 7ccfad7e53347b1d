"""Draws dots as an image, with colours by count, so that both a band of millions and a single outlier are visible."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from iosonar.figures.dots import Dots
from iosonar.figures.model import Cloud
from iosonar.figures.palette import Palette

MAX_PAPER = 0.28
"""The share of background in the colour of a dot with one request."""

MAX_INK = 0.6
"""The share of ink in the colour of the fullest dot."""

CORNER_OPACITY = 0.5
"""Opacity of the corner pixels of isolated dots."""


def colour(text: str) -> NDArray[np.float64]:
    """#rrggbb as three numbers from 0 to 1."""
    numbers: NDArray[np.float64] = np.array([int(text[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return numbers


def intensity(counts: NDArray[np.float64], maximum: float) -> NDArray[np.float64]:
    """The intensity of a count, from 0 (one request) to 1 (the fullest dot), by logarithm."""
    logarithms: NDArray[np.float64] = np.log(np.maximum(counts, 1.0))
    return np.minimum(logarithms / math.log(max(maximum, 2.0)), 1.0)


def shade(base: NDArray[np.float64], intensities: NDArray[np.float64], palette: Palette) -> NDArray[np.float64]:
    """The colour for an intensity: from a paler to a darker shade of the role's colour."""
    pale = (MAX_PAPER * (1 - np.minimum(2 * intensities, 1)))[..., None]
    deep = (MAX_INK * np.maximum(2 * intensities - 1, 0))[..., None]
    own = base * (1 - pale) + colour(palette.plot) * pale
    return own * (1 - deep) + colour(palette.ink) * deep


def image(found: Dots, cloud: Cloud, palette: Palette, pixels: int) -> NDArray[np.float64]:
    """The dots as RGBA, each of `pixels` in both directions, row 0 at the bottom."""
    return _scaled(found, _colours(found, cloud, palette), 1.0, pixels)


def image_bytes(found: Dots, cloud: Cloud, palette: Palette, pixels: int) -> NDArray[np.uint8]:
    """The same in bytes."""
    return _scaled(found, np.round(_colours(found, cloud, palette) * 255).astype(np.uint8), 255, pixels)


def _colours(found: Dots, cloud: Cloud, palette: Palette) -> NDArray[np.float64]:
    """The colour of each dot."""
    bases = np.array([colour(palette.roles[part.role]) for part in cloud.parts] or [np.zeros(3)])
    return shade(bases[found.series], intensity(found.requests, found.maximum), palette)


def _scaled(found: Dots, colours: NDArray[Any], opaque: float, pixels: int) -> NDArray[Any]:
    small = np.zeros((found.up, found.across, 4), colours.dtype)
    small[found.rows, found.columns, :3] = colours
    small[found.rows, found.columns, 3] = opaque
    if pixels == 1:
        return small
    large = small.repeat(pixels, 0).repeat(pixels, 1)
    if pixels > 2:
        _round(large, small[..., 3] > 0, pixels, CORNER_OPACITY * opaque)
    return large


def _round(large: NDArray[Any], filled: NDArray[np.bool_], pixels: int, opacity: float) -> None:
    """Softens the corners of each dot that have no neighbour: a single dot is round, a full area has no holes."""
    wide = np.pad(filled, 1)
    for row, up in ((0, wide[:-2, 1:-1]), (pixels - 1, wide[2:, 1:-1])):
        for column, across in ((0, wide[1:-1, :-2]), (pixels - 1, wide[1:-1, 2:])):
            corner = large[row::pixels, column::pixels, 3]
            corner[filled & ~up & ~across] = opacity
