"""Pictures as PNG, which are drawn pixel by pixel."""

from __future__ import annotations

import math
import struct
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from iosonar.figures import lettering, strokes, with_matplotlib, with_pixels
from iosonar.figures.canvas import Canvas
from iosonar.figures.model import (
    Axis,
    Cloud,
    CloudPart,
    Direction,
    Figure,
    Layer,
    Legend,
    LegendRow,
    Line,
    Note,
    NoteKind,
    Role,
    Rule,
    Scale,
    Severity,
    Steps,
    Stroke,
    Unit,
)
from iosonar.figures.palette import PALETTES, Theme
from iosonar.figures.size import Size

NAN = float("nan")
X = Axis("Time", Unit.TIMELINE, 0, 10)
Y = Axis("Latency", Unit.SECONDS, 1e-4, 1, Scale.LOG)


def figure(*layers: Layer, notes: tuple[Note, ...] = (), y: Axis = Y) -> Figure:
    rows = (LegendRow(Role.READ, "Reads", ("1,000", "3 ms"), Stroke.SOLID), LegendRow(Role.WRITE, "Writes", ("7",)))
    return Figure("a", "g", "Some diagram", "a run", X, y, layers, Legend(("requests", "avg"), rows), notes)


def numbers(*values: float) -> NDArray[np.float64]:
    return np.array(values, np.float64)


def pixels(path: Path) -> NDArray[np.float64]:
    return np.asarray(Image.open(path).convert("RGB"), np.float64)


TIMES = np.linspace(0, 10, 200)
WAVE = 1e-2 * np.exp(3 * np.sin(TIMES))
LAYERS: dict[str, Layer] = {
    "line": Line(Role.READ, "r", TIMES, WAVE),
    "marks": Line(Role.READ, "r", TIMES[::20], WAVE[::20], Stroke.DASHED, marks=True),
    "dotted": Line(Role.WRITE, "r", TIMES, np.where(TIMES < 4, NAN, WAVE), Stroke.DOTTED),
    "steps": Steps(Role.READ, "r", np.linspace(0, 10, 21), WAVE[5::10], partial=3),
    "area": Steps(Role.FAINT, "r", np.linspace(0, 10, 21), np.where(WAVE[5::10] < 5e-3, NAN, WAVE[5::10]), filled=True),
    "bars": Steps(Role.WRITE, "r", np.linspace(0, 10, 21), WAVE[5::10], filled=True, bars=True),
    "limit": Rule(Role.BAD, Direction.HORIZONTAL, 3e-2, "limit"),
    "moment": Rule(Role.BAD, Direction.VERTICAL, 7.3, "the first one"),
    "cloud": Cloud(
        200,
        100,
        (
            CloudPart(Role.READ, "r", np.arange(100, dtype=np.int32), np.arange(100, dtype=np.int32), np.full(100, 9)),
            CloudPart(Role.WRITE, "w", np.full(50, 120, np.int32), np.arange(50, dtype=np.int32), np.full(50, 1)),
        ),
    ),
}


@pytest.mark.parametrize("theme", list(Theme))
@pytest.mark.parametrize("layer", LAYERS)
def test_a_png_looks_like_the_svg(layer: str, theme: Theme, tmp_path: Path) -> None:
    """Blurred, as letters and borders differ by less than a pixel."""
    notes = (Note(NoteKind.VERDICT, "Good", Severity.GOOD), Note(NoteKind.INFO, "A note about it."))
    shown = figure(LAYERS[layer], notes=notes)
    with_pixels.draw(shown, tmp_path / "own.png", Size(), theme)
    with_matplotlib.draw(shown, tmp_path / "other.png", Size(), theme)
    own, other = (
        pixels(tmp_path / f"{name}.png").reshape(100, 8, 150, 8, 3).mean(axis=(1, 3)) for name in ("own", "other")
    )
    paper = np.array([int(PALETTES[theme].plot[at : at + 2], 16) for at in (1, 3, 5)])
    drawn = np.abs(other - paper).sum()
    assert np.abs(own - other).mean() < 1.0, "a level of 256"
    assert np.abs(own - other).sum() < 0.2 * drawn


@pytest.mark.parametrize("size", [Size(1200, 800), Size(3840, 2160), Size(401, 300)])
def test_a_png_is_complete(size: Size, tmp_path: Path) -> None:
    with_pixels.draw(figure(LAYERS["line"]), tmp_path / "a.png", size, Theme.DARK)
    with Image.open(tmp_path / "a.png") as picture:
        assert (picture.size, picture.mode) == ((size.width, size.height), "RGB")
        assert picture.info["dpi"] == pytest.approx((100 * size.scale,) * 2, rel=1e-3)
        picture.load()
        assert len(picture.getcolors(1 << 24) or ()) > 20


def test_a_rectangle_covers_its_area(tmp_path: Path) -> None:
    canvas = Canvas(40, 30, "#000000")
    canvas.rectangle(3.25, -5, 10.5, 7.5, "#ffffff")
    assert canvas.pixels[..., 0].sum() / 255 == pytest.approx(7.25 * 7.5, rel=0.01)
    canvas.save(tmp_path / "a.png", 254)
    assert (pixels(tmp_path / "a.png") == canvas.pixels).all()
    assert b"pHYs" + struct.pack(">II", 10_000, 10_000) in (tmp_path / "a.png").read_bytes()


@pytest.mark.parametrize("width", [1.0, 1.6, 4.3])
@pytest.mark.parametrize("degrees", [0, 10, 45, 63, 90, 135, 200])
def test_a_stroke_covers_length_times_width(width: float, degrees: float) -> None:
    x, y = 60 * math.cos(math.radians(degrees)), 60 * math.sin(math.radians(degrees))
    one = strokes.Segments(numbers(100 - x), numbers(100 - y), numbers(100 + x), numbers(100 + y))
    blunt = strokes.cover((200, 200), one, width, blunt=True).sum()
    # A pixel is covered by the distance of its middle alone.
    assert blunt == pytest.approx(120 * width, rel=0.13)
    assert strokes.cover((200, 200), one, width).sum() == pytest.approx(blunt + math.pi * width**2 / 4, rel=0.04)


def test_strokes_end_at_the_frame_and_leave_gaps() -> None:
    far = strokes.of_points(numbers(-1e9, 1e9, NAN, 10, NAN), numbers(20.5, 20.5, 0, 30.5, 0))
    found = strokes.cover((40, 50), far, 1.0)
    assert found[20].min() == 1 and found[30, 10] > 0 and found.sum() == pytest.approx(51, abs=1)


def test_joints_are_not_darker() -> None:
    found = strokes.cover((40, 400), strokes.of_points(np.linspace(5, 395, 5000), np.full(5000, 20.0)), 1.6)
    assert found.max() <= 1 and found.sum() == pytest.approx(390 * 1.6, rel=0.02)


def test_dashes_have_their_lengths() -> None:
    found = strokes.dashed(numbers(0, 3, 100), numbers(5, 5, 5), 8, 2)
    assert (found.x1 - found.x0).sum() == pytest.approx(80)
    assert strokes.cover((10, 110), found, 2, blunt=True).sum() == pytest.approx(160, rel=0.02)


def test_an_area_is_what_is_below_its_steps() -> None:
    found = strokes.below((50, 100), numbers(0.0, 30.5, 60, 80), numbers(10.25, NAN, 45.5), 50.0)
    assert found.sum() == pytest.approx(30.5 * 39.75 + 20 * 4.5, rel=1e-3)
    assert found[:, 31:60].max() == 0 and found[20, 5] == 1


def test_letters_are_as_wide_as_measured() -> None:
    for weight in ("normal", "bold"):
        text = "Latency of 1,000 requests, µs"
        coverage, left, top = lettering.letters(text, 24.0, weight)
        shown = np.flatnonzero(coverage.max(axis=0))
        assert shown[-1] - shown[0] == pytest.approx(lettering.width(text, 24.0, weight), abs=4)
        assert -30 < top < -15 and -3 < left < 3
    assert lettering.letters("", 12.0, "normal")[0].max() == 0


def test_stamps_and_zeros_on_log_axes_are_drawn(tmp_path: Path) -> None:
    zeros = Line(Role.READ, "r", numbers(0, 5, 10), numbers(0, 1e-2, 0))
    shown = figure(zeros, notes=(Note(NoteKind.STAMP, "FAKE RESULT", Severity.BAD),))
    with_pixels.draw(shown, tmp_path / "a.png", Size(), Theme.LIGHT)
    with_pixels.draw(figure(), tmp_path / "b.png", Size(), Theme.LIGHT)
    changed = np.abs(pixels(tmp_path / "a.png") - pixels(tmp_path / "b.png")).sum(axis=2)
    assert changed[154:706, 100:1168].sum() == changed.sum() and (changed > 0).sum() > 10_000
