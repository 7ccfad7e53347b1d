"""A cloud in several resolutions: sparse areas fine, dense areas coarse, each request only once.

A page can hold neither millions of points nor a raster that would separate them. But only isolated points gain from a
fine raster: if all cells are filled, four of them joined look the same until the reader zooms in very far.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from iosonar.figures.model import Cloud, CloudPart

COARSE_SHARE = 0.7
"""The share of the filled cells that the coarse raster may take; the rest is for areas that gain from a fine one."""


@dataclass(frozen=True)
class Level:
    """Some of a cloud's requests, counted in cells that each join `joined[0]` × `joined[1]` cells of the cloud."""

    joined: tuple[int, int]
    cloud: Cloud


def levels(cloud: Cloud, max_cells: int) -> tuple[Level, ...]:
    """The cloud in one or two resolutions, finest first, with at most `max_cells` filled cells, if possible.

    Each request is in exactly one of them: in the finer one if few cells nearby are filled.
    """
    if sum(len(part.counts) for part in cloud.parts) <= max_cells:
        return (Level((1, 1), cloud),)
    across, up, marks = 1, 1, _marks(cloud)
    while sum(int(np.count_nonzero(each)) for each in marks) > COARSE_SHARE * max_cells and (
        across < cloud.across or up < cloud.up
    ):
        # Doubling: first across, until there are as many cells as up, then alternately.
        if cloud.across // across >= 2 * (cloud.up // up):
            across, marks = across * 2, [_columns_joined(each) for each in marks]
        else:
            up, marks = up * 2, [_rows_joined(each) for each in marks]
    places = [_places(cloud, part, across, up) for part in cloud.parts]
    within = [np.bincount(each, minlength=_size(cloud, across, up)) for each in places]
    worth = _worth_splitting(np.concatenate(within), max_cells)
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
    """The number of joined cells; the last may extend beyond the raster."""
    return -(-cells // by)


def _size(cloud: Cloud, across: int, up: int) -> int:
    return _joined(cloud.across, across) * _joined(cloud.up, up)


def _places(cloud: Cloud, part: CloudPart, across: int, up: int) -> NDArray[np.int64]:
    """The cell of the coarser raster that each of a part's cells is in: row × width + column."""
    return (part.rows // up).astype(np.int64) * _joined(cloud.across, across) + part.columns // across


def _marks(cloud: Cloud) -> list[NDArray[np.bool_]]:
    """Which cells of the raster each part fills."""
    found = []
    for part in cloud.parts:
        marks = np.zeros((cloud.up, cloud.across), np.bool_)
        marks.reshape(-1)[_places(cloud, part, 1, 1)] = True
        found.append(marks)
    return found


def _rows_joined(marks: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which cells are filled if each joins two rows; the last may have one."""
    joined = marks[::2].copy()
    joined[: len(marks) // 2] |= marks[1::2]
    return joined


def _columns_joined(marks: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The same of two columns."""
    if marks.shape[1] % 2:
        marks = np.pad(marks, ((0, 0), (0, 1)))
    # Two bytes at once.
    joined: NDArray[np.bool_] = marks.view(np.uint16) != 0
    return joined


def _worth_splitting(within: NDArray[np.int64], max_cells: int) -> int:
    """The largest number of filled fine cells with which a coarse cell is split, so that all fit into `max_cells`."""
    cells_with = np.bincount(within)
    cells_with[0] = 0
    # A split cell with n fine cells costs n cells instead of one.
    spent = cells_with.sum() + np.cumsum(cells_with * (np.arange(len(cells_with)) - 1).clip(0))
    return max(int(np.searchsorted(spent, max_cells, side="right")) - 1, 1)


def _only(part: CloudPart, chosen: NDArray[np.bool_]) -> CloudPart:
    return CloudPart(part.role, part.label, part.columns[chosen], part.rows[chosen], part.counts[chosen])


def _coarse(part: CloudPart, places: NDArray[np.int64], chosen: NDArray[np.bool_], across: int) -> CloudPart:
    # Sums of counts are exact as float64 up to 2^53.
    sums = np.bincount(places[chosen], weights=part.counts[chosen])
    filled = np.flatnonzero(sums)
    columns, rows = (filled % across).astype(np.int32), (filled // across).astype(np.int32)
    return CloudPart(part.role, part.label, columns, rows, sums[filled].astype(np.int64))
