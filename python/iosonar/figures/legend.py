"""The legend of a picture: a small table at the upper right, and below it the meaning of a cloud's shades."""

from __future__ import annotations

import math

import numpy as np

from iosonar.figures import raster
from iosonar.figures.model import Cloud, Figure, LegendRow
from iosonar.figures.palette import Palette
from iosonar.figures.sheet import Sheet
from iosonar.figures.size import RIGHT

FIRST, ROW, LOWEST = 14, 17, 148
"""Start, distance and lowest end of the rows: above the diagram's frame."""

COLUMN = 70
"""Minimum width of a column of numbers."""

STRIP = 90
"""Width of the strip of shades."""

PIXELS = 12


class LegendDrawer:
    """Draws a figure's legend."""

    def __init__(self, figure: Figure, sheet: Sheet, palette: Palette, fullest: float) -> None:
        self.figure, self.sheet, self.palette, self.fullest = figure, sheet, palette, fullest

    def draw(self) -> float:
        """Draws the legend, if there is one, and returns its left edge."""
        legend = self.figure.legend
        if not legend.rows:
            return self.sheet.width
        right = self.sheet.width - RIGHT
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
        return self.sheet.measure(text, PIXELS)

    def _swatch(self, x: float, y: float, row: LegendRow) -> None:
        colour = self.palette.roles[row.role]
        if row.stroke is None:
            self.sheet.square(x + 9, y, 9, colour)
        else:
            self.sheet.dash(x, y, 19, 2, colour, row.stroke)

    def _shades(self, cloud: Cloud, left: float, y: float, text: str) -> None:
        """A strip for each of the first two series, from one request per dot to the maximum."""
        parts = [part for part in cloud.parts if len(part.counts)][:2]
        steps = np.linspace(0, 1, 60)
        strips = np.array(
            [raster.shade(raster.colour(self.palette.roles[part.role]), steps, self.palette) for part in parts]
        )
        self.sheet.strip(left, y + 3, STRIP, 10, strips)
        self._text(left + STRIP + 6, y, text, "left", self.palette.soft_ink)

    def _text(self, x: float, y: float, text: str, align: str, colour: str) -> None:
        self.sheet.text(x, y, text, PIXELS, colour, align)
