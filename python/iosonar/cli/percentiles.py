"""Percentiles on the command line: 50,95,99.9."""

from __future__ import annotations

from typing import Annotated

import typer

from iosonar.quantities.percentiles import share_of

HINT = "--percentiles"

MAX_PERCENTILES = 5
"""More lines of a diagram could not be distinguished."""


def parse_percentiles(text: str) -> tuple[float, ...]:
    """Parses percentiles, in ascending order and percent: 50,95,99.9 or p50,p95. None without a text."""
    words = [word.strip().lower().removeprefix("p") for word in text.split(",") if text.strip()]
    wrong = next((word for word in words if share_of(f"p{word}") is None), None)
    if wrong is not None:
        raise typer.BadParameter(f"`{wrong}` is not a percentile above 0 and below 100: 50,95,99.9", param_hint=HINT)
    found = sorted({float(word) for word in words})
    if len(found) > MAX_PERCENTILES:
        raise typer.BadParameter(f"at most {MAX_PERCENTILES} percentiles: 50,95,99.9", param_hint=HINT)
    return tuple(found)


Percentiles = Annotated[
    str, typer.Option(HINT, metavar="P,…", help="The percentiles to show, such as 50,95,99.9; at most five.")
]
