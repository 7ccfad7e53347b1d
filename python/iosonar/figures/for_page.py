"""Describes figures for pages: axes, layers and their numbers as JSON, which the page's script draws.

A number that a reader may see keeps its digits; arrays are packed where that is shorter than JSON. A cloud is stored as
the nonempty cells of its rasters, finer where it is sparse. The page's script (report/assets/clouds.js) turns them into
an image with the resolution of the visible range.
"""

from __future__ import annotations

import base64
import zlib
from typing import Any

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
    Unit,
    horizontal_names_at_left,
)
from iosonar.figures.size import MAX_SINGLE_REQUESTS, dot_of
from iosonar.figures.ticks import is_long, unit_name

MAX_CELLS = MAX_SINGLE_REQUESTS
"""The most nonempty cells of a cloud in a page, to limit its size: see `levels`."""

FEW_NUMBERS = 12
"""At most that many numbers are a list in JSON."""

SAME = 1e-12
"""The share of an axis by which evenly spaced numbers may be off."""

MAX_COUNT = 2**31 - 1
COMPRESSION = 6


def described(figure: Figure) -> dict[str, Any]:
    """A figure as JSON; `packed` has the bytes of its arrays, compressed (RFC 1950) and in base64."""
    found, content = in_two_parts(figure)
    return found | {"packed": base64.b64encode(zlib.compress(content, COMPRESSION)).decode() if content else ""}


def in_two_parts(figure: Figure) -> tuple[dict[str, Any], bytes]:
    """A figure as JSON, and the bytes of its arrays."""
    arrays = _Arrays()
    layers = [_layer(figure, layer, arrays) for layer in figure.layers]
    axes = {"x": _axis(figure.x), "y": _axis(figure.y)}
    return {"name": figure.name, **axes, "layers": layers}, b"".join(arrays.parts)


class _Arrays:
    """The arrays of a figure."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.size = 0

    def add(self, numbers: NDArray[Any]) -> Any:
        """Keeps an array; returns it as a list, as evenly spaced, or its place among the packed bytes."""
        if len(numbers) <= FEW_NUMBERS:
            return [None if each != each else each for each in numbers.tolist()]
        if numbers.dtype == np.float64 and (even := _even(numbers)):
            return even
        kept = numbers.astype(numbers.dtype.newbyteorder("<"), copy=False)
        # Bytes of equal significance adjacent: most are equal.
        planes = kept.view(np.uint8).reshape(len(kept), -1).T.tobytes()
        place = {"type": f"{kept.dtype.kind}{kept.dtype.itemsize}", "n": len(kept), "at": self.size}
        self.parts.append(planes)
        self.size += len(planes)
        return place


def _even(numbers: NDArray[np.float64]) -> dict[str, Any] | None:
    first, last = float(numbers[0]), float(numbers[-1])
    if not np.isfinite([first, last]).all():
        return None
    spaced = np.linspace(first, last, len(numbers))
    if not np.abs(numbers - spaced).max() <= SAME * abs(last - first):
        return None
    return {"n": len(numbers), "from": first, "to": last}


def _axis(axis: Axis) -> dict[str, Any]:
    long = is_long(axis)
    ends = {"low": axis.low, "high": axis.high, "log": axis.scale is Scale.LOG, "floor": axis.floor}
    labels = {"title": _title(axis, long), "named": axis.named, "whole": axis.whole, "long": long}
    return {"unit": axis.unit, **ends, **labels}


def _title(axis: Axis, long: bool) -> str:
    """An axis's label, with the unit of its ticks unless they have it."""
    unit = ("h:min:s" if long else "s") if axis.unit is Unit.TIMELINE else unit_name(axis)
    return f"{axis.label} [{unit}]" if unit else axis.label


def _layer(figure: Figure, layer: Cloud | Line | Steps | Rule, arrays: _Arrays) -> dict[str, Any]:
    match layer:
        case Cloud():
            return _cloud(layer, arrays)
        case Line():
            look = {"stroke": layer.stroke.value, "width": 1.6, "marks": layer.marks}
            numbers = {"x": arrays.add(layer.x.astype(np.float64)), "y": arrays.add(layer.y.astype(np.float32))}
            return {"kind": "line", "label": layer.label, "role": layer.role, **look, **numbers}
        case Steps():
            return _steps(layer, arrays)
        case Rule():
            rule = {"kind": "rule", "label": layer.label, "role": layer.role}
            if layer.direction is Direction.VERTICAL:
                return {**rule, "x": layer.at}
            return {**rule, "y": layer.at, "left": horizontal_names_at_left(figure)}


def _steps(steps: Steps, arrays: _Arrays) -> dict[str, Any]:
    wide = steps.role is Role.ALL and not steps.filled and len(steps.y) <= FEW_STEPS
    look: dict[str, Any] = {"stroke": steps.stroke.value, "width": 3.2 if wide else 1.6, "partial": steps.partial}
    if steps.filled:
        look["fill"] = 0.7 if steps.bars else 0.13
        if steps.role is Role.FAINT:
            look["alpha"] = 0.35
    numbers = {"edges": arrays.add(steps.edges.astype(np.float64)), "y": arrays.add(steps.y.astype(np.float32))}
    return {"kind": "steps", "label": steps.label, "role": steps.role, **look, **numbers}


def _cloud(cloud: Cloud, arrays: _Arrays) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"label": part.label, "role": part.role, "levels": []} for part in cloud.parts]
    for level in levels(cloud, MAX_CELLS):
        across = level.cloud.across
        for part, cells in zip(parts, level.cloud.parts, strict=True):
            if len(cells.counts):
                places, counts = cell_numbers(cells, across)
                numbers = {"places": arrays.add(places), "counts": arrays.add(counts)}
                part["levels"].append({"joined": level.joined, "across": across, **numbers})
    size = {"across": cloud.across, "up": cloud.up, "dot": dot_of(cloud.requests), "whole": cloud.whole_numbers}
    return {"kind": "cloud", **size, "parts": parts}


def cell_numbers(part: CloudPart, across: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The nonempty cells sorted by position (row × across + column): differences of positions, and counts."""
    places = part.rows.astype(np.int64) * across + part.columns
    order = np.argsort(places)
    steps: NDArray[np.int32] = np.diff(places[order], prepend=0).astype(np.int32)
    counts: NDArray[np.int32] = np.minimum(part.counts[order], MAX_COUNT).astype(np.int32)
    return steps, counts
