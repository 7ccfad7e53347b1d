"""Draws figures as PNG, pixel by pixel: axes, dots, lines and text are few, and NumPy and Pillow have what they need.

It draws what `with_matplotlib` draws, whose picture takes ten times as long.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from iosonar.figures import lettering, raster, strokes
from iosonar.figures.around import TEXT, draw_around
from iosonar.figures.canvas import Canvas
from iosonar.figures.dots import dots
from iosonar.figures.model import (
    FEW_STEPS,
    Axis,
    Cloud,
    Direction,
    Figure,
    Line,
    NoteKind,
    Role,
    Rule,
    Scale,
    Steps,
    Stroke,
    horizontal_names_at_left,
    name_of_rule,
)
from iosonar.figures.palette import PALETTES, Palette, Theme
from iosonar.figures.size import BOTTOM, LEFT, RIGHT, TOP, Size
from iosonar.figures.ticks import Ticks, spaced, ticks

DPI = 100
"""Pixels of the base size per inch."""

BESIDE_FRAME = 0.012
"""Grid lines within that share of the axis from the frame are left out."""

DASHES = {Stroke.DASHED: (4.0, 2.0), Stroke.DOTTED: (1.0, 1.5)}
LEGEND_DASHES = {Stroke.DASHED: (2.5, 1.5), Stroke.DOTTED: (1.0, 1.5)}
"""Lengths of dashes and gaps, in widths of the line."""

MAX_SHARP = 500
"""Steps up to that number are at whole pixels."""

BELOW_LOG = -1000.0
"""The decimal logarithm at which a logarithmic axis has zero."""

Numbers = NDArray[np.float64]


def draw(figure: Figure, path: Path, size: Size, theme: Theme) -> None:
    """Draws a figure into a PNG file."""
    palette = PALETTES[theme]
    canvas = Canvas(size.width, size.height, palette.paper)
    _Drawing(figure, canvas, palette, size).draw()
    canvas.save(path, DPI * size.scale)


class _Drawing:
    """One figure on one canvas. Positions in the frame are in its pixels, from its upper left."""

    def __init__(self, figure: Figure, canvas: Canvas, palette: Palette, size: Size) -> None:
        self.figure, self.canvas, self.palette, self.size, self.scale = figure, canvas, palette, size, size.scale
        self.width, self.height = size.width / self.scale, size.height / self.scale
        self.left, self.top = round(LEFT * self.scale), round(TOP * self.scale)
        right, bottom = round(size.width - RIGHT * self.scale), round(size.height - BOTTOM * self.scale)
        self.frame = (bottom - self.top, right - self.left)
        self.right, self.bottom = right, bottom
        self.fullest = 1.0

    def draw(self) -> None:
        self.canvas.rectangle(self.left, self.top, self.right, self.bottom, self.palette.plot)
        x, y = spaced_ticks(self), ticks(self.figure.y)
        self._grid(x, y)
        # As far down as data lie: vertical rules, areas and dots, ticks, faint lines and the frame, lines, other rules.
        for layer in self.figure.layers:
            if isinstance(layer, Rule) and layer.direction is Direction.VERTICAL:
                self._vertical(layer)
        for layer in self.figure.layers:
            if isinstance(layer, Cloud):
                self._cloud(layer)
            elif isinstance(layer, Steps) and layer.filled:
                self._area(layer)
        self._marks(x, y)
        for layer in self.figure.layers:
            if isinstance(layer, Steps) and _is_background(layer):
                self._outline(layer)
        self._spines()
        for layer in self.figure.layers:
            if isinstance(layer, Line):
                self._line(layer)
            elif isinstance(layer, Steps) and not _is_background(layer):
                self._outline(layer)
        for layer in self.figure.layers:
            if isinstance(layer, Rule) and layer.direction is Direction.HORIZONTAL:
                self._horizontal(layer)
        for layer in self.figure.layers:
            if isinstance(layer, Rule) and not layer.can_be_nameless:
                self._name(layer)
        self._stamps()
        self._labels(x, y)
        draw_around(self.figure, self, self.palette, self.fullest)

    # The diagram.

    def _place(self, axis: Axis, values: Numbers) -> Numbers:
        """Pixels in the frame: from the left for x, from the top for y."""
        low, high = axis.low, axis.high
        if axis.scale is Scale.LOG:
            known = np.where(values > 0, values, 1.0)
            values = np.where(values > 0, np.log10(known), np.where(np.isnan(values), np.nan, BELOW_LOG))
            low, high = math.log10(low), math.log10(high)
        share = (values - low) / (high - low)
        return (1 - share) * self.frame[0] if axis is self.figure.y else share * self.frame[1]

    def _at(self, axis: Axis, value: float) -> float:
        """The same of one value, in pixels of the picture."""
        found = float(self._place(axis, np.array([value], np.float64))[0])
        return found + (self.top if axis is self.figure.y else self.left)

    def _grid(self, x: Ticks, y: Ticks) -> None:
        for axis, marks in ((self.figure.x, x), (self.figure.y, y)):
            for at in marks.at:
                if BESIDE_FRAME < axis.share(at) < 1 - BESIDE_FRAME:
                    self._across(axis, self._at(axis, at), self.palette.grid, 1.0)

    def _across(self, axis: Axis, at: float, colour: str, width: float) -> None:
        """A line across the frame."""
        low, high = _sharp(at, width * self.scale)
        if axis is self.figure.x:
            self.canvas.rectangle(max(low, self.left), self.top, min(high, self.right), self.bottom, colour)
        else:
            self.canvas.rectangle(self.left, max(low, self.top), self.right, min(high, self.bottom), colour)

    def _cloud(self, cloud: Cloud) -> None:
        requests = cloud.requests
        found = dots(cloud, *self.size.cells(requests))
        self.fullest = found.maximum
        picture = raster.image_bytes(found, cloud, self.palette, self.size.dot(requests))
        high, wide = self.frame
        # Row 0 of the dots is at the bottom.
        rows = ((high - 0.5 - np.arange(high)) * picture.shape[0] / high).astype(np.int64)
        columns = ((np.arange(wide) + 0.5) * picture.shape[1] / wide).astype(np.int64)
        shown = picture[rows] if len(rows) == picture.shape[0] else picture.take(rows, 0)
        shown = shown if wide == picture.shape[1] else shown.take(columns, 1)
        area = self.canvas.pixels[self.top : self.bottom, self.left : self.right]
        np.copyto(area, shown[..., :3], where=(shown[..., 3] == 255)[..., None])
        at = np.nonzero((shown[..., 3] > 0) & (shown[..., 3] < 255))
        if len(at[0]):
            opacity = shown[at][:, 3:].astype(np.uint16)
            area[at] = (area[at] * (255 - opacity) + shown[at][:, :3] * opacity) // 255

    def _line(self, line: Line) -> None:
        x, y = self._place(self.figure.x, line.x), self._place(self.figure.y, line.y)
        width = 1.5 * self.scale
        if line.stroke is Stroke.SOLID:
            found = strokes.cover(self.frame, strokes.of_points(x, y), width)
        else:
            on, off = (each * width for each in DASHES[line.stroke])
            y = np.clip(y, -self.frame[0], 2 * self.frame[0])
            found = strokes.cover(self.frame, strokes.dashed(x, y, on, off), width, blunt=True)
        if line.marks:
            known = np.isfinite(x) & np.isfinite(y)
            at = strokes.Segments(x[known], y[known], x[known], y[known])
            np.maximum(found, strokes.cover(self.frame, at, 7 * self.scale), out=found)
        self.canvas.blend(self.left, self.top, found, self.palette.roles[line.role])

    def _stairs(self, steps: Steps) -> tuple[Numbers, Numbers]:
        """Edges and heights of steps."""
        edges, y = self._place(self.figure.x, steps.edges), self._place(self.figure.y, steps.y)
        if len(y) > MAX_SHARP:
            return edges, y
        return np.floor(edges) + 0.5, np.floor(np.clip(y, -1e6, 1e6)) + 0.5

    def _area(self, steps: Steps) -> None:
        edges, y = self._stairs(steps)
        base = float(self._place(self.figure.y, np.zeros(1))[0])
        alpha = 0.7 if steps.bars else 0.18 if _is_background(steps) else 0.12
        found = strokes.below(self.frame, edges, y, min(base, 2.0 * self.frame[0]))
        self.canvas.blend(self.left, self.top, found * np.float32(alpha), self.palette.roles[steps.role])

    def _outline(self, steps: Steps) -> None:
        edges, y = self._stairs(steps)
        whole = len(y) - steps.partial
        is_wide = steps.role is Role.ALL and not steps.filled and len(y) <= FEW_STEPS
        width = (3.2 if is_wide else 1.6) * self.scale
        for first, last, stroke in ((0, whole, steps.stroke), (whole, len(y), Stroke.DOTTED)):
            if first >= last:
                continue
            x = np.repeat(edges[first : last + 1], 2)[1:-1]
            high = np.repeat(np.clip(y[first:last], -self.frame[0], 2 * self.frame[0]), 2)
            if stroke is Stroke.SOLID:
                found = strokes.cover(self.frame, strokes.of_points(x, high), width)
            else:
                on, off = (each * width for each in DASHES[stroke])
                found = strokes.cover(self.frame, strokes.dashed(x, high, on, off), width, blunt=True)
            # Background lines are faint.
            found *= np.float32(0.35 if _is_background(steps) else 1)
            self.canvas.blend(self.left, self.top, found, self.palette.roles[steps.role])

    def _vertical(self, rule: Rule) -> None:
        # Below the data: a rule must not hide the request that it points at.
        at = self._at(self.figure.x, rule.at)
        if not self.left <= at <= self.right:
            return
        low, high = _sharp(at, self.scale)
        for start in np.arange(self.bottom, self.top, -7.5 * self.scale).tolist():
            end = max(start - 5 * self.scale, self.top)
            self.canvas.rectangle(low, end, high, start, self.palette.roles[rule.role])

    def _horizontal(self, rule: Rule) -> None:
        at = self._at(self.figure.y, rule.at)
        if self.top <= at <= self.bottom:
            self._across(self.figure.y, at, self.palette.roles[rule.role], 1.4)

    def _name(self, rule: Rule) -> None:
        text = f" {rule.label} "
        size, (high, wide) = 11.5 * self.scale, self.frame
        if rule.direction is Direction.HORIZONTAL:
            is_left = horizontal_names_at_left(self.figure)
            x, y = self.left + (0.005 if is_left else 0.995) * wide, self._at(self.figure.y, rule.at) - 0.24 * size
            is_at_right = not is_left
        else:
            named = name_of_rule(self.figure, rule)
            is_at_right = named.is_left
            x = self._at(self.figure.x, rule.at)
            y = self.top + 0.015 * high + named.row * 1.3 * TEXT * self.scale + 0.8 * size
        x -= lettering.width(text, size, "normal") if is_at_right else 0
        # A halo keeps it readable and covers less of the data than a box.
        self._write(x, y, text, size, self.palette.plot, halo=1.5 * self.scale)
        self._write(x, y, text, size, self.palette.roles[rule.role])

    def _marks(self, x: Ticks, y: Ticks) -> None:
        """Minor ticks and major ticks, outside of the frame."""
        for minor, length, width in ((True, 3.0, 0.8), (False, 5.0, 1.0)):
            for at in x.minor if minor else x.at:
                low, high = _sharp(self._at(self.figure.x, at), width * self.scale)
                end = self.bottom + length * self.scale
                self.canvas.rectangle(low, self.bottom, high, end, self.palette.soft_ink)
            for at in y.minor if minor else y.at:
                low, high = _sharp(self._at(self.figure.y, at), width * self.scale)
                self.canvas.rectangle(self.left - length * self.scale, low, self.left, high, self.palette.soft_ink)

    def _spines(self) -> None:
        width = self.scale
        left, right = _sharp(self.left, width), _sharp(self.right, width)
        top, bottom = _sharp(self.top, width), _sharp(self.bottom, width)
        self.canvas.rectangle(right[0], top[0], right[1], bottom[1], self.palette.grid)
        self.canvas.rectangle(left[0], top[0], right[1], top[1], self.palette.grid)
        self.canvas.rectangle(left[0], top[0], left[1], bottom[1], self.palette.soft_ink)
        self.canvas.rectangle(left[0], bottom[0], right[1], bottom[1], self.palette.soft_ink)

    def _labels(self, x: Ticks, y: Ticks) -> None:
        """The texts of the axes."""
        size, ink = TEXT * self.scale, self.palette.ink
        for at, text in zip(x.at, x.texts, strict=True):
            middle = self._at(self.figure.x, at) - lettering.width(text, size, "normal") / 2
            self._write(middle, self.bottom + 8.5 * self.scale + 0.93 * size, text, size, ink)
        # The label of the y axis is at the same place in every picture, so its ticks must have room.
        room = (LEFT - 36) * self.scale
        widest = max((lettering.width(text, size, "normal") for text in y.texts), default=0.0)
        small = size * min(1.0, room / widest) if widest else size
        for at, text in zip(y.at, y.texts, strict=True):
            end = self.left - 8.5 * self.scale - lettering.width(text, small, "normal")
            self._write(end, self._at(self.figure.y, at) + 0.36 * small, text, small, ink)
        size = 12.5 * self.scale
        below = self.bottom + (8.5 + TEXT * 1.2 + 3) * self.scale + 0.93 * size
        text = _label(self.figure.x, x)
        middle = (self.left + self.right - lettering.width(text, size, "normal")) / 2
        self._write(middle, below, text, size, ink)
        turned, _left, top = lettering.letters(_label(self.figure.y, y), size, "normal")
        turned = np.rot90(turned)
        self._blend(turned, round(19 * self.scale + top), round((self.top + self.bottom - len(turned)) / 2), ink)

    def _stamps(self) -> None:
        stamps = [note for note in self.figure.notes if note.kind is NoteKind.STAMP]
        for number, note in enumerate(stamps):
            size = min(74, 1250 / max(len(note.text), 1)) * self.scale
            coverage, _, _ = lettering.letters(note.text, size, "bold")
            coverage = lettering.turned(coverage, 14)
            above = 0.5 - 0.26 * ((len(stamps) - 1) / 2 - number)
            left = (self.left + self.right - coverage.shape[1]) / 2
            top = self.top + above * self.frame[0] - coverage.shape[0] / 2
            self._blend(coverage, round(left), round(top), self.palette.severities[note.severity], 0.33)

    # The text around the diagram: a `Sheet`.

    def measure(self, text: str, pixels: float, weight: str = "normal") -> float:
        """The width of a text."""
        return lettering.width(text, pixels * self.scale, weight) / self.scale

    def text(
        self, x: float, y: float, text: str, pixels: float, colour: str, align: str = "left", weight: str = "normal"
    ) -> None:
        """Writes a line of text."""
        size = pixels * self.scale
        left = x * self.scale - (lettering.width(text, size, weight) if align == "right" else 0)
        self._write(left, y * self.scale + size, text, size, colour, weight)

    def square(self, x: float, y: float, side: float, colour: str) -> None:
        """A filled square."""
        side = round(side * self.scale)
        left, top = round(x * self.scale - side / 2), round(y * self.scale - side / 2)
        self.canvas.rectangle(left, top, left + side, top + side, colour)

    def dash(self, x: float, y: float, length: float, width: float, colour: str, stroke: Stroke) -> None:
        """A line of a legend."""
        begin, end, width = x * self.scale, (x + length) * self.scale, width * self.scale
        low, high = _sharp(y * self.scale, width)
        on, off = LEGEND_DASHES.get(stroke, (end - begin, 1.0))
        for start in np.arange(begin, end, (on + off) * width).tolist():
            self.canvas.rectangle(start, low, min(start + on * width, end), high, colour)

    def strip(self, x: float, y: float, wide: float, high: float, colours: Numbers) -> None:
        """Rows of colours."""
        left, right = round(x * self.scale), round((x + wide) * self.scale)
        top, bottom = round(y * self.scale), round((y + high) * self.scale)
        rows = np.arange(bottom - top) * len(colours) // (bottom - top)
        columns = np.arange(right - left) * colours.shape[1] // (right - left)
        self.canvas.pixels[top:bottom, left:right] = np.round(colours * 255).astype(np.uint8)[rows][:, columns]

    def _write(
        self, x: float, y: float, text: str, size: float, colour: str, weight: str = "normal", halo: float = 0.0
    ) -> None:
        """Writes text from (x, y), the start of its baseline."""
        coverage, left, top = lettering.letters(text, size, weight, halo)
        self._blend(coverage, round(x) + left, round(y) + top, colour)

    def _blend(self, coverage: NDArray[np.uint8], left: int, top: int, colour: str, alpha: float = 1.0) -> None:
        self.canvas.blend(left, top, coverage * np.float32(alpha / 255), colour)


def spaced_ticks(drawing: _Drawing) -> Ticks:
    """The ticks of the x axis, without those for whose labels there is no room."""
    axis = drawing.figure.x
    found = ticks(axis)
    room = drawing.frame[1] / drawing.scale
    return found if axis.named else spaced(found, axis, room, lambda text: drawing.measure(text, TEXT))


def _label(axis: Axis, marks: Ticks) -> str:
    return f"{axis.label} [{marks.unit}]" if marks.unit else axis.label


def _is_background(steps: Steps) -> bool:
    return steps.filled and steps.role is Role.FAINT


def _sharp(at: float, width: float) -> tuple[float, float]:
    """The borders of a line that is sharp: its middle is that of a pixel, or between two if it is two pixels wide."""
    middle = math.floor(at) + 0.5 if round(width) % 2 else float(round(at))
    return middle - width / 2, middle + width / 2
