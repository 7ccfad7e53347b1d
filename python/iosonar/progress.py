"""Which step of how many a command is at: libraries tell it, and the command shows it if it wants to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Show = Callable[[str, int, int], None]
"""Called with what begins now, its number from 1, and the number of all."""

_shown: list[Show] = []


def step(what: str, number: int, of: int) -> None:
    """A step begins."""
    if _shown:
        _shown[-1](what, number, of)


@contextmanager
def shown_by(show: Show) -> Iterator[None]:
    """Steps are shown until the end of the block."""
    _shown.append(show)
    try:
        yield
    finally:
        _shown.pop()
