"""Numbers as people read them: µs, ms, s; thousands and millions; KiB and GiB."""

from __future__ import annotations

import math

_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_COUNTS = ((1e12, " T"), (1e9, " G"), (1e6, " M"), (1e3, " k"))
_BYTES = ((2.0**40, "TiB"), (2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"))

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number(value: float, digits: int = 3) -> str:
    """Without an exponent and with that many significant digits: 12.3, 0.00123, 1230."""
    if not math.isfinite(value):
        return "–"
    if value == 0:
        return "0"
    decimals = max(digits - 1 - math.floor(math.log10(abs(value))), 0)
    text = f"{value:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def seconds(value: float, digits: int = 3) -> str:
    """A span of time: 1.23 ms."""
    if not math.isfinite(value):
        return "–"
    for size, unit in _TIMES:
        # Half a digit below, so that 999.9 µs with three digits reads 1 ms.
        if abs(value) >= size * (1 - 0.5 * 10.0**-digits):
            return f"{number(value / size, digits)} {unit}"
    return f"{number(value * 1e9, digits)} ns" if value else "0 s"


def count(value: float, digits: int = 3) -> str:
    """How many: 80.8 k. Below ten thousand in full."""
    if not math.isfinite(value):
        return "–"
    if 0 < abs(value) < 0.001:
        # Too many zeros can't be counted at a glance.
        power = math.floor(math.log10(abs(value)))
        return f"{number(value / 10.0**power, digits)} × 10{str(power).translate(_RAISED)}"
    if abs(value) < 10_000:
        return f"{number(value, max(digits, 4) if value == int(value) else digits)}"
    for size, unit in _COUNTS:
        if abs(value) >= size:
            return f"{number(value / size, digits)}{unit}"
    return number(value, digits)


def binary_bytes(value: float, digits: int = 3) -> str:
    """An amount of data: 1.5 GiB."""
    for size, unit in _BYTES:
        if abs(value) >= size:
            return f"{number(value / size, digits)} {unit}"
    return f"{number(value, digits)} B"


def percent(share: float) -> str:
    """A share of 1 in percent, to a hundredth near the ends: 99.97 %."""
    if not math.isfinite(share):
        return "–"
    value = share * 100
    digits = 2 if 99 < value < 100 or 0 < value < 1 else 1
    # Never round to all or nothing what is neither.
    shown = min(value, 99.99) if value < 100 else value
    return f"{shown:.{digits}f} %" if shown not in (0, 100) else f"{shown:.0f} %"
