"""Percentiles on the command line: 50,95,99.9."""

from __future__ import annotations

from typing import Annotated

import typer

from iosonar.quantities.percentiles import share_of

MAX_PERCENTILES = 5
"""More lines of a diagram could not be distinguished."""


def percentiles(text: str | tuple[float, ...]) -> tuple[float, ...]:
    """Parses percentiles, in ascending order and percent: 50,95,99.9 or p50,p95."""
    if isinstance(text, tuple):
        # A default.
        return text
    words = [word.strip().lower().removeprefix("p") for word in text.split(",") if word.strip()]
    if wrong := next((word for word in words if share_of(f"p{word}") is None), None):
        raise typer.BadParameter(f"`{wrong}` is not a percentile above 0 and below 100: 50,95,99.9")
    found = sorted({float(word) for word in words})
    if not 0 < len(found) <= MAX_PERCENTILES:
        raise typer.BadParameter(f"name 1 to {MAX_PERCENTILES} percentiles: 50,95,99.9")
    return tuple(found)


Percentiles = Annotated[
    tuple[float, ...] | None,
    typer.Option(
        "--percentiles", metavar="P,…", parser=percentiles, help="The percentiles to show, such as 50,95,99.9."
    ),
]
