"""A cloud as an image: how counts become colours, so that a band of millions and a lone outlier both can be seen."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from iosonar.figures.model import Cloud, CloudPart, Role
from iosonar.figures.palette import Palette

FAINTEST = 0.6
"""Opacity of a cell that holds one request."""

LONELY_REACH = 1 / 180
"""Of the cloud's width: how far around a cell is looked for neighbours."""

LONELY_SHARE = 0.12
"""A cell is lonely if at most this share of the cells within the reach of it, itself included, hold anything."""


@dataclass(frozen=True)
class Lonely:
    """Cells of one role that would be lost in the picture: they are drawn as dots, over the image."""

    role: Role
    columns: NDArray[np.int32]
    rows: NDArray[np.int32]
    crowd: NDArray[np.float64]
    """Which share of the cells within reach hold anything: from next to nothing to LONELY_SHARE."""

    def areas(self, largest: float) -> NDArray[np.float64]:
        """How large each dot is, in cells: `largest` where it is alone, and the less the more others are near.

        So what is sparse never looks heavier than what is denser: dots together cover no more than LONELY_SHARE, and
        where that many cells are filled, a dot is no larger than its cell.
        """
        return np.minimum(largest, LONELY_SHARE / self.crowd)


def colour(text: str) -> NDArray[np.float64]:
    """#rrggbb as three numbers from 0 to 1."""
    numbers: NDArray[np.float64] = np.array([int(text[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return numbers


def strength(counts: NDArray[np.int64], most: int) -> NDArray[np.float64]:
    """How strong a count looks, from 0 (one request) to 1 (as many as in the fullest cell), by its logarithm."""
    logarithms: NDArray[np.float64] = np.log(np.maximum(counts, 1))
    return logarithms / math.log(max(most, 2))


def shade(base: NDArray[np.float64], how_strong: NDArray[np.float64], palette: Palette) -> NDArray[np.float64]:
    """The colour for a strength: from the role's own to that colour pulled halfway to the ink."""
    pull = (0.55 * how_strong**1.5)[..., None]
    return base * (1 - pull) + colour(palette.ink) * pull * 0.6 + base * pull * 0.4


def image(cloud: Cloud, palette: Palette) -> NDArray[np.float64]:
    """The cloud as RGBA, row 0 at the bottom."""
    most = fullest(cloud)
    picture = np.zeros((cloud.up, cloud.across, 4))
    ground = [part for part in cloud.parts if part.role in (Role.READ, Role.WRITE)]
    for role_colours, alpha in [_mixed(ground, cloud, most, palette)] + [
        _flat(part, cloud, most, palette) for part in cloud.parts if part not in ground
    ]:
        _lay_over(picture, role_colours, alpha)
    return picture


def fullest(cloud: Cloud) -> int:
    """The most requests of one series in one cell."""
    return max((int(part.counts.max()) for part in cloud.parts if len(part.counts)), default=1)


def lonely(cloud: Cloud) -> list[Lonely]:
    """The cells with next to no neighbours, for each role."""
    filled = np.zeros((cloud.up, cloud.across), np.int32)
    for part in cloud.parts:
        filled[part.rows, part.columns] = 1
    reach = max(3, round(LONELY_REACH * cloud.across))
    side = 2 * reach + 1
    sums = np.pad(np.pad(filled, reach).cumsum(0).cumsum(1), ((1, 0), (1, 0)))
    near = sums[side:, side:] - sums[:-side, side:] - sums[side:, :-side] + sums[:-side, :-side]
    found = []
    for part in cloud.parts:
        crowd = near[part.rows, part.columns] / (side * side)
        alone = crowd <= LONELY_SHARE
        found.append(Lonely(part.role, part.columns[alone], part.rows[alone], crowd[alone]))
    return found


def _flat(
    part: CloudPart, cloud: Cloud, most: int, palette: Palette
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return _mixed([part], cloud, most, palette)


def _mixed(
    parts: list[CloudPart], cloud: Cloud, most: int, palette: Palette
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Colour and opacity of parts that lie beside each other in a cell: each has its share by its weight."""
    colours = np.zeros((cloud.up, cloud.across, 3))
    weights = np.zeros((cloud.up, cloud.across))
    clear = np.ones((cloud.up, cloud.across))
    for part in parts:
        how_strong = strength(part.counts, most)
        weight = 0.2 + how_strong
        colours[part.rows, part.columns] += (
            shade(colour(palette.roles[part.role]), how_strong, palette) * weight[:, None]
        )
        weights[part.rows, part.columns] += weight
        clear[part.rows, part.columns] *= 1 - (FAINTEST + (1 - FAINTEST) * np.minimum(2 * how_strong, 1))
    return colours / np.maximum(weights, 1e-9)[..., None], 1 - clear


def _lay_over(picture: NDArray[np.float64], colours: NDArray[np.float64], alpha: NDArray[np.float64]) -> None:
    """Porter and Duff's "over", in place."""
    below = picture[..., 3] * (1 - alpha)
    total = below + alpha
    safe = np.maximum(total, 1e-9)
    picture[..., :3] = (colours * alpha[..., None] + picture[..., :3] * below[..., None]) / safe[..., None]
    picture[..., 3] = total
