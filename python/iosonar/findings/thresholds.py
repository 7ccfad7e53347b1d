"""Thresholds of findings: from which size on something counts. Each has a name, a default, and can be set."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from iosonar import units

_NUMBER = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)\s*(%|[a-zµμ]*)", re.IGNORECASE)

Limits = Mapping[str, float]
"""The thresholds of a finding by their names, after `--threshold`."""


class Measured(Enum):
    """What a threshold is a number of."""

    TIME = "time"
    """In seconds."""
    BYTES = "bytes"
    SHARE = "share"
    """Of 1."""
    NUMBER = "number"
    """Of anything, or a factor."""


@dataclass(frozen=True)
class Threshold:
    """One threshold of a finding."""

    name: str
    default: float
    unit: Measured
    about: str

    def text(self, value: float) -> str:
        """A value of it, for people."""
        match self.unit:
            case Measured.TIME:
                return units.span(value)
            case Measured.BYTES:
                return units.binary_bytes(value)
            case Measured.SHARE:
                return units.percent(value)
            case _:
                return units.number(value)

    def parse(self, text: str) -> float | None:
        """A value of it as it is typed: 2s, 64MiB, 5%, 3; None if it is none."""
        found = _NUMBER.fullmatch(text.strip())
        if found is None:
            return None
        known: Mapping[str, float] = {
            Measured.TIME: units.TIME_UNITS,
            Measured.BYTES: {"": 1.0, **units.BYTE_UNITS},
            Measured.SHARE: {"": 1.0, "%": 0.01},
            Measured.NUMBER: {"": 1.0},
        }[self.unit]
        factor = known.get(found[2].lower())
        value = math.nan if factor is None else float(found[1]) * factor
        return value if math.isfinite(value) and value > 0 else None


class WrongThresholdError(ValueError):
    """What is wrong with a threshold that was typed."""


def parse_overrides(typed: Iterable[str], known: Mapping[str, Sequence[Threshold]]) -> dict[str, dict[str, float]]:
    """Thresholds as typed, such as `S07.period=2s`, by the number of their finding. `known` has those of all findings.

    Raises WrongThresholdError if there is no such threshold, or the value is none.
    """
    found: dict[str, dict[str, float]] = {}
    for text in typed:
        path, equals, value = text.partition("=")
        number, dot, name = path.strip().partition(".")
        number = number.upper()
        if not (equals and dot):
            raise WrongThresholdError(f"{text}: write it like S07.length=20ms")
        if number not in known:
            raise WrongThresholdError(f"{text}: no finding has the number {number}")
        threshold = next((each for each in known[number] if each.name == name), None)
        if threshold is None:
            names = ", ".join(f"{number}.{each.name}" for each in known[number])
            raise WrongThresholdError(f"{text}: {f'{number} has {names}' if names else f'{number} has no thresholds'}")
        parsed = threshold.parse(value)
        if parsed is None:
            raise WrongThresholdError(
                f"{text}: {name} is a {threshold.unit.value} above zero, such as {threshold.text(threshold.default)}"
            )
        found.setdefault(number, {})[name] = parsed
    return found


def limits_of(thresholds: Sequence[Threshold], overrides: Limits) -> dict[str, float]:
    """The value of each threshold."""
    return {each.name: overrides.get(each.name, each.default) for each in thresholds}
