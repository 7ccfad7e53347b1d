"""The legend of a picture: a small table at its upper right, and below it what a cloud's shades stand for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from iosonar import units
from iosonar.figures import raster
from iosonar.figures.model import Cloud, Figure, LegendRow, Stroke
from iosonar.figures.palette import Palette
from iosonar.figures.size import RIGHT

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

DPI = 100
POINT = 72 / DPI
ROW = 17
MOST_HEIGHT = 134
"""Between the picture's upper edge and the diagram."""
COLUMN = 76
"""Of numbers; longer titles take more."""

LETTER = 6.7
PIXELS = 12


class LegendDrawer:
    """Draws a figure's legend; places are in pixels of the base size from the upper left."""

    def __init__(self, figure: Figure, canvas: Canvas, palette: Palette) -> None:
        self.figure, self.canvas, self.palette = figure, canvas, palette
        self.width, self.height = (float(inches) * DPI for inches in canvas.get_size_inches())

    def draw(self) -> None:
        """Draws it, if there is any."""
        legend = self.figure.legend
        if not legend.rows:
            return
        right = self.width - RIGHT
        widths = [max(COLUMN, len(title) * LETTER + 18) for title in legend.columns]
        columns = [right - sum(widths[number + 1 :]) for number in range(len(widths))]
        longest = max(len(row.label) for row in legend.rows)
        left = right - sum(widths) - longest * LETTER - 4
        for x, title in zip(columns, legend.columns, strict=True):
            self._text(x, 20, title, "right", self.palette.soft_ink)
        row_height = min(ROW, (MOST_HEIGHT - 20) / (len(legend.rows) + 1))
        top = 20 + (row_height if legend.columns else 0)
        for number, row in enumerate(legend.rows):
            y = top + number * row_height
            self._swatch(left - 26, y + 7, row)
            self._text(left, y, row.label, "left", self.palette.ink)
            for x, cell in zip(columns, row.cells, strict=False):
                self._text(x, y, cell, "right", self.palette.ink)
        clouds = [layer for layer in self.figure.layers if isinstance(layer, Cloud)]
        if clouds:
            self._shades(clouds[0], left)

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

    def _shades(self, cloud: Cloud, left: float) -> None:
        """A strip from one request in a cell to the most."""
        parts = [part for part in cloud.parts if len(part.counts)]
        most = raster.fullest(cloud)
        if not parts or most < 2:
            return
        steps = np.linspace(0, 1, 60)
        strips = np.array(
            [raster.shade(raster.colour(self.palette.roles[part.role]), steps, self.palette) for part in parts[:2]]
        )
        opacity = raster.FAINTEST + (1 - raster.FAINTEST) * np.minimum(2 * steps, 1)
        strips = np.concatenate([strips, np.broadcast_to(opacity[:, None], (len(strips), len(steps), 1))], axis=2)
        y = 20 + (len(self.figure.legend.rows) + 1) * ROW + 3
        area = self.canvas.add_axes((left / self.width, 1 - (y + 12) / self.height, 90 / self.width, 10 / self.height))
        area.imshow(strips, aspect="auto", interpolation="nearest")
        area.set_axis_off()
        self._text(left + 96, y - 1, f"1 … {units.count(most)} requests in a dot", "left", self.palette.soft_ink)

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
