"""Draws figures as png, svg or pdf with matplotlib, without its windows and its global state."""

from __future__ import annotations

import math
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iosonar.figures import raster
from iosonar.figures.foot import foot
from iosonar.figures.legend import LegendDrawer
from iosonar.figures.model import (
    NEAR_RIGHT,
    Cloud,
    Direction,
    Figure,
    Line,
    Mood,
    NoteKind,
    Rule,
    Steps,
    Stroke,
)
from iosonar.figures.palette import PALETTES, Palette, Theme
from iosonar.figures.size import BOTTOM, LEFT, RIGHT, TOP, Size
from iosonar.figures.ticks import ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

DPI = 100
"""Pixels of the base size in an inch; matplotlib measures in inches and points."""

POINT = 72 / DPI
"""Points in a pixel of the base size."""

DOT = 3.0
"""Diameter of a dot that is alone in a cloud, in pixels of the base size."""

LETTER = 7.1
"""Pixels of a letter of the foot, on average and rather more."""

DASHES = {Stroke.SOLID: "solid", Stroke.DASHED: (0, (4, 2)), Stroke.DOTTED: (0, (1, 1.5))}


def draw(figure: Figure, path: Path, size: Size, theme: Theme) -> None:
    """Draws into a file of the type that its suffix names."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    palette = PALETTES[theme]
    settings: Any = {
        "svg.fonttype": "none",
        "svg.hashsalt": "iosonar",
        "font.family": ["DejaVu Sans"],
        "path.simplify": True,
    }
    with matplotlib.rc_context(settings):
        canvas = Canvas(
            figsize=(size.width / size.scale / DPI, size.height / size.scale / DPI),
            dpi=DPI * size.scale,
            facecolor=palette.paper,
        )
        FigureCanvasAgg(canvas)
        _Drawing(figure, canvas, palette).draw()
        undated = {"Date": None} if path.suffix == ".svg" else {"CreationDate": None} if path.suffix == ".pdf" else {}
        canvas.savefig(path, facecolor=palette.paper, metadata=undated)


class _Drawing:
    """One figure on one canvas; places are in pixels of the base size, from the upper or lower left."""

    def __init__(self, figure: Figure, canvas: Canvas, palette: Palette) -> None:
        self.figure, self.canvas, self.palette = figure, canvas, palette
        self.width, self.height = (float(inches) * DPI for inches in canvas.get_size_inches())
        self.axes: Axes = canvas.add_axes(
            (
                LEFT / self.width,
                BOTTOM / self.height,
                (self.width - LEFT - RIGHT) / self.width,
                (self.height - TOP - BOTTOM) / self.height,
            ),
            facecolor=palette.plot,
        )

    def draw(self) -> None:
        for layer in self.figure.layers:
            match layer:
                case Cloud():
                    self._cloud(layer)
                case Line():
                    self._line(layer)
                case Steps():
                    self._steps(layer)
                case Rule():
                    self._rule(layer)
        self._axes()
        self._heading()
        LegendDrawer(self.figure, self.canvas, self.palette).draw()
        self._foot()
        self._stamps()

    # What the diagram shows.

    def _cloud(self, cloud: Cloud) -> None:
        within = self.axes.transAxes
        self.axes.imshow(
            raster.image(cloud, self.palette),
            extent=(0, 1, 0, 1),
            transform=within,
            origin="lower",
            aspect="auto",
            interpolation="nearest",
            zorder=2,
        )
        cell = (self.width - LEFT - RIGHT) * (self.height - TOP - BOTTOM) / (cloud.across * cloud.up)
        largest = max(math.pi * (DOT / 2) ** 2 / cell, 1.0)
        for dots in raster.lonely(cloud):
            self.axes.scatter(
                (dots.columns + 0.5) / cloud.across,
                (dots.rows + 0.5) / cloud.up,
                # The square of the diameter.
                s=dots.areas(largest) * cell * 4 / math.pi * POINT**2,
                color=self.palette.roles[dots.role],
                linewidths=0,
                transform=within,
                zorder=2.5,
            )

    def _line(self, line: Line) -> None:
        self.axes.plot(
            line.x,
            line.y,
            color=self.palette.roles[line.role],
            linestyle=DASHES[line.stroke],
            linewidth=1.5 * POINT,
            solid_joinstyle="round",
            zorder=3,
        )

    def _steps(self, steps: Steps) -> None:
        colour = self.palette.roles[steps.role]
        whole = len(steps.y) - steps.partial
        for first, last, stroke in ((0, whole, steps.stroke), (whole, len(steps.y), Stroke.DOTTED)):
            if first < last:
                edges, y = steps.edges[first : last + 1], steps.y[first:last]
                self.axes.stairs(
                    y,
                    edges,
                    baseline=None,
                    color=colour,
                    linestyle=DASHES[stroke],
                    linewidth=1.6 * POINT,
                    # Ends that reach a little further keep a bin visible that is narrower than a pixel.
                    capstyle="projecting" if stroke is Stroke.SOLID else "butt",
                    zorder=3,
                )
                if steps.filled:
                    self.axes.stairs(y, edges, fill=True, color=colour, alpha=0.12, linewidth=0, zorder=2)

    def _rule(self, rule: Rule) -> None:
        colour = self.palette.roles[rule.role]
        if rule.direction is Direction.HORIZONTAL:
            self.axes.axhline(rule.at, color=colour, linewidth=1.4 * POINT, zorder=4)
            place, align = (0.995, rule.at), ("right", "bottom")
            transform = self.axes.get_yaxis_transform()
        else:
            # Below what is drawn: it must not hide the very request that it points at.
            self.axes.axvline(rule.at, color=colour, linewidth=POINT, linestyle=(0, (5, 2.5)), zorder=1.5)
            right = self.figure.x.share(rule.at) > NEAR_RIGHT
            place, align = (rule.at, 0.985), ("right" if right else "left", "top")
            transform = self.axes.get_xaxis_transform()
        self.axes.text(
            *place,
            f" {rule.label} ",
            color=colour,
            fontsize=11.5 * POINT,
            transform=transform,
            zorder=5,
            horizontalalignment=align[0],
            verticalalignment=align[1],
        )

    def _axes(self) -> None:
        for axis, name in ((self.figure.x, "x"), (self.figure.y, "y")):
            marks = ticks(axis)
            getattr(self.axes, f"set_{name}scale")(axis.scale.value)
            getattr(self.axes, f"set_{name}lim")(axis.low, axis.high)
            getattr(self.axes, f"set_{name}ticks")(marks.at, marks.texts)
            getattr(self.axes, f"set_{name}ticks")(marks.minor, [], minor=True)
            label = f"{axis.label} [{marks.unit}]" if marks.unit else axis.label
            getattr(self.axes, f"set_{name}label")(
                label, color=self.palette.ink, fontsize=12.5 * POINT, labelpad=6 * POINT
            )
        self.axes.tick_params(
            which="both", colors=self.palette.soft_ink, labelcolor=self.palette.ink, labelsize=12 * POINT
        )
        self.axes.tick_params(which="major", length=5 * POINT, width=POINT)
        self.axes.tick_params(which="minor", length=3 * POINT, width=0.8 * POINT)
        self.axes.grid(which="major", color=self.palette.grid, linewidth=POINT)
        self.axes.set_axisbelow(True)
        for spine in self.axes.spines.values():
            spine.set(color=self.palette.soft_ink, linewidth=POINT)

    # What is said around it.

    def _heading(self) -> None:
        self._text(20, 17, self.figure.title, 18, weight="bold")
        self._text(20, 44, textwrap.shorten(self.figure.of, 92, placeholder=" …"), 12.5, colour=self.palette.soft_ink)
        y = 68.0
        for note in self.figure.notes:
            if note.kind in (NoteKind.FIDELITY, NoteKind.VERDICT):
                for line in textwrap.wrap(note.text, 106)[:2]:
                    self._text(20, y, line, 12.5, colour=self.palette.moods[note.mood])
                    y += 18

    def _foot(self) -> None:
        wrap = [note for note in self.figure.notes if note.kind is NoteKind.WRAP]
        beside = max((len(note.text) + 3 for note in wrap), default=0)
        room = int((self.width - 20 - RIGHT) / LETTER)
        lines = foot(self.figure.notes, room, room - beside)
        last = self.height - (25 if len(lines) < 2 else 18)
        for number, line in enumerate(reversed(lines)):
            self._text(20, last - 16 * number, line.text, 12, colour=self.palette.moods[line.mood])
        for note in wrap:
            self._text(
                self.width - RIGHT,
                last,
                note.text,
                12,
                colour=self.palette.moods[note.mood],
                align="right",
                weight="bold" if note.mood is Mood.WARNING else "normal",
            )

    def _stamps(self) -> None:
        stamps = [note for note in self.figure.notes if note.kind is NoteKind.STAMP]
        for number, note in enumerate(stamps):
            self.axes.text(
                0.5,
                0.5 + 0.26 * ((len(stamps) - 1) / 2 - number),
                note.text,
                transform=self.axes.transAxes,
                fontsize=min(74, 1250 / max(len(note.text), 1)) * POINT,
                color=self.palette.moods[note.mood],
                alpha=0.33,
                rotation=14,
                weight="bold",
                horizontalalignment="center",
                verticalalignment="center",
                zorder=6,
            )

    def _text(
        self,
        x: float,
        y_from_top: float,
        text: str,
        pixels: float,
        *,
        colour: str = "",
        align: str = "left",
        weight: str = "normal",
    ) -> None:
        self.canvas.text(
            x / self.width,
            1 - (y_from_top + pixels) / self.height,
            text,
            fontsize=pixels * POINT,
            color=colour or self.palette.ink,
            horizontalalignment=align,
            verticalalignment="baseline",
            weight=weight,
        )
