"""Rasters of several resolutions: each request counts once, and isolated points keep their position."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from iosonar.figures.levels import levels
from iosonar.figures.model import Cloud, CloudPart, Role

ACROSS, UP = 96, 20

Cells = dict[tuple[int, int], int]


def part(role: Role, cells: Cells) -> CloudPart:
    columns, rows = (np.array([place[axis] for place in cells], np.int32) for axis in (0, 1))
    return CloudPart(role, role, columns, rows, np.array(list(cells.values()), np.int64))


def cells_of(part: CloudPart) -> Cells:
    return {
        (int(column), int(row)): int(count)
        for column, row, count in zip(part.columns, part.rows, part.counts, strict=True)
    }


places = st.tuples(st.integers(0, ACROSS - 1), st.integers(0, UP - 1))
many = st.dictionaries(places, st.integers(1, 10**9), max_size=300)


@given(many, many, st.integers(4, 200))
@settings(max_examples=200)
def test_each_request_is_in_exactly_one_level(reads: Cells, writes: Cells, most: int) -> None:
    cloud = Cloud(ACROSS, UP, (part(Role.READ, reads), part(Role.WRITE, writes)))
    found = levels(cloud, most)
    assert sum(len(part.counts) for level in found for part in level.cloud.parts) <= max(most, 2)
    for number, cells in enumerate((reads, writes)):
        # By definition: the finest level has original cells, the coarser one the sums of the others.
        finest = cells_of(found[0].cloud.parts[number])
        assert all(cells[place] == count for place, count in finest.items())
        rest: Counter[tuple[int, int]] = Counter()
        for (column, row), count in cells.items():
            if (column, row) not in finest:
                across, up = found[-1].joined
                rest[column // across, row // up] += count
        coarse = cells_of(found[-1].cloud.parts[number]) if len(found) > 1 else {}
        assert coarse == rest


def test_an_isolated_point_keeps_its_position_beside_a_full_band() -> None:
    band = {(column, row): 1000 for column in range(ACROSS) for row in range(8)}
    cloud = Cloud(ACROSS, UP, (part(Role.READ, band | {(51, 17): 1}),))
    fine, coarse = levels(cloud, 120)
    assert cells_of(fine.cloud.parts[0]) == {(51, 17): 1}
    assert coarse.cloud.parts[0].counts.sum() == 1000 * len(band)


def test_a_small_cloud_has_one_level() -> None:
    cloud = Cloud(ACROSS, UP, (part(Role.READ, {(1, 2): 3}),))
    (only,) = levels(cloud, 1)
    assert only.joined == (1, 1) and only.cloud is cloud
