"""The grammar of conditions, those of report, compare and campaigns: METRIC OPERATOR LIMIT."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from iosonar import units

_CONDITION = re.compile(
    r"\s*(?P<metric>[a-z][a-z0-9_.]*)\s*(?P<operator><=|>=|!=|==|=|<|>)\s*"
    r"(?:(?P<number>[+-]?(?:\d+\.?\d*|\.\d+))\s*(?P<unit>%|[a-zµμ]*(?:/s)?)|(?P<word>[a-z][a-z_-]*))\s*",
    re.IGNORECASE,
)
_OPERATORS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "!=": operator.ne,
}


COUNTED = ("", "requests", "calls")
"""What a rate may count: 100/s, 100 requests/s."""


class LimitUnit(Enum):
    """The unit of a limit."""

    PERCENT = "%"
    SECONDS = "s"
    PER_SECOND = "/s"
    BYTES_PER_SECOND = "B/s"
    NONE = ""
    WORD = "word"


@dataclass(frozen=True)
class Parsed:
    """A condition: a number compared with a limit, or a text with a word.

    `limit` is in seconds for times, in bytes for amounts per second, and a share for percentages (0.1 is 10 %).
    """

    text: str
    metric: str
    operator: str
    unit: LimitUnit
    limit: float = math.nan
    word: str = ""
    is_signed: bool = False
    """Whether a percentage has a sign, as changes have."""

    def holds(self, value: float) -> bool:
        """Whether the condition holds for a number."""
        return _OPERATORS[self.operator](value, self.limit)

    def holds_word(self, value: str) -> bool:
        """Whether the condition holds for a text."""
        return (value == self.word) == (self.operator == "=")


def parse(text: str) -> Parsed | None:
    """Parses a condition; None if it has another form."""
    found = _CONDITION.fullmatch(text)
    if found is None:
        return None
    metric, sign = found["metric"].lower(), found["operator"].replace("==", "=")
    if found["word"]:
        if sign not in ("=", "!=", ">="):
            return None
        return Parsed(text.strip(), metric, sign, LimitUnit.WORD, word=found["word"].lower())
    number, unit = float(found["number"]), found["unit"]
    is_signed = found["number"][0] in "+-"
    if unit == "%":
        return Parsed(text.strip(), metric, sign, LimitUnit.PERCENT, number / 100, is_signed=is_signed)
    if is_signed:
        return None
    if not unit:
        return Parsed(text.strip(), metric, sign, LimitUnit.NONE, number)
    if unit.lower().endswith("/s"):
        noun = unit[:-2].lower()
        if noun in COUNTED:
            return Parsed(text.strip(), metric, sign, LimitUnit.PER_SECOND, number)
        size = units.BYTE_UNITS.get(noun)
        return None if size is None else Parsed(text.strip(), metric, sign, LimitUnit.BYTES_PER_SECOND, number * size)
    factor = units.TIME_UNITS.get(unit.lower())
    # Rounded, so that 1.1 ms equals a time of 1,100,000 ns.
    limit = None if factor is None else round(number * factor, 12)
    return None if limit is None else Parsed(text.strip(), metric, sign, LimitUnit.SECONDS, limit)
