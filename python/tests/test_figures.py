from __future__ import annotations

import numpy as np
import pytest

from iosonar.errors import UserError
from iosonar.figures import raster
from iosonar.figures.model import Axis, Cloud, CloudPart, Role, Scale, Unit
from iosonar.figures.palette import PALETTES, Theme
from iosonar.figures.size import Size
from iosonar.figures.ticks import ticks


def cloud(*cells: tuple[int, int, int], role: Role = Role.READ, size: int = 40) -> Cloud:
    columns, rows, counts = (np.array(numbers) for numbers in zip(*cells, strict=True))
    return Cloud(size, size, (CloudPart(role, "", columns, rows, counts),))


def test_logarithmic_ticks_carry_their_unit() -> None:
    marks = ticks(Axis("Latency", Unit.SECONDS, 5e-6, 2e-2, Scale.LOG))
    assert marks.texts == ["10 µs", "100 µs", "1 ms", "10 ms"]
    assert marks.unit == ""


def test_a_short_logarithmic_axis_has_more_labels() -> None:
    assert ticks(Axis("Latency", Unit.SECONDS, 2e-4, 2e-3, Scale.LOG)).texts == ["200 µs", "500 µs", "1 ms", "2 ms"]


def test_a_label_that_says_what_counts_has_no_unit_beside_it() -> None:
    assert ticks(Axis("Requests in a bin", Unit.REQUESTS, 1, 100)).unit == ""
    assert ticks(Axis("In flight", Unit.REQUESTS, 0, 100)).unit == "requests"


@pytest.mark.parametrize(
    ("length", "unit", "last"), [(0.1, "ms", "100"), (36, "s", "35"), (3600, "min", "60"), (86400, "h", "24")]
)
def test_a_timeline_has_the_unit_that_suits_its_length(length: float, unit: str, last: str) -> None:
    marks = ticks(Axis("Time", Unit.TIMELINE, 0, length))
    assert (marks.unit, marks.texts[-1]) == (unit, last)


def test_linear_ticks() -> None:
    assert ticks(Axis("Throughput", Unit.REQUESTS_PER_S, 0, 2650)).texts == ["0", "500", "1000", "1500", "2000", "2500"]


@pytest.mark.parametrize("theme", list(Theme))
def test_one_request_is_visible_beside_a_million(theme: Theme) -> None:
    picture = raster.image(cloud((0, 0, 1_000_000), (39, 39, 1)), PALETTES[theme])
    assert picture[0, 0, 3] == 1
    assert picture[39, 39, 3] >= 0.5
    assert picture[20, 20, 3] == 0


def test_only_what_stands_alone_is_lonely() -> None:
    band = [(x, y, 3) for x in range(40) for y in range(5)]
    (lonely,) = raster.lonely(cloud(*band, (20, 30, 1)))
    assert list(zip(lonely.columns, lonely.rows, strict=True)) == [(20, 30)]


@pytest.mark.parametrize("largest", [1.8, 7.0])
def test_what_is_sparse_never_looks_heavier_than_what_is_denser(largest: float) -> None:
    random = np.random.default_rng(1)
    for filled in (0.002, 0.01, 0.03, 0.06, 0.1):
        rows, columns = (place.astype(np.int32) for place in np.nonzero(random.random((360, 360)) < filled))
        part = CloudPart(Role.READ, "", columns, rows, np.ones(len(rows), np.int64))
        (dots,) = raster.lonely(Cloud(360, 360, (part,)))
        areas = dots.areas(largest)
        assert areas.max() > 0.8 * largest or filled > 0.05
        assert areas.sum() / 360**2 < raster.LONELY_SHARE


def test_reads_and_writes_mix_and_pushed_ones_cover() -> None:
    cell = (np.array([3]), np.array([3]), np.array([1]))
    palette = PALETTES[Theme.LIGHT]
    both = Cloud(40, 40, (CloudPart(Role.READ, "", *cell), CloudPart(Role.WRITE, "", *cell)))
    mixed = raster.image(both, palette)[3, 3, :3]
    read, write = raster.colour(palette.roles[Role.READ]), raster.colour(palette.roles[Role.WRITE])
    assert np.allclose(mixed, (read + write) / 2)
    covered = raster.image(Cloud(40, 40, (*both.parts, CloudPart(Role.PUSHED_READ, "", *cell))), palette)[3, 3, :3]
    pushed = raster.colour(palette.roles[Role.PUSHED_READ])
    assert np.abs(covered - pushed).sum() < np.abs(mixed - pushed).sum()


def test_sizes() -> None:
    assert Size.parse("4k") == Size(3840, 2160)
    assert Size.parse("1200x800").cells == (546, 293)
    assert Size.parse("3840x2160").cells[0] > 700
    for bad in ("big", "10x10", "1200", "99999x99999"):
        with pytest.raises(UserError, match="size"):
            Size.parse(bad)
