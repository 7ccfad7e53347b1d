"""Draws figures for pages with Bokeh: plots that zoom, share their time axis, and get their colours from the page.

A cloud is stored as the packed nonempty cells of its rasters, finer where it is sparse. The page's script
(report/assets/clouds.js) turns them into an image with the resolution of the visible range. Colours are those of the
light theme; the tags of each model name the roles of its colours, so that the page can change them.
"""

from __future__ import annotations

import base64
import json
import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from iosonar.figures.levels import levels
from iosonar.figures.model import (
    FEW_STEPS,
    Axis,
    Cloud,
    CloudPart,
    Direction,
    Figure,
    Line,
    Role,
    Rule,
    Scale,
    Steps,
    Stroke,
    Unit,
    horizontal_names_at_left,
)
from iosonar.figures.palette import PALETTES, Theme
from iosonar.figures.size import MAX_SINGLE_REQUESTS, dot_of
from iosonar.figures.ticks import is_long, unit_name

if TYPE_CHECKING:
    from bokeh.models import Range1d
    from bokeh.plotting import figure as BokehPlot  # noqa: N812 - a class, for all its name

HEIGHT = 360
"""Height of a plot in pixels; its width is that of the page."""

LEFT = 92
"""Width of the y axis: the same in all plots, so that time axes are aligned."""

MAX_CELLS = MAX_SINGLE_REQUESTS
"""The most nonempty cells of a cloud in a page, to limit its size: see `levels`."""

DASHES: dict[Stroke, Any] = {Stroke.SOLID: "solid", Stroke.DASHED: [7, 4], Stroke.DOTTED: [2, 3]}
_LIGHT = PALETTES[Theme.LIGHT]
RULE_NAMES = 36
"""Room above a plot for two lines of names of vertical rules."""


@dataclass
class Plots:
    """The plots of one page. Those over the same time range share its range and cursor."""

    ranges: dict[Axis, Range1d] = field(default_factory=dict)

    def draw(self, drawn: Figure) -> tuple[BokehPlot, dict[str, Any]]:
        """A plot, and its description for the page's script: axes, series and clouds."""
        from bokeh.models import Range1d, ResetTool, SaveTool
        from bokeh.models.tools import BoxZoomTool, PanTool, WheelZoomTool
        from bokeh.plotting import figure

        tools: list[Any] = [BoxZoomTool(), PanTool(), WheelZoomTool(modifiers={"ctrl": True}), ResetTool(), SaveTool()]
        plot = figure(
            name=drawn.name,
            height=HEIGHT,
            sizing_mode="stretch_width",
            x_range=self._x_range(drawn.x),
            y_range=Range1d(start=drawn.y.low, end=drawn.y.high),
            x_axis_type=_kind(drawn.x),
            y_axis_type=_kind(drawn.y),
            tools=tools,
            active_drag=tools[0],
            toolbar_location="above",
            min_border_left=LEFT,
            min_border_right=18,
            lod_threshold=None,
        )
        plot.toolbar.logo = None
        plot.toolbar.autohide = True
        _style(plot, drawn)
        layers = [self._layer(plot, drawn, number) for number in range(len(drawn.layers))]
        description = {"name": drawn.name, "x": _axis(drawn.x), "y": _axis(drawn.y), "layers": layers}
        return plot, description

    def _x_range(self, axis: Axis) -> Any:
        from bokeh.models import Range1d

        if axis.unit is not Unit.TIMELINE:
            return Range1d(start=axis.low, end=axis.high)
        key = Axis("", axis.unit, axis.low, axis.high)
        return self.ranges.setdefault(key, Range1d(start=axis.low, end=axis.high, name="time"))

    def _layer(self, plot: BokehPlot, drawn: Figure, number: int) -> dict[str, Any]:
        layer, name = drawn.layers[number], f"{drawn.name}:{number}"
        match layer:
            case Cloud():
                return _cloud(plot, drawn, layer, name)
            case Line():
                colour, tag = _coloured(layer.role, "line_color")
                source = {"x": layer.x, "y": layer.y.astype(np.float32)}
                line = plot.line("x", "y", source=source, line_width=1.6, line_dash=DASHES[layer.stroke], **colour)
                line.name, line.glyph.tags = name, tag
                models = [name, *_marks(plot, layer, source, f"{name}.marks")]
                return {"kind": "line", "label": layer.label, "role": layer.role, "models": models}
            case Steps():
                return _steps(plot, drawn, layer, name)
            case Rule():
                return _rule(plot, drawn, layer, name)


def _marks(plot: BokehPlot, line: Line, source: dict[str, Any], name: str) -> list[str]:
    """The marks of a line's points, if it has any: the names of their models."""
    if not line.marks:
        return []
    colour, tag = _coloured(line.role, "line_color", "fill_color")
    marks = plot.scatter("x", "y", source=source, size=7, **colour)
    marks.name, marks.glyph.tags = name, tag
    return [name]


def _kind(axis: Axis) -> Any:
    return "log" if axis.scale is Scale.LOG else "linear"


def _axis(axis: Axis) -> dict[str, Any]:
    log = axis.scale is Scale.LOG
    ends = {"low": axis.low, "high": axis.high, "log": log, "floor": axis.floor}
    return {"unit": axis.unit, "label": axis.label, "long": is_long(axis), **ends}


def _coloured(role: str, *properties: str) -> tuple[dict[str, Any], list[Any]]:
    """The colour of a role for some properties of a glyph, and the tag by which the page changes it."""
    colour = _LIGHT.roles[role]  # type: ignore[index]
    return dict.fromkeys(properties, colour), [{"roles": {name: str(role) for name in properties}}]


def _cloud(plot: BokehPlot, drawn: Figure, cloud: Cloud, name: str) -> dict[str, Any]:
    from bokeh.models import ColumnDataSource

    nothing: dict[str, Any] = {"image": [], "x": [], "y": [], "dw": [], "dh": []}
    source = ColumnDataSource(nothing, name=name)
    plot.image_rgba("image", "x", "y", "dw", "dh", source=source)
    parts: list[dict[str, Any]] = [{"label": part.label, "role": part.role, "levels": []} for part in cloud.parts]
    for level in levels(cloud, MAX_CELLS):
        for part, cells in zip(parts, level.cloud.parts, strict=True):
            if len(cells.counts):
                packed_cells = packed(cells, level.cloud.across)
                part["levels"].append({"joined": level.joined, "across": level.cloud.across, "cells": packed_cells})
    raster = {"across": cloud.across, "up": cloud.up, "dot": dot_of(cloud.requests), "whole": cloud.whole_numbers}
    return {"kind": "cloud", "parts": parts, "models": [name], **raster}


def packed(part: CloudPart, across: int) -> str:
    """The nonempty cells sorted by position (row × across + column): differences of positions, then counts.

    Both as 32-bit integers, concatenated, compressed (RFC 1950) and in base64.
    """
    places = part.rows.astype(np.int64) * across + part.columns
    order = np.argsort(places)
    numbers: NDArray[np.int32] = np.concatenate(
        [np.diff(places[order], prepend=0), np.minimum(part.counts[order], 2**31 - 1)]
    ).astype("<i4")
    # Bytes of equal significance adjacent: most are zero.
    planes = numbers.view(np.uint8).reshape(-1, 4).T.tobytes()
    return base64.b64encode(zlib.compress(planes, 9)).decode()


def _steps(plot: BokehPlot, drawn: Figure, steps: Steps, name: str) -> dict[str, Any]:
    colour, tag = _coloured(steps.role, "line_color")
    whole = len(steps.y) - steps.partial
    log = drawn.y.scale is Scale.LOG
    models = []
    for number, (first, last, stroke) in enumerate(((0, whole, steps.stroke), (whole, len(steps.y), Stroke.DOTTED))):
        if first >= last:
            continue
        edges, y = steps.edges[first : last + 1], steps.y[first:last].astype(np.float32)
        if log:
            # A zero is below the frame: lines go down to it. The page's script shows it as zero.
            y = np.where(y <= 0, np.float32(drawn.y.low / 10), y)
        x, corners = outline(edges, y)
        # Square caps keep a bin visible that is narrower than a pixel.
        cap = "square" if stroke is Stroke.SOLID else "butt"
        width = 3.2 if steps.role is Role.ALL and not steps.filled and len(steps.y) <= FEW_STEPS else 1.6
        faint: dict[str, Any] = {"line_alpha": 0.35} if steps.filled and steps.role is Role.FAINT else {}
        line = plot.line(
            "x",
            "y",
            source={"x": x, "y": corners},
            line_width=width,
            **faint,
            line_dash=DASHES[stroke],
            line_cap=cap,
            **colour,
        )
        line.name, line.glyph.tags = f"{name}.{number}", tag
        models.append(line.name)
        if steps.filled:
            fill, fill_tag = _coloured(steps.role, "fill_color")
            xs, ys = areas(x, corners, drawn.y.low if log else 0.0)
            area = plot.patches(
                "xs", "ys", source={"xs": xs, "ys": ys}, line_color=None, fill_alpha=0.7 if steps.bars else 0.13, **fill
            )
            area.name, area.glyph.tags = f"{name}.{number}.area", fill_tag
            models.append(area.name)
    return {"kind": "steps", "label": steps.label, "role": steps.role, "models": models}


def outline(edges: NDArray[np.float64], y: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """The corners of a staircase: each value from its lower to its upper edge, even for an isolated one.

    Corners within equal values, or within a gap, are left out.
    """
    x, corners = np.repeat(edges, 2)[1:-1], np.repeat(y, 2)
    same = (corners[1:] == corners[:-1]) | (np.isnan(corners[1:]) & np.isnan(corners[:-1]))
    needed = ~np.concatenate([[False], same[1:] & same[:-1], [False]])
    return x[needed], corners[needed]


def areas(
    x: NDArray[np.float64], y: NDArray[Any], floor: float
) -> tuple[list[NDArray[np.float64]], list[NDArray[np.float64]]]:
    """The areas between an outline and the floor: a polygon for each section without a gap."""
    xs, ys = [], []
    known = np.flatnonzero(~np.isnan(y))
    for section in np.split(known, np.flatnonzero(np.diff(known) > 1) + 1):
        if len(section):
            inside = x[section]
            xs.append(np.concatenate([inside[:1], inside, inside[-1:]]))
            ys.append(np.concatenate([[floor], y[section], [floor]]))
    return xs, ys


def _rule(plot: BokehPlot, drawn: Figure, rule: Rule, name: str) -> dict[str, Any]:
    from bokeh.models import Node
    from bokeh.models.annotations import Label, Span

    colour, tag = _coloured(rule.role, "line_color")
    across = rule.direction is Direction.HORIZONTAL
    # Below the data: a rule must not hide the request that it points at.
    stroke: dict[str, Any] = (
        {"line_width": 1.5} if across else {"line_width": 1, "line_dash": [6, 3], "level": "underlay"}
    )
    plot.add_layout(
        Span(location=rule.at, dimension="width" if across else "height", name=name, tags=tag, **stroke, **colour)
    )
    described = {"kind": "rule", "label": rule.label, "role": rule.role, "models": [name]}
    if not across:
        # The page's script writes the name above the frame, where it covers no data.
        plot.min_border_top = RULE_NAMES
        return {**described, "at": rule.at}
    text_colour, text_tag = _coloured(rule.role, "text_color")
    is_left = horizontal_names_at_left(drawn)
    end = Node(target="frame", symbol="left" if is_left else "right", offset=8 if is_left else -8)
    place: dict[str, Any] = {"x": end, "y": rule.at, "text_align": "left" if is_left else "right"}
    # A background, so that lines do not cross the name.
    paper: dict[str, Any] = {"background_fill_color": _LIGHT.plot, "background_fill_alpha": 0.75}
    text_tag.append({"paper": {"background_fill_color": "plot"}})
    look: dict[str, Any] = {"text_font_size": "12px", "text_baseline": "bottom", "tags": text_tag}
    plot.add_layout(Label(text=rule.label, **look, **place, **text_colour, **paper))
    return described


def _style(plot: BokehPlot, drawn: Figure) -> None:
    """Styles axes and grid."""
    from bokeh.models import AdaptiveTicker, CustomJSTicker, CustomJSTickFormatter, FixedTicker

    plot.background_fill_color, plot.border_fill_color, plot.outline_line_color = _LIGHT.plot, _LIGHT.paper, _LIGHT.grid
    plot.tags = [
        {"paper": {"background_fill_color": "plot", "border_fill_color": "paper", "outline_line_color": "grid"}}
    ]
    for line in plot.grid:
        line.grid_line_color, line.tags = _LIGHT.grid, [{"paper": {"grid_line_color": "grid"}}]
    for model, axis in ((plot.xaxis[0], drawn.x), (plot.yaxis[0], drawn.y)):
        long = is_long(axis)
        model.axis_label = _label(axis, long)
        model.formatter = CustomJSTickFormatter(
            code=f"return window.iosonar.tick('{axis.unit}', tick, {str(long).lower()}, ticks, {_lowest(axis)})"
        )
        if axis.named:
            model.ticker = FixedTicker(ticks=[at for at, _ in axis.named])
            names = json.dumps([text for _, text in axis.named], ensure_ascii=False)
            places = json.dumps([at for at, _ in axis.named])
            model.formatter = CustomJSTickFormatter(code=f"return {names}[{places}.indexOf(tick)] ?? ''")
        elif axis.scale is Scale.LOG or axis.unit is Unit.BYTES:
            log = str(axis.scale is Scale.LOG).lower()
            name = f", '{drawn.name}'" if axis is drawn.x else ""
            found = f"window.iosonar.ticks('{axis.unit}', {log}, cb_data.start, cb_data.end, {_lowest(axis)}{name})"
            model.ticker = CustomJSTicker(major_code=f"return {found}.major", minor_code=f"return {found}.minor")
        elif axis.whole:
            model.ticker = AdaptiveTicker(min_interval=1, mantissas=[1, 2, 5])
        elif long:
            model.ticker = AdaptiveTicker(base=60, mantissas=[1, 2, 5, 10, 15, 20, 30], desired_num_ticks=9)
        model.axis_label_text_font_style = "normal"
        model.axis_label_text_font_size, model.major_label_text_font_size = "13px", "12px"
        model.axis_line_color = model.major_tick_line_color = model.minor_tick_line_color = _LIGHT.soft_ink
        model.axis_label_text_color = model.major_label_text_color = _LIGHT.ink
        soft = dict.fromkeys(("axis_line_color", "major_tick_line_color", "minor_tick_line_color"), "soft_ink")
        texts = dict.fromkeys(("axis_label_text_color", "major_label_text_color"), "ink")
        model.tags = [{"paper": soft | texts}]


def _lowest(axis: Axis) -> float:
    """The end at which values below an axis are, for the page's script; 0 if there are none."""
    return axis.low if axis.floor else 0


def _label(axis: Axis, long: bool) -> str:
    """An axis's label, with the unit of its ticks unless they have it."""
    unit = ("h:min:s" if long else "s") if axis.unit is Unit.TIMELINE else unit_name(axis)
    return f"{axis.label} [{unit}]" if unit else axis.label
