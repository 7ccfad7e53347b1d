"""The values of a sweep: lists `1,2,4`, and ranges `1k..40k/8` with a number of points."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence

from iosonar.errors import UsageError

_NUMBER = re.compile(r"(\d+(?:\.\d+)?)([kmgt]?)(?:i?b)?", re.IGNORECASE)
_RANGE = re.compile(r"(.+?)\.\.(.+?)(?:/(\d+))?")
_POWERS = "kmgt"

MAX_POINTS = 1000
RATE_POINTS = 10
SPAN_POINTS = 7

Spread = Callable[[float, float, int | None], Sequence[float]]
"""The values of a range, from its ends and the number of points."""


def depths(text: str) -> list[int]:
    """Queue depths; a range doubles them: 1..64 is 1,2,4,8,16,32,64."""
    return _values(text, "--depth", 1000, _doubled)


def rates(text: str) -> list[int]:
    """Requests per second; a range is divided evenly."""
    return _values(text, "--rate", 1000, _even)


def spans(text: str) -> list[int]:
    """Sizes in bytes, rounded to 4 KiB; a range is divided into equal factors."""
    found = [round(value / 4096) * 4096 for value in _values(text, "--span", 1024, _factors)]
    if found[0] == 0:
        raise UsageError(f"--span {text}: the smallest span is 4k")
    return list(dict.fromkeys(found))


def size_text(bytes_: int) -> str:
    """A size for the binary, in the largest unit that is exact: 1T, 1536M, 4k."""
    for power, unit in ((4, "T"), (3, "G"), (2, "M")):
        if bytes_ % 1024**power == 0:
            return f"{bytes_ // 1024**power}{unit}"
    return f"{bytes_ // 1024}k"


def _values(text: str, option: str, kilo: int, spread: Spread) -> list[int]:
    """All values, each once and in ascending order."""
    found: set[int] = set()
    for word in text.split(","):
        ends = _RANGE.fullmatch(word.strip())
        if ends is None:
            value = _number(word, option, kilo)
            # Sizes are rounded anyway.
            if option != "--span" and abs(value - round(value)) > 1e-6 * value:
                raise UsageError(f"{option} {word.strip()}: write a whole number")
            found.add(round(value))
            continue
        low, high = (_number(end, option, kilo) for end in ends.groups()[:2])
        count = int(ends[3]) if ends[3] else None
        if not low < high or (count is not None and not 2 <= count <= MAX_POINTS):
            raise UsageError(
                f"{option} {word.strip()}: write a range as LOW..HIGH or LOW..HIGH/POINTS, with 2 points or more"
            )
        found.update(round(value) for value in spread(low, high, count))
    if min(found) < 1:
        raise UsageError(f"{option} {text}: values begin at 1")
    if len(found) > MAX_POINTS:
        raise UsageError(f"{option} {text}: {len(found)} points; at most {MAX_POINTS}")
    return sorted(found)


def _number(text: str, option: str, kilo: int) -> float:
    found = _NUMBER.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"{option}: `{text.strip()}` is not a number; write a list 1,2,4 or a range 1k..40k/8")
    return float(found[1]) * float(kilo) ** (_POWERS.index(found[2].lower()) + 1 if found[2] else 0)


def _doubled(low: float, high: float, count: int | None) -> Sequence[float]:
    if count is not None:
        return _factors(low, high, count)
    doubled = [low * 2**power for power in range(math.floor(math.log2(high / low)) + 1)]
    return [*doubled, high]


def _even(low: float, high: float, count: int | None) -> Sequence[float]:
    steps = (count or RATE_POINTS) - 1
    return [low + (high - low) * step / steps for step in range(steps + 1)]


def _factors(low: float, high: float, count: int | None) -> Sequence[float]:
    steps = (count or SPAN_POINTS) - 1
    return [low * (high / low) ** (step / steps) for step in range(steps + 1)]
