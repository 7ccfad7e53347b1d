"""A cloud in several resolutions: what is sparse travels finely, what is dense coarsely, and nothing twice.

A page can hold neither millions of points nor the raster that would tell them apart. But only lonely points gain from a
fine raster: where each cell is full, four joined into one look the same until somebody zooms in very far.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from iosonar.figures.model import Cloud, CloudPart

COARSE_SHARE = 0.7
"""Of the cells that may be filled, those that the coarse raster may take; the rest is for what is worth being finer."""


@dataclass(frozen=True)
class Level:
    """Some of a cloud's requests, counted in cells of which each is `joined[0]` × `joined[1]` of the cloud's own."""

    joined: tuple[int, int]
    cloud: Cloud


def levels(cloud: Cloud, most: int) -> tuple[Level, ...]:
    """The cloud in one resolution or two, with at most `most` filled cells (if joining can do that); finest first.

    Each request is counted in exactly one of them: in the finest where few cells near it are filled.
    """
    if sum(len(part.counts) for part in cloud.parts) <= most:
        return (Level((1, 1), cloud),)
    across, up = 1, 1
    while _filled(cloud, across, up) > COARSE_SHARE * most and (across < cloud.across or up < cloud.up):
        # By twos: until there are as many across as up first, then in turns.
        if cloud.across // across >= 2 * (cloud.up // up):
            across *= 2
        else:
            up *= 2
    places = [_places(cloud, part, across, up) for part in cloud.parts]
    within = [np.bincount(each, minlength=_size(cloud, across, up)) for each in places]
    worth = _worth_splitting(np.concatenate(within), most)
    fine = [inside[each] <= worth for inside, each in zip(within, places, strict=True)]
    parts = list(zip(cloud.parts, places, fine, strict=True))
    return (
        Level((1, 1), Cloud(cloud.across, cloud.up, tuple(_only(part, chosen) for part, _, chosen in parts))),
        Level(
            (across, up),
            Cloud(
                _joined(cloud.across, across),
                _joined(cloud.up, up),
                tuple(_coarse(part, place, ~chosen, _joined(cloud.across, across)) for part, place, chosen in parts),
            ),
        ),
    )


def _joined(cells: int, by: int) -> int:
    """How many cells remain; the last may reach beyond the raster."""
    return -(-cells // by)


def _size(cloud: Cloud, across: int, up: int) -> int:
    return _joined(cloud.across, across) * _joined(cloud.up, up)


def _places(cloud: Cloud, part: CloudPart, across: int, up: int) -> NDArray[np.int64]:
    """In which cell of the coarser raster each of a part's cells lies: row × width + column."""
    return (part.rows // up).astype(np.int64) * _joined(cloud.across, across) + part.columns // across


def _filled(cloud: Cloud, across: int, up: int) -> int:
    """How many cells of a coarser raster hold anything."""
    filled = 0
    for part in cloud.parts:
        marks = np.zeros(_size(cloud, across, up), np.bool_)
        marks[_places(cloud, part, across, up)] = True
        filled += int(marks.sum())
    return filled


def _worth_splitting(within: NDArray[np.int64], most: int) -> int:
    """The most filled fine cells that a coarse cell may have for them to be kept apart: so many that they all fit."""
    cells_with = np.bincount(within)
    cells_with[0] = 0
    # Split up, those with n cost n cells instead of one.
    spent = cells_with.sum() + np.cumsum(cells_with * (np.arange(len(cells_with)) - 1).clip(0))
    return max(int(np.searchsorted(spent, most, side="right")) - 1, 1)


def _only(part: CloudPart, chosen: NDArray[np.bool_]) -> CloudPart:
    return CloudPart(part.role, part.label, part.columns[chosen], part.rows[chosen], part.counts[chosen])


def _coarse(part: CloudPart, places: NDArray[np.int64], chosen: NDArray[np.bool_], across: int) -> CloudPart:
    # Sums of counts are exact as float64 up to 2^53.
    sums = np.bincount(places[chosen], weights=part.counts[chosen])
    filled = np.flatnonzero(sums)
    columns, rows = (filled % across).astype(np.int32), (filled // across).astype(np.int32)
    return CloudPart(part.role, part.label, columns, rows, sums[filled].astype(np.int64))
