"""Numbers as people read them, everywhere in this half: the one place that rounds.

Times have three significant digits and a unit. Counts stand in full, with commas. What is transferred is decimal (MB,
MB/s), what is addressed (requests, blocks, devices, memory) binary (KiB, GiB). A share is rounded down, so that none
seems to reach a threshold that it misses. report/assets/units.js does the same in pages.
"""

from __future__ import annotations

import math

_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_LARGE = ((1e12, " T"), (1e9, " G"), (1e6, " M"))
_BINARY = [(1024.0**power, unit) for power, unit in enumerate(("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"))][::-1]
_DECIMAL = [(1000.0**power, unit) for power, unit in enumerate(("B", "kB", "MB", "GB", "TB", "PB", "EB"))][::-1]
_LONG = ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s"))

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number(value: float, digits: int = 3) -> str:
    """Without an exponent and with that many significant digits: 12.3, 0.00123, 1230."""
    if not math.isfinite(value):
        return "–"
    if value == 0:
        return "0"
    decimals = max(digits - 1 - math.floor(math.log10(abs(value))), 0)
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def span(value: float) -> str:
    """A span of time in seconds, for people: 1.23 ms, 59.9 s, 1 h 5 min."""
    if not math.isfinite(value) or abs(value) < 59.95:
        return seconds(value)
    # Half a second more is a second, where `round` would take the even one.
    parts, rest = [], math.floor(abs(value) + 0.5)
    for size, unit in _LONG:
        parts.append((rest // size, unit))
        rest %= size
    first = next(place for place, (many, _) in enumerate(parts) if many)
    return "-" * (value < 0) + " ".join(f"{many:,} {unit}" for many, unit in parts[first : first + 2] if many)


def seconds(value: float, digits: int = 3) -> str:
    """The same along an axis, where everything is in seconds or less: 1.23 ms, 3,600 s."""
    if not math.isfinite(value):
        return "–"
    for size, unit in _TIMES:
        # Half a digit below, so that 999.9 µs with three digits reads 1 ms.
        if abs(value) >= size * (1 - 0.5 * 10.0**-digits):
            return f"{number(value / size, digits)} {unit}"
    return f"{number(value * 1e9, digits)} ns" if value else "0 s"


def count(value: float, digits: int = 3) -> str:
    """How many, or how many in a second: 80,794. Averages below a hundred have three digits: 12.3."""
    if not math.isfinite(value):
        return "–"
    if 0 < value < 0.001:
        # Too many zeros can't be counted at a glance.
        return "<0.001"
    return f"{value:,.0f}" if abs(value) >= 100 else number(value, digits)


def tick(value: float, digits: int = 6) -> str:
    """How many, along an axis, where millions have no room: 100,000, 1 M."""
    for size, unit in _LARGE:
        if size <= abs(value) < math.inf:
            return f"{number(value / size, digits)}{unit}"
    if 0 < abs(value) < 0.001:
        power = math.floor(math.log10(abs(value)))
        return f"{number(value / 10.0**power, digits)} × 10{str(power).translate(_RAISED)}"
    return count(value, digits)


def binary_bytes(value: float, digits: int = 3) -> str:
    """What is addressed: the size of a request, a block, a device: 1.5 GiB."""
    return _bytes(value, _BINARY, digits)


def transferred(value: float, digits: int = 3) -> str:
    """An amount of data that was moved, or is moved in a second: 29.2 MB."""
    return _bytes(value, _DECIMAL, digits)


def _bytes(value: float, sizes: list[tuple[float, str]], digits: int) -> str:
    nearly = 1 - 0.5 * 10.0**-digits
    size, unit = next((each for each in sizes if abs(value) >= each[0] * nearly), sizes[-1])
    return f"{number(value / size, digits)} {unit}"


def percent(share: float) -> str:
    """A share of 1, rounded down to a tenth: 99.9 %. All of them alone are 100 %, none 0 %."""
    if not math.isfinite(share):
        return "–"
    if share in (0, 1):
        return f"{share * 100:.0f} %"
    # A product such as 0.57 × 1000 may lie a little below the whole number that it is.
    tenths = math.floor(share * 1000 + 1e-9)
    if share > 0 and tenths < 1:
        return "<0.1 %"
    return f"{min(tenths, 999) / 10 if share < 1 else tenths / 10:.1f} %"


def change(share: float) -> str:
    """By how much something grew or shrank: +12.3 %."""
    if not math.isfinite(share):
        return "–"
    # Adding zero takes the sign off a zero.
    return f"{round(share * 100, 1) + 0.0:+,.1f} %"


def requests(number: int) -> str:
    """So many requests: 3,082 requests."""
    return counted(number, "request")


def counted(number: int, noun: str) -> str:
    """So many of them, in a sentence: 1 run, 2 runs."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
