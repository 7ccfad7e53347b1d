"""Formats numbers for people: the only module of the Python half that rounds.

Times have three significant digits and a unit. Counts are shown in full, with commas. Amounts of transferred data are
decimal (MB, MB/s), sizes (of requests, blocks, devices, memory) binary (KiB, GiB). Shares are rounded down, so that
none appears to reach a threshold that it misses. report/assets/units.js does the same in pages.
"""

from __future__ import annotations

import math

_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_LARGE = ((1e12, " T"), (1e9, " G"), (1e6, " M"))
_BINARY = [(1024.0**power, unit) for power, unit in enumerate(("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"))][::-1]
_DECIMAL = [(1000.0**power, unit) for power, unit in enumerate(("B", "kB", "MB", "GB", "TB", "PB", "EB"))][::-1]
_LONG = ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s"))

TIME_UNITS = {
    "": 1.0,
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,
    "μs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "min": 60.0,
    "h": 3600.0,
    "d": 86_400.0,
}
"""The units of times on the command line and in conditions, in seconds; none: seconds."""

BYTE_UNITS = {
    **{f"{prefix}b": 1000.0**power for power, prefix in enumerate(("", "k", "m", "g", "t"))},
    **{f"{prefix}ib": 1024.0**power for power, prefix in enumerate(("k", "m", "g", "t"), 1)},
}
"""The units of amounts in conditions, in lower case, in bytes."""

FAITHFUL = 0.95
"""The share of requests that a faithful replay issues on time: no rounding crosses it."""

HALF_UP = 1 + 1e-14
"""A half rounds up, although a division may leave it slightly below."""

UNITS = r"(?:%|(?:ns|µs|ms|s|min|h|d|[kMGTPE]?B|[KMGTPE]iB|requests/s|calls/s)\b)"
"""A regular expression of the units that stay on the line of their number."""

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number(value: float, digits: int = 3) -> str:
    """A number without an exponent and with that many significant digits: 12.3, 0.00123, 1230."""
    if not math.isfinite(value):
        return "–"
    if value == 0:
        return "0"
    decimals = max(digits - 1 - math.floor(math.log10(abs(value))), 0)
    text = f"{value * HALF_UP if abs(value) < 1e6 else value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def span(value: float) -> str:
    """A duration in seconds: 1.23 ms, 59.9 s, 1 h 5 min."""
    if not math.isfinite(value) or abs(value) < 59.95:
        return seconds(value)
    # Round half up; `round` would round half to even.
    parts, rest = [], math.floor(abs(value) + 0.5)
    for size, unit in _LONG:
        parts.append((rest // size, unit))
        rest %= size
    first = next(place for place, (many, _) in enumerate(parts) if many)
    return "-" * (value < 0) + " ".join(f"{many:,} {unit}" for many, unit in parts[first : first + 2] if many)


def seconds(value: float, digits: int = 3) -> str:
    """A time on an axis, in seconds or smaller units: 1.23 ms, 3,600 s."""
    if not math.isfinite(value):
        return "–"
    for size, unit in _TIMES:
        # Half a digit below the unit: 999.9 µs with three digits is 1 ms.
        if abs(value) >= size * (1 - 0.5 * 10.0**-digits):
            return f"{number(value / size, digits)} {unit}"
    return f"{number(value * 1e9, digits)} ns" if value else "0 s"


def clock(value: float) -> str:
    """A time on a long axis, as h:min:s: 0:02:38.48."""
    hundredths = round(abs(value) * 100)
    minutes, rest = divmod(hundredths, 6000)
    hours, minutes = divmod(minutes, 60)
    second = f"{rest // 100:02}.{rest % 100:02}".rstrip("0").rstrip(".") if rest % 100 else f"{rest // 100:02}"
    return f"{'-' * (value < 0)}{hours}:{minutes:02}:{second}"


def count(value: float, digits: int = 3) -> str:
    """A count, or a rate per second: 80,794. Averages below a hundred have three digits: 12.3."""
    if not math.isfinite(value):
        return "–"
    if 0 < value < 0.001:
        # A row of zeros is hard to read.
        return "<0.001"
    return f"{value:,.0f}" if abs(value) >= 100 else number(value, digits)


def tick(value: float, digits: int = 6) -> str:
    """A count on an axis, with abbreviated millions: 100,000, 1 M."""
    for size, unit in _LARGE:
        if size <= abs(value) < math.inf:
            return f"{number(value / size, digits)}{unit}"
    if 0 < abs(value) < 0.001:
        power = math.floor(math.log10(abs(value)))
        return f"{number(value / 10.0**power, digits)} × 10{str(power).translate(_RAISED)}"
    return count(value, digits)


def binary_bytes(value: float, digits: int = 3) -> str:
    """The size of a request, a block, a device, or of memory: 1.5 GiB."""
    return _bytes(value, _BINARY, digits)


def transferred(value: float, digits: int = 3) -> str:
    """An amount of transferred data, or a throughput per second: 29.2 MB."""
    return _bytes(value, _DECIMAL, digits)


def _bytes(value: float, sizes: list[tuple[float, str]], digits: int) -> str:
    nearly = 1 - 0.5 * 10.0**-digits
    size, unit = next((each for each in sizes if abs(value) >= each[0] * nearly), sizes[-1])
    return f"{number(value / size, digits)} {unit}"


def percent(share: float, threshold: float = FAITHFUL) -> str:
    """A share of 1 in percent, rounded to a tenth: 99.9 %. Only 1 is 100 %, only 0 is 0 %.

    No rounding crosses the threshold: 0.9499 is 94.9 %, since 95 % are needed.
    """
    if not math.isfinite(share):
        return "–"
    if share in (0, 1):
        return f"{share * 100:.0f} %"
    # A product such as 0.57 × 1000 may be slightly below its whole number.
    tenths = math.floor(share * 1000 + 0.5 + 1e-9)
    for limit in (threshold, 1.0):
        if share < limit and tenths >= limit * 1000 - 1e-6:
            tenths = math.ceil(limit * 1000 - 1e-6) - 1
        elif share >= limit and tenths < limit * 1000 - 1e-6:
            tenths += 1
    if share > 0 and tenths < 1:
        return "<0.1 %"
    return f"{tenths / 10:.1f} %"


def change(share: float) -> str:
    """A relative change in percent: +12.3 %. Beyond a factor of ten thousand, digits say nothing."""
    if not math.isfinite(share):
        return "–"
    if share >= 1e4:
        return ">+1,000,000 %"
    # Adding zero removes the sign of a negative zero.
    return f"{round(share * 100, 1) + 0.0:+,.1f} %"


def change_or_factor(share: float) -> str:
    """A relative change, and from a hundredfold on the factor: +12.3 %, × 331."""
    return f"× {number(1 + share)}" if 99 <= share < 1e4 else change(share)


def requests(number: int) -> str:
    """A number of requests: 3,082 requests."""
    return counted(number, "request")


def counted(number: int, noun: str, plural: str = "") -> str:
    """A number with its noun: 1 run, 2 runs; 2 leaves if `plural` is leaves."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"
