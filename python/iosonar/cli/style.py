"""Escape sequences of a terminal, the same in both halves."""

from __future__ import annotations

import os
from typing import TextIO


class Style:
    """Escape sequences of a terminal, those of clap."""

    def __init__(self, *, is_coloured: bool) -> None:
        self._is_coloured = is_coloured

    @classmethod
    def of(cls, stream: TextIO | None) -> Style:
        """Plain text if the stream is no terminal, or the environment says so."""
        is_terminal = stream is not None and stream.isatty()
        is_off = os.environ.get("NO_COLOR") or os.environ.get("CLICOLOR") == "0" or os.environ.get("TERM") == "dumb"
        return cls(is_coloured=is_terminal and not is_off)

    def _with(self, text: str, codes: str) -> str:
        return f"\x1b[{codes}m{text}\x1b[0m" if self._is_coloured and text else text

    def heading(self, text: str) -> str:
        """A heading."""
        return self._with(text, "1;4")

    def literal(self, text: str) -> str:
        """What is typed as it stands."""
        return self._with(text, "1")

    def error(self, text: str) -> str:
        """The word in front of an error."""
        return self._with(text, "1;31")

    def message(self, text: str) -> str:
        """A line with its word in front coloured, if it is a warning."""
        word, colon, rest = text.partition(":")
        return self._with(word + colon, "1;33") + rest if word == "warning" and colon else text

    def severity(self, text: str) -> str:
        """A finding in one line: its number, how severe it is, and what it is."""
        number, space, rest = text.partition(" ")
        word = rest.split(" ", 1)[0]
        code = {"bad": "1;31", "warning": "1;33"}.get(word)
        return f"{number}{space}{self._with(word, code)}{rest[len(word) :]}" if code and number.isdigit() else text
