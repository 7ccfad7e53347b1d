"""Times on the command line, as in the Rust half: a number without unit is in seconds."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Annotated

import typer

from iosonar.units import TIME_UNITS

_TIME = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)\s*([a-zµμ]*)", re.IGNORECASE)


def seconds(text: str | float) -> float:
    """Parses a positive time, in seconds or with a unit: 5, 0.5, 20ms, 10m."""
    return _time(text, "a time above zero", lambda value: value > 0)


def moment(text: str | float) -> float:
    """Parses a time of a run or load, in seconds or with a unit: 0, 2m."""
    return _time(text, "a time", math.isfinite)


def _time(text: str | float, what: str, is_right: Callable[[float], bool]) -> float:
    if isinstance(text, float | int):
        # A default.
        return float(text)
    found = _TIME.fullmatch(text.strip())
    unit = TIME_UNITS.get(found[2].lower()) if found else None
    value = float(found[1]) * unit if found and unit else math.nan
    if not (math.isfinite(value) and is_right(value)):
        raise typer.BadParameter(
            f"`{text}` is not {what}; use seconds (300, 0.5) or a number with a unit (ns us ms s m h d): 20ms 10m 1.5h"
        )
    return value


From = Annotated[
    float | None,
    typer.Option(
        "--from", metavar="TIME", parser=moment, help="Only requests or calls due at this time or later: 90, 2m."
    ),
]
To = Annotated[
    float | None,
    typer.Option("--to", metavar="TIME", parser=moment, help="Only requests or calls due before this time: 600, 10m."),
]
SkipWarmUp = Annotated[
    bool,
    typer.Option("--skip-warm-up", help="Leave out the warm-up, if its end was detected (MSER)."),
]


def windows(text: str, hint: str) -> tuple[float, ...]:
    """Parses windows of time, separated by commas; `all` is everything so far, as infinity."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not words:
        raise typer.BadParameter("no window: use times, such as 1,60,10m, and `all`", param_hint=hint)
    try:
        return tuple(math.inf if word == "all" else seconds(word) for word in dict.fromkeys(words))
    except typer.BadParameter as error:
        raise typer.BadParameter(error.message, param_hint=hint) from error
