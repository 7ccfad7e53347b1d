"""A line on the terminal, drawn in place, that says which step a long command is at."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from iosonar import progress
from iosonar.text import lines

AFTER_S = 0.5
"""Commands that take less show nothing."""

ERASE = "\r\x1b[2K"
CELLS = 20


class Line:
    """The line. Other output erases it first."""

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._is_drawn = False

    def show(self, what: str, number: int, of: int) -> None:
        """Draws a step."""
        if time.monotonic() - self._begun < AFTER_S:
            return
        done = CELLS * (number - 1) // max(of, 1)
        text = f"[{'=' * done}{' ' * (CELLS - done)}] {number} of {of}: {lines(what)}".split("\n")[0]
        width = max(shutil.get_terminal_size().columns - 1, CELLS)
        self._put(f"{ERASE}{text[:width]}")
        self._is_drawn = True

    def erase(self) -> None:
        """Removes it, before other output."""
        if self._is_drawn:
            self._put(ERASE)
            self._is_drawn = False

    def _put(self, text: str) -> None:
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
        except (OSError, ValueError):
            # The terminal is gone: that does not end the command.
            self._is_drawn = False


_line: Line | None = None


@contextmanager
def shown() -> Iterator[None]:
    """Shows the steps of the block, if standard error is a terminal."""
    global _line
    if sys.stderr is None or not sys.stderr.isatty():
        yield
        return
    _line = Line()
    try:
        with progress.shown_by(_line.show):
            yield
    finally:
        _line.erase()
        _line = None


def erase() -> None:
    """Removes the line, before other output."""
    if _line:
        _line.erase()
