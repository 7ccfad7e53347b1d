"""Clouds as dots: each series has the area of its share, rare series are visible, and columns are not bars."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iosonar.figures.dots import MAX_COLUMN, PATCH, Dots, dots
from iosonar.figures.model import Cloud, CloudPart, Role

ROLES = (Role.READ, Role.WRITE, Role.PUSHED_READ, Role.PUSHED_WRITE, Role.OTHER, Role.FAILED)
Cells = dict[tuple[int, int], int]


def cloud(*parts: Cells, across: int, up: int, whole_numbers: bool = False) -> Cloud:
    """A cloud with these cells."""
    made = []
    for role, cells in zip(ROLES, parts, strict=False):
        columns, rows = (np.array([place[axis] for place in cells], np.int32) for axis in (0, 1))
        made.append(CloudPart(role, role, columns, rows, np.array(list(cells.values()), np.int64)))
    return Cloud(across, up, tuple(made), whole_numbers)


def area(found: Dots, series: int) -> float:
    """The share of the dots of a series."""
    return float((found.series == series).mean())


def everywhere(count: int, size: int = 96) -> Cells:
    return {(column, row): count for column in range(size) for row in range(size)}


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_each_series_has_the_area_of_its_share_in_any_order(order: tuple[int, int]) -> None:
    # 5.7 % of the writes were pushed back, in every cell.
    parts = (everywhere(943), everywhere(57))
    found = dots(cloud(*(parts[number] for number in order), across=96, up=96), 96, 96)
    assert len(found.series) == 96 * 96
    assert area(found, order.index(1)) == pytest.approx(0.057, abs=0.004)


def test_a_rare_series_is_visible() -> None:
    rare = {(3, 3): 1, (4, 5): 1, (80, 90): 1}
    found = dots(cloud(everywhere(1000), rare, across=96, up=96), 96, 96)
    shown = set(zip(found.columns[found.series == 1].tolist(), found.rows[found.series == 1].tolist(), strict=True))
    assert shown <= set(rare), "only where it is"
    assert {(column // PATCH, row // PATCH) for column, row in shown} == {(0, 0), (5, 5)}


def test_a_failure_among_other_requests_is_visible() -> None:
    failed = cloud({(5, 5): 9}, {}, {}, {}, {}, {(5, 5): 1}, across=10, up=10)
    assert dots(failed, 10, 10).series.tolist() == [5]


def test_the_column_of_an_integer_has_a_dot_for_each_request() -> None:
    # Depths 1 to 4, with room for 30 dots each.
    found = dots(cloud({(1, 3): 1, (2, 4): 5}, {(2, 4): 2}, across=4, up=10, whole_numbers=True), 120, 10)
    assert found.requests.tolist() == [1] * 8
    assert found.columns[found.rows == 3].tolist() == [45], "in the middle of its column"
    assert sorted(found.series[found.rows == 4].tolist()) == [0] * 5 + [1] * 2
    assert len(set(found.columns[found.rows == 4].tolist())) == 7, "none over another"


def test_columns_of_integers_have_gaps() -> None:
    full = {(column, row): 10_000 for column in range(10) for row in range(10)}
    found = dots(cloud(full, across=10, up=10, whole_numbers=True), 100, 10)
    assert len(set(found.columns.tolist())) == 80
    only = dots(cloud({(0, 5): 10**6}, across=1, up=10, whole_numbers=True), 500, 10)
    assert len(only.columns) == MAX_COLUMN and abs(int(np.median(only.columns)) - 250) <= 1


places = st.tuples(st.integers(0, 11), st.integers(0, 8))
many = st.dictionaries(places, st.integers(1, 10**6), max_size=60)


@given(many, many, st.integers(1, 60), st.integers(1, 40), st.booleans())
@settings(max_examples=150)
def test_every_request_is_in_a_dot_within_the_lattice(
    reads: Cells, writes: Cells, across: int, up: int, whole_numbers: bool
) -> None:
    found = dots(cloud(reads, writes, across=12, up=9, whole_numbers=whole_numbers), across, up)
    assert found.requests.sum() == pytest.approx(sum(reads.values()) + sum(writes.values()))
    assert ((found.columns >= 0) & (found.columns < across) & (found.rows >= 0) & (found.rows < up)).all()
    present = {number for number, cells in enumerate((reads, writes)) if cells}
    assert set(found.series.tolist()) <= present
