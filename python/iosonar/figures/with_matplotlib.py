"""Draws figures as SVG or PDF, or on axes, with matplotlib, without its windows and global state."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from iosonar.figures import raster
from iosonar.figures.around import TEXT, draw_around
from iosonar.figures.dots import dots
from iosonar.figures.model import (
    FEW_STEPS,
    Cloud,
    Direction,
    Figure,
    Line,
    NoteKind,
    Role,
    Rule,
    Severity,
    Steps,
    Stroke,
    horizontal_names_at_left,
    name_of_rule,
)
from iosonar.figures.palette import PALETTES, Palette, Theme
from iosonar.figures.ruler import Ruler
from iosonar.figures.size import BOTTOM, LEFT, RIGHT, TOP, AxesSize, Size
from iosonar.figures.ticks import spaced, ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

DPI = 100
"""Pixels of the base size per inch; matplotlib measures in inches and points."""

POINT = 72 / DPI
"""Points per pixel of the base size."""

BESIDE_FRAME = 0.012
"""Grid lines within that share of the axis from the frame are left out."""

MAX_WARNINGS = 2
"""The most warnings below the title of a diagram on axes of others."""

LEGEND_DASHES: dict[Stroke, Any] = {
    Stroke.SOLID: "solid",
    Stroke.DASHED: (0, (2.5, 1.5)),
    Stroke.DOTTED: (0, (1, 1.5)),
}

DASHES = {Stroke.SOLID: "solid", Stroke.DASHED: (0, (4, 2)), Stroke.DOTTED: (0, (1, 1.5))}


def draw(figure: Figure, path: Path, size: Size, theme: Theme) -> None:
    """Draws a figure into a file of the type given by its suffix."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    palette = PALETTES[theme]
    settings: Any = {
        "svg.fonttype": "none",
        "svg.hashsalt": "iosonar",
        "font.family": ["DejaVu Sans"],
        "path.simplify": True,
        # Text between two `$` in a file name is not a formula.
        "text.parse_math": False,
    }
    with matplotlib.rc_context(settings), warnings.catch_warnings():
        # File names may have characters that the font lacks.
        warnings.filterwarnings("ignore", r"Glyph \d+ .*missing from")
        canvas = Canvas(
            figsize=(size.width / size.scale / DPI, size.height / size.scale / DPI),
            dpi=DPI * size.scale,
            facecolor=palette.paper,
        )
        FigureCanvasAgg(canvas)
        _Drawing(figure, canvas, palette, size).draw()
        no_date = {"Date": None} if path.suffix == ".svg" else {"CreationDate": None}
        canvas.savefig(path, facecolor=palette.paper, metadata=no_date)


def new_axes() -> Axes:
    """The axes of a new figure, which a notebook shows."""
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(10, 6), layout="constrained")[1]


def draw_on(figure: Figure, axes: Axes, theme: Theme) -> None:
    """Draws a figure on axes, with its title and its legend; what the notes warn of is below the title."""
    import matplotlib
    from matplotlib.lines import Line2D

    # The figure of a figure is the outermost one.
    canvas: Any = axes.figure.figure
    # Text between two `$` is not a formula.
    with matplotlib.rc_context({"text.parse_math": False}):
        box, palette = axes.get_window_extent(), PALETTES[theme]
        drawing = _Drawing(figure, canvas, palette, AxesSize(max(round(box.width), 1), max(round(box.height), 1)), axes)
        drawing.draw_inside()
        axes.set_facecolor(palette.plot)
        warned = [note for note in figure.notes if note.severity in (Severity.BAD, Severity.WARNING)]
        # A stamp says in short what a warning says.
        texts = [note.text for note in warned if note.kind is not NoteKind.STAMP] or [note.text for note in warned]
        axes.set_title("\n".join((figure.title, *texts[:MAX_WARNINGS])), color=palette.ink, fontsize=13 * POINT)
        rows = [Line2D([], [], color=palette.roles[row.role], linewidth=3) for row in figure.legend.rows]
        if rows:
            names = [row.label for row in figure.legend.rows]
            # Beside the axes, where the layout leaves room, so that it covers no data.
            beside: Any = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)}
            place = beside if canvas.get_layout_engine() else {"loc": "upper right"}
            axes.legend(rows, names, fontsize=11 * POINT, framealpha=0.8, **place)


class _Drawing:
    """One figure on one canvas; positions are in pixels of the base size, from the upper or lower left."""

    def __init__(self, figure: Figure, canvas: Canvas, palette: Palette, size: Size, axes: Axes | None = None) -> None:
        self.figure, self.canvas, self.palette, self.size = figure, canvas, palette, size
        self.ruler = Ruler(canvas)
        self.fullest = 1.0
        self.width, self.height = (float(inches) * DPI for inches in canvas.get_size_inches())
        self.axes: Axes = axes or canvas.add_axes(
            (
                LEFT / self.width,
                BOTTOM / self.height,
                (self.width - LEFT - RIGHT) / self.width,
                (self.height - TOP - BOTTOM) / self.height,
            ),
            facecolor=palette.plot,
        )

    def draw(self) -> None:
        self.draw_inside()
        self._place_y_label(ticks(self.figure.y).texts)
        draw_around(self.figure, self, self.palette, self.fullest)
        self._stamps()

    def draw_inside(self) -> None:
        """Draws layers and axes."""
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

    # The diagram.

    def _cloud(self, cloud: Cloud) -> None:
        requests = cloud.requests
        found = dots(cloud, *self.size.cells(requests))
        self.axes.imshow(
            raster.image(found, cloud, self.palette, self.size.dot(requests)),
            extent=(0, 1, 0, 1),
            transform=self.axes.transAxes,
            origin="lower",
            aspect="auto",
            interpolation="nearest",
            zorder=2,
        )
        self.fullest = found.maximum

    def _line(self, line: Line) -> None:
        self.axes.plot(
            line.x,
            line.y,
            color=self.palette.roles[line.role],
            linestyle=DASHES[line.stroke],
            linewidth=1.5 * POINT,
            marker="o" if line.marks else None,
            markersize=6 * POINT,
            solid_joinstyle="round",
            zorder=3,
        )

    def _steps(self, steps: Steps) -> None:
        colour = self.palette.roles[steps.role]
        whole = len(steps.y) - steps.partial
        is_background = steps.filled and steps.role is Role.FAINT
        for first, last, stroke in ((0, whole, steps.stroke), (whole, len(steps.y), Stroke.DOTTED)):
            if first < last:
                edges, y = steps.edges[first : last + 1], steps.y[first:last]
                self._staircase(
                    y,
                    edges,
                    baseline=None,
                    edgecolor=colour,
                    linestyle=DASHES[stroke],
                    linewidth=(
                        3.2 if steps.role is Role.ALL and not steps.filled and len(steps.y) <= FEW_STEPS else 1.6
                    )
                    * POINT,
                    # Background lines are faint.
                    alpha=0.35 if is_background else 1,
                    # Projecting caps keep a bin visible that is narrower than a pixel.
                    capstyle="projecting" if stroke is Stroke.SOLID else "butt",
                    zorder=2.5 if is_background else 3,
                )
                if steps.filled:
                    alpha = 0.7 if steps.bars else 0.18 if is_background else 0.12
                    self._staircase(y, edges, fill=True, facecolor=colour, alpha=alpha, linewidth=0, zorder=2)

    def _staircase(self, y: Any, edges: Any, *, fill: bool = False, **look: Any) -> None:
        """Like `Axes.stairs`, which also computes the axes' limits, at more cost than drawing; here they are given."""
        from matplotlib.patches import StepPatch

        self.axes.add_artist(StepPatch(y, edges, fill=fill, **look))

    def _rule(self, rule: Rule) -> None:
        from matplotlib.patheffects import withStroke

        colour = self.palette.roles[rule.role]
        if rule.direction is Direction.HORIZONTAL:
            self.axes.axhline(rule.at, color=colour, linewidth=1.4 * POINT, zorder=4)
            is_left = horizontal_names_at_left(self.figure)
            place, align = (0.005 if is_left else 0.995, rule.at), ("left" if is_left else "right", "bottom")
            transform = self.axes.get_yaxis_transform()
        else:
            # Below the data: a rule must not hide the request that it points at.
            self.axes.axvline(rule.at, color=colour, linewidth=POINT, linestyle=(0, (5, 2.5)), zorder=1.5)
            named = name_of_rule(self.figure, rule)
            lower = 0.985 - named.row * 1.3 * TEXT / (self.height - TOP - BOTTOM)
            place, align = (rule.at, lower), ("right" if named.is_left else "left", "top")
            transform = self.axes.get_xaxis_transform()
        if rule.can_be_nameless:
            return
        self.axes.text(
            *place,
            f" {rule.label} ",
            color=colour,
            fontsize=11.5 * POINT,
            transform=transform,
            zorder=5,
            horizontalalignment=align[0],
            verticalalignment=align[1],
            # A halo keeps it readable and covers less of the data than a box.
            path_effects=[withStroke(linewidth=3 * POINT, foreground=self.palette.plot)],
        )

    def _axes(self) -> None:
        for axis, name in ((self.figure.x, "x"), (self.figure.y, "y")):
            marks = ticks(axis)
            if name == "x" and not axis.named:
                marks = spaced(marks, axis, self.axes.get_window_extent().width * DPI / self.canvas.dpi, self._width)
            getattr(self.axes, f"set_{name}scale")(axis.scale.value)
            getattr(self.axes, f"set_{name}lim")(axis.low, axis.high)
            getattr(self.axes, f"set_{name}ticks")(marks.at, marks.texts)
            self._minor_ticks(name, marks.minor)
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
        self._hide_lines_at_frame()
        for side, spine in self.axes.spines.items():
            spine.set(color=self.palette.soft_ink if side in ("left", "bottom") else self.palette.grid, linewidth=POINT)

    def _hide_lines_at_frame(self) -> None:
        """Hides grid lines at the frame, which would look like a second frame."""
        for axis, drawn in ((self.figure.x, self.axes.xaxis), (self.figure.y, self.axes.yaxis)):
            for tick in drawn.get_major_ticks():
                at = tick.get_loc()
                if not BESIDE_FRAME < axis.share(at) < 1 - BESIDE_FRAME:
                    tick.gridline.set_visible(False)

    def _place_y_label(self, texts: list[str]) -> None:
        """Places the label of the y axis at the same position in every picture, with room for tick labels."""
        self.axes.yaxis.set_label_coords(22 - LEFT, 0.5, self._pixels_and_share())
        room = LEFT - 36
        widest = max((self.ruler.width(text, 12) for text in texts), default=0)
        if widest > room:
            self.axes.tick_params(axis="y", labelsize=12 * POINT * room / widest)

    def _pixels_and_share(self) -> Any:
        """Coordinates in pixels of the base size from the axis to the right, and in shares of the axis upwards."""
        from matplotlib.transforms import Affine2D, blended_transform_factory

        pixels = Affine2D().scale(self.canvas.dpi / DPI).translate(LEFT * self.canvas.dpi / DPI, 0)
        return blended_transform_factory(pixels, self.axes.transAxes)

    def _minor_ticks(self, name: str, places: list[float]) -> None:
        """Draws minor ticks as one artist: matplotlib uses several for each, which take most of a picture's time."""
        from matplotlib.lines import Line2D
        from matplotlib.markers import TICKDOWN, TICKLEFT
        from matplotlib.ticker import NullLocator

        across = name == "x"
        marker: Any = TICKDOWN if across else TICKLEFT
        (self.axes.xaxis if across else self.axes.yaxis).set_minor_locator(NullLocator())
        ends = [0.0] * len(places)
        marks = Line2D(
            places if across else ends,
            ends if across else places,
            linestyle="none",
            marker=marker,
            markersize=3 * POINT,
            markeredgewidth=0.8 * POINT,
            color=self.palette.soft_ink,
            transform=self.axes.get_xaxis_transform() if across else self.axes.get_yaxis_transform(),
            clip_on=False,
            zorder=2.01,
        )
        self.axes.add_artist(marks)

    # The text around the diagram.

    def measure(self, text: str, pixels: float, weight: str = "normal") -> float:
        """The width of a text."""
        return self.ruler.width(text, pixels, weight)

    def _width(self, text: str) -> float:
        return self.measure(text, TEXT)

    def _stamps(self) -> None:
        stamps = [note for note in self.figure.notes if note.kind is NoteKind.STAMP]
        for number, note in enumerate(stamps):
            self.axes.text(
                0.5,
                0.5 + 0.26 * ((len(stamps) - 1) / 2 - number),
                note.text,
                transform=self.axes.transAxes,
                fontsize=min(74, 1250 / max(len(note.text), 1)) * POINT,
                color=self.palette.severities[note.severity],
                alpha=0.33,
                rotation=14,
                weight="bold",
                horizontalalignment="center",
                verticalalignment="center",
                zorder=6,
            )

    def text(
        self, x: float, y: float, text: str, pixels: float, colour: str, align: str = "left", weight: str = "normal"
    ) -> None:
        """Writes a line of text."""
        self.canvas.text(
            x / self.width,
            1 - (y + pixels) / self.height,
            text,
            fontsize=pixels * POINT,
            color=colour,
            horizontalalignment=align,
            verticalalignment="baseline",
            weight=weight,
        )

    def square(self, x: float, y: float, side: float, colour: str) -> None:
        """A filled square."""
        self._mark([x, x], y, colour, marker="s", markersize=side * POINT, markeredgewidth=0, linestyle="none")

    def dash(self, x: float, y: float, length: float, width: float, colour: str, stroke: Stroke) -> None:
        """A line of a legend."""
        self._mark([x, x + length], y, colour, linewidth=width * POINT, linestyle=LEGEND_DASHES[stroke])

    def _mark(self, x: list[float], y: float, colour: str, **look: Any) -> None:
        from matplotlib.lines import Line2D

        height = 1 - y / self.height
        mark = Line2D([each / self.width for each in x], [height] * 2, color=colour, **look)
        mark.set_transform(self.canvas.transFigure)
        self.canvas.add_artist(mark)

    def strip(self, x: float, y: float, wide: float, high: float, colours: NDArray[np.float64]) -> None:
        """Rows of colours."""
        place = (x / self.width, 1 - (y + high) / self.height, wide / self.width, high / self.height)
        area = self.canvas.add_axes(place)
        area.imshow(colours, aspect="auto", interpolation="nearest")
        area.set_axis_off()
