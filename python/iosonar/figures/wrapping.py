"""Breaks sentences into lines by their measured width, and cuts what has no room where a phrase ends."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

Width = Callable[[str], float]
"""How wide a text is, in the unit of the rooms that it is to fit into."""

CUT = " …"

_PHRASE_END = re.compile(r"[.;:,)!?](?=\s)|(?=\s[(–])")


def wrapped(text: str, width: Width, rooms: Sequence[float]) -> list[str]:
    """The text in as few lines as it takes, at most one for each room; what is too long ends with a phrase and ` …`."""
    lines, rest = _filled(text, width, rooms)
    if not rest:
        return lines
    taken = len(text) - len(rest)
    ends = [match.end() for match in _PHRASE_END.finditer(text) if match.end() <= taken]
    # If no phrase ends in what fits, a word does.
    ends = ends or [match.start() for match in re.finditer(r"\s", text) if match.start() <= taken] or [taken]
    for end in reversed(ends):
        lines, rest = _filled(text[:end].rstrip(" ,;:.") + CUT, width, rooms)
        if not rest:
            return lines
    return lines


def _filled(text: str, width: Width, rooms: Sequence[float]) -> tuple[list[str], str]:
    """Line after line as full as it can be, and what is left over. A word that no line holds is broken."""
    lines: list[str] = []
    rest = text.strip()
    for room in rooms:
        if not rest:
            break
        words = list(re.finditer(r"\S+", rest))
        ends = [word.end() for word in words]
        fitting = 0
        for end in ends:
            if width(rest[:end]) > room:
                break
            fitting = end
        if not fitting:
            fitting = next((n for n in range(ends[0], 1, -1) if width(rest[:n]) <= room), 1)
        lines.append(rest[:fitting])
        rest = rest[fitting:].lstrip()
    return lines, rest
