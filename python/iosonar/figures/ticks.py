"""The positions and labels of ticks."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from iosonar import units
from iosonar.figures.model import Axis, Scale, Unit

_TIMELINES = (
    # longest axis in seconds that is labelled in this unit, the unit's seconds, its name, steps between ticks
    (5e-7, 1e-9, "ns", (1, 2, 5, 10, 20, 50, 100)),
    (5e-4, 1e-6, "µs", (1, 2, 5, 10, 20, 50, 100)),
    (0.5, 1e-3, "ms", (1, 2, 5, 10, 20, 50, 100)),
    (900.0, 1.0, "s", (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120)),
    (4 * 3600.0, 60.0, "min", (1, 2, 5, 10, 15, 20, 30, 60)),
    (7 * 86400.0, 3600.0, "h", (0.5, 1, 2, 3, 6, 12, 24, 48)),
    (math.inf, 86400.0, "d", (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)),
)
MAX_TICKS = 12
LONG_S = 900.0
"""On longer time axes, pages write times as h:min:s."""
MAX_DIGITS = 15
GAP = 14
"""Pixels between the labels of an x axis."""


@dataclass(frozen=True)
class Ticks:
    """Major ticks with texts, minor ticks without, and the unit to append to the axis's label."""

    at: list[float]
    texts: list[str]
    minor: list[float]
    unit: str


def ticks(axis: Axis) -> Ticks:
    """The ticks of an axis, all within its range."""
    if axis.named:
        return Ticks([at for at, _ in axis.named], [text for _, text in axis.named], [], "")
    if axis.unit is Unit.TIMELINE:
        return _timeline(axis)
    if axis.scale is Scale.LOG:
        return _powers_of_two(axis) if axis.unit is Unit.BYTES else _floored(axis, _logarithmic(axis))
    return _linear(axis)


def spaced(found: Ticks, axis: Axis, room: float, width: Callable[[str], float]) -> Ticks:
    """Every second, third, … tick of an x axis that has `room`, so that no labels collide."""
    both = zip(found.at, found.texts, strict=True)
    labels = [(room * axis.share(at), (width(said) + GAP) / 2) for at, said in both]
    for step in range(1, len(labels)):
        if all(left + half <= right - other for (left, half), (right, other) in pairwise(labels[::step])):
            return Ticks(found.at[::step], found.texts[::step], found.minor, found.unit)
    return Ticks(found.at[:1], found.texts[:1], found.minor, found.unit)


def text(unit: Unit, value: float) -> str:
    """The text for a value of an axis."""
    if unit in (Unit.SECONDS, Unit.TIMELINE):
        return units.seconds(value)
    if unit is Unit.BYTES:
        return units.binary_bytes(value)
    if unit is Unit.BYTES_PER_S:
        return f"{units.transferred(value, 6)}/s" if value else "0"
    if unit is Unit.ODDS:
        return f"{units.number(100 - 100 / value, 12)} %"
    if unit is Unit.PERCENT:
        return f"{units.number(value)} %"
    return units.tick(value)


def is_long(axis: Axis) -> bool:
    """Whether pages label an axis with h:min:s."""
    return axis.unit is Unit.TIMELINE and axis.high - axis.low > LONG_S


def moment(axis: Axis, at_s: float) -> str:
    """A time on an axis, written as pages write it there: 158.48 s, or 0:02:38.48 on a long axis."""
    return units.clock(at_s) if is_long(axis) else units.seconds(at_s, 5)


def _logarithmic(axis: Axis) -> Ticks:
    lowest, highest = math.floor(math.log10(axis.low) + 1e-9), math.ceil(math.log10(axis.high) - 1e-9)
    decades = [10.0**power for power in range(lowest, highest + 1)]
    at = [value for value in decades if _within(axis, value)]
    minor = [step * value for value in decades for step in range(2, 10) if _within(axis, step * value)]
    if len(at) < 3:
        # With less than three decades there is room for more labels, as on pages.
        at = sorted([*at, *(value for value in minor if _first_digit(value) in (2, 5))])
    return Ticks(at, [text(axis.unit, value) for value in at], minor, unit_name(axis))


def _floored(axis: Axis, found: Ticks) -> Ticks:
    """The same; if values below the axis are at its lower end, the tick there says so."""
    if not axis.floor:
        return found
    others = [(at, said) for at, said in zip(found.at, found.texts, strict=True) if at > axis.low * (1 + 1e-9)]
    at, texts = zip((axis.low, f"≤ {text(axis.unit, axis.low)}"), *others, strict=True)
    return Ticks(list(at), list(texts), found.minor, found.unit)


def _powers_of_two(axis: Axis) -> Ticks:
    lowest, highest = math.ceil(math.log2(axis.low) - 1e-9), math.floor(math.log2(axis.high) + 1e-9)
    step = max(1, math.ceil((highest - lowest) / MAX_TICKS))
    at = [2.0**power for power in range(lowest, highest + 1) if power % step == 0]
    minor = [2.0**power for power in range(lowest, highest + 1) if power % step]
    return Ticks(at, [text(axis.unit, value) for value in at], minor, "")


def _timeline(axis: Axis) -> Ticks:
    length = axis.high - axis.low
    _, seconds, name, steps = next(row for row in _TIMELINES if length <= row[0])
    step = next((step for step in steps if length / (step * seconds) <= MAX_TICKS), steps[-1])
    while length / (step * seconds) > MAX_TICKS:
        step *= 2
    at = _multiples(axis, step * seconds)
    return Ticks(at, [units.number(value / seconds, 6) for value in at], [], name)


def _linear(axis: Axis) -> Ticks:
    rough = (axis.high - axis.low) / 8
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(step * power for step in (1, 2, 2.5, 5, 10) if step * power >= rough * (1 - 1e-9))
    if axis.whole:
        step = max(math.ceil(step), 1)
    at = _multiples(axis, step)
    if axis.unit is Unit.BYTES:
        binary = 2.0 ** math.ceil(math.log2(rough))
        at = _multiples(axis, binary)
    return Ticks(at, _distinct_texts(axis.unit, at), [], unit_name(axis))


def _distinct_texts(unit: Unit, at: list[float]) -> list[str]:
    """The texts of ticks, with as many digits as are needed to distinguish them."""
    texts = [units.seconds(value, 6) if unit is Unit.SECONDS else text(unit, value) for value in at]
    digits = 6
    while len(set(texts)) < len(at) and digits < MAX_DIGITS:
        digits += 3
        texts = [_exact(unit, value, digits) for value in at]
    return texts


def _exact(unit: Unit, value: float, digits: int) -> str:
    if unit is Unit.SECONDS:
        return units.seconds(value, digits)
    if unit is Unit.BYTES:
        return units.binary_bytes(value, digits)
    if unit is Unit.BYTES_PER_S:
        return f"{units.transferred(value, digits)}/s"
    return units.number(value, digits) + (" %" if unit is Unit.PERCENT else "")


def _multiples(axis: Axis, step: float) -> list[float]:
    first, last = math.ceil(axis.low / step - 1e-9), math.floor(axis.high / step + 1e-9)
    return [number * step for number in range(first, last + 1)]


def _within(axis: Axis, value: float) -> bool:
    return axis.low * (1 - 1e-9) <= value <= axis.high * (1 + 1e-9)


def _first_digit(value: float) -> int:
    return round(value / 10.0 ** math.floor(math.log10(value) + 1e-9))


def unit_name(axis: Axis) -> str:
    """The unit to append to the axis's label; empty if the ticks have the unit, or the label names what is counted."""
    if axis.unit in (Unit.SECONDS, Unit.BYTES, Unit.BYTES_PER_S, Unit.PERCENT, Unit.RANK, Unit.ODDS, Unit.DEVICES):
        return ""
    counted = {Unit.REQUESTS: ("request", "accesses"), Unit.CALLS: ("call",)}.get(axis.unit, ())
    is_named = any(word in axis.label.lower() for word in counted)
    return "" if is_named else str(axis.unit)
