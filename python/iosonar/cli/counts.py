"""Whole numbers on the command line, with the errors of the Rust half."""

from __future__ import annotations

from collections.abc import Callable

import typer


def whole_number(least: int, most: int | None = None) -> Callable[[str | int], int]:
    """A parser of whole numbers in a range."""
    expected = f"of {least} or more" if most is None else f"from {least} to {most}"

    def parse(text: str | int) -> int:
        if isinstance(text, int):
            # A default.
            return text
        word = text.strip()
        # Digits of other scripts are no numbers in the Rust half either.
        number = int(word) if word.isascii() and word.isdigit() and len(word) < 20 else None
        if number is None or number < least or (most is not None and number > most):
            raise typer.BadParameter(f"`{text}` is not a whole number {expected}")
        return number

    return parse
