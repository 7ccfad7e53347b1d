from __future__ import annotations

import numpy as np
import pytest

from iosonar.diagrams.parts import log_axis
from iosonar.errors import UserError
from iosonar.figures import raster
from iosonar.figures.dots import dots
from iosonar.figures.model import Axis, Cloud, CloudPart, Role, Scale, Unit
from iosonar.figures.palette import PALETTES, Theme
from iosonar.figures.size import Size
from iosonar.figures.ticks import moment, spaced, ticks


def cloud(*cells: tuple[int, int, int], role: Role = Role.READ, size: int = 40) -> Cloud:
    columns, rows, counts = (np.array(numbers) for numbers in zip(*cells, strict=True))
    return Cloud(size, size, (CloudPart(role, "", columns, rows, counts),))


def test_logarithmic_ticks_carry_their_unit() -> None:
    marks = ticks(Axis("Latency", Unit.SECONDS, 5e-6, 2e-2, Scale.LOG))
    assert marks.texts == ["10 µs", "100 µs", "1 ms", "10 ms"]
    assert marks.unit == ""


def test_labels_of_ticks_do_not_collide() -> None:
    axis = Axis("Error", Unit.PERCENT, 1e-3, 1e6, Scale.LOG)
    found = ticks(axis)
    assert spaced(found, axis, 1000, lambda said: 7.0 * len(said)).texts == found.texts
    few = spaced(found, axis, 500, lambda said: 7.0 * len(said)).texts
    assert few == found.texts[::2]


def test_times_on_long_axes_are_clock_times() -> None:
    long, short = (Axis("Time", Unit.TIMELINE, 0, end) for end in (1000, 900))
    assert (moment(long, 158.48), moment(long, 3600)) == ("0:02:38.48", "1:00:00")
    assert moment(short, 158.48) == "158.48 s"


def test_the_lowest_tick_stands_for_all_values_below_the_axis() -> None:
    found = ticks(log_axis("Delay", Unit.SECONDS, 1e-7, 1e-3, smallest=0))
    assert found.texts[:2] == ["≤ 100 ns", "1 µs"]
    assert ticks(log_axis("Delay", Unit.SECONDS, 1e-7, 1e-3, smallest=1e-7)).texts[0] == "100 ns"


def test_a_short_logarithmic_axis_has_more_labels() -> None:
    assert ticks(Axis("Latency", Unit.SECONDS, 2e-4, 2e-3, Scale.LOG)).texts == ["200 µs", "500 µs", "1 ms", "2 ms"]
    two = ticks(Axis("Latency", Unit.SECONDS, 1e-3, 2e-2, Scale.LOG))
    assert two.texts == ["1 ms", "2 ms", "5 ms", "10 ms", "20 ms"]


def test_a_label_that_names_what_is_counted_has_no_unit() -> None:
    assert ticks(Axis("Requests in a bin", Unit.REQUESTS, 1, 100)).unit == ""
    assert ticks(Axis("In flight", Unit.REQUESTS, 0, 100)).unit == "requests"


@pytest.mark.parametrize(
    ("length", "unit", "last"), [(0.1, "ms", "100"), (36, "s", "35"), (3600, "min", "60"), (86400, "h", "24")]
)
def test_a_timeline_has_the_unit_that_suits_its_length(length: float, unit: str, last: str) -> None:
    marks = ticks(Axis("Time", Unit.TIMELINE, 0, length))
    assert (marks.unit, marks.texts[-1]) == (unit, last)


def test_close_ticks_have_distinct_texts() -> None:
    for axis in (
        Axis("Position", Unit.BYTES, 2.0**40, 2.0**40 + 2.0**20),
        Axis("Bandwidth", Unit.BYTES_PER_S, 1e9, 1e9 + 100),
        Axis("Throughput", Unit.REQUESTS_PER_S, 1e7, 1e7 + 8),
        Axis("Turns", Unit.PERCENT, 99.999, 100),
    ):
        texts = ticks(axis).texts
        assert len(texts) > 2 and len(set(texts)) == len(texts), texts


def test_axes_of_integers_have_no_ticks_between_them() -> None:
    assert ticks(Axis("In flight", Unit.REQUESTS, 0.5, 3.5, whole=True)).texts == ["1", "2", "3"]


def test_bandwidth_is_decimal() -> None:
    marks = ticks(Axis("Bandwidth", Unit.BYTES_PER_S, 0, 6.4e6))
    assert (marks.texts, marks.unit) == (["0", "1 MB/s", "2 MB/s", "3 MB/s", "4 MB/s", "5 MB/s", "6 MB/s"], "")


def test_ticks_of_a_linear_axis_are_round() -> None:
    found = ticks(Axis("Throughput", Unit.REQUESTS_PER_S, 0, 2650))
    assert found.texts == [
        "0",
        "500",
        "1,000",
        "1,500",
        "2,000",
        "2,500",
    ]


@pytest.mark.parametrize("theme", list(Theme))
def test_a_single_dot_is_visible_and_not_darker_than_a_full_one(theme: Theme) -> None:
    palette, one = PALETTES[theme], cloud((0, 0, 1_000_000), (1, 0, 1_000_000), (39, 39, 1))
    picture = raster.image(dots(one, 40, 40), one, palette, 1)
    paper = raster.colour(palette.plot)
    full, lone = (np.abs(picture[place][:3] - paper).sum() * picture[place][3] for place in ((0, 0), (39, 39)))
    assert 0.5 < lone <= full
    assert picture[20, 20, 3] == 0


@pytest.mark.parametrize("pixels", [1, 2, 3, 4])
def test_all_dots_have_one_size(pixels: int) -> None:
    one = cloud((0, 0, 9), (1, 0, 9), (0, 1, 9), (1, 1, 9), (20, 30, 1))
    opacity = raster.image(dots(one, 40, 40), one, PALETTES[Theme.LIGHT], pixels)[..., 3]
    assert opacity.shape == (40 * pixels, 40 * pixels)
    alone = opacity[30 * pixels : 31 * pixels, 20 * pixels : 21 * pixels]
    assert opacity[20 * pixels :].sum() == alone.sum() <= pixels**2, "nothing beyond its place"
    assert (opacity[: 2 * pixels, : 2 * pixels].sum() / 4) >= alone.sum(), "a dot of many is no smaller"


def test_a_size_is_a_name_or_width_and_height() -> None:
    assert Size.parse("4k") == Size(3840, 2160)
    assert Size.parse("1200x800").cells(10**6) == (534, 276)
    assert Size.parse("1200x800").cells(1000) == (267, 138)
    assert 700 < Size.parse("3840x2160").cells(10**6)[0] < 1200
    for bad in ("big", "10x10", "1200", "99999x99999", "9" * 5000 + "x800", "٤٠٠x٣٠٠"):
        with pytest.raises(UserError, match="size"):
            Size.parse(bad)


@pytest.mark.parametrize("theme", list(Theme))
def test_colours_of_roles_differ_enough_from_the_background(theme: Theme) -> None:
    def luminance(text: str) -> float:
        linear = [((c + 0.055) / 1.055) ** 2.4 if c > 0.04 else c / 12.92 for c in raster.colour(text)]
        return float(np.dot((0.2126, 0.7152, 0.0722), linear))

    plot = luminance(PALETTES[theme].plot) + 0.05
    for role, colour in PALETTES[theme].roles.items():
        own = luminance(colour) + 0.05
        assert max(own, plot) / min(own, plot) >= 3, role
