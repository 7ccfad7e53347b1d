"""The legend of a picture: a small table at the upper right, and below it the meaning of a cloud's shades."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from iosonar.figures import raster
from iosonar.figures.model import Cloud, Figure, LegendRow, Stroke
from iosonar.figures.palette import Palette
from iosonar.figures.ruler import Ruler
from iosonar.figures.size import RIGHT

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

DPI = 100
POINT = 72 / DPI
FIRST, ROW, LOWEST = 14, 17, 148
"""Start, distance and lowest end of the rows: above the diagram's frame."""

COLUMN = 70
"""Minimum width of a column of numbers."""

STRIP = 90
"""Width of the strip of shades."""

PIXELS = 12


class LegendDrawer:
    """Draws a figure's legend; positions are in pixels of the base size from the upper left."""

    def __init__(self, figure: Figure, canvas: Canvas, palette: Palette, ruler: Ruler, fullest: float) -> None:
        self.figure, self.canvas, self.palette, self.ruler, self.fullest = figure, canvas, palette, ruler, fullest
        self.width, self.height = (float(inches) * DPI for inches in canvas.get_size_inches())

    def draw(self) -> float:
        """Draws the legend, if there is one, and returns its left edge."""
        legend = self.figure.legend
        if not legend.rows:
            return self.width
        right = self.width - RIGHT
        cells = [[row.cells[number : number + 1] for row in legend.rows] for number in range(len(legend.columns))]
        widths = [
            max(COLUMN, max(map(self._width, [title, *(text for (text,) in filter(None, texts))])) + 20)
            for title, texts in zip(legend.columns, cells, strict=True)
        ]
        columns = [right - sum(widths[number + 1 :]) for number in range(len(widths))]
        labels = max(self._width(row.label) for row in legend.rows)
        left = right - sum(widths) - labels
        clouds = [layer for layer in self.figure.layers if isinstance(layer, Cloud)]
        shades = f"1 … {math.ceil(self.fullest):,} {clouds[0].noun} in a dot" if clouds and self.fullest > 1 else ""
        if shades:
            left = min(left, right - STRIP - 6 - self._width(shades))
        for x, title in zip(columns, legend.columns, strict=True):
            self._text(x, FIRST, title, "right", self.palette.soft_ink)
        lines = len(legend.rows) + bool(legend.columns) + bool(shades)
        row_height = min(ROW, (LOWEST - FIRST) / lines)
        y = FIRST + (row_height if legend.columns else 0)
        for row in legend.rows:
            self._swatch(left - 26, y + 7, row)
            self._text(left, y, row.label, "left", self.palette.ink)
            for x, cell in zip(columns, row.cells, strict=False):
                self._text(x, y, cell, "right", self.palette.ink)
            y += row_height
        if shades:
            self._shades(clouds[0], left, y, shades)
        return left - 26

    def _width(self, text: str) -> float:
        return self.ruler.width(text, PIXELS)

    def _swatch(self, x: float, y: float, row: LegendRow) -> None:
        from matplotlib.lines import Line2D

        height, width = 1 - y / self.height, self.width
        mark = Line2D([x / width, (x + 19) / width], [height] * 2, color=self.palette.roles[row.role])
        if row.stroke is None:
            mark.set(xdata=[(x + 9) / width] * 2, marker="s", markersize=9 * POINT, markeredgewidth=0, linestyle="none")
        else:
            dashes = {Stroke.SOLID: "solid", Stroke.DASHED: (0, (2.5, 1.5)), Stroke.DOTTED: (0, (1, 1.5))}
            mark.set(linewidth=2 * POINT, linestyle=dashes[row.stroke])
        mark.set_transform(self.canvas.transFigure)
        self.canvas.add_artist(mark)

    def _shades(self, cloud: Cloud, left: float, y: float, text: str) -> None:
        """A strip for each of the first two series, from one request per dot to the maximum."""
        parts = [part for part in cloud.parts if len(part.counts)][:2]
        steps = np.linspace(0, 1, 60)
        strips = np.array(
            [raster.shade(raster.colour(self.palette.roles[part.role]), steps, self.palette) for part in parts]
        )
        place = (left / self.width, 1 - (y + 13) / self.height, STRIP / self.width, 10 / self.height)
        area = self.canvas.add_axes(place)
        area.imshow(strips, aspect="auto", interpolation="nearest")
        area.set_axis_off()
        self._text(left + STRIP + 6, y, text, "left", self.palette.soft_ink)

    def _text(self, x: float, y: float, text: str, align: str, colour: str) -> None:
        self.canvas.text(
            x / self.width,
            1 - (y + PIXELS) / self.height,
            text,
            fontsize=PIXELS * POINT,
            color=colour,
            horizontalalignment=align,
            verticalalignment="baseline",
        )
