"""Breaks text into lines by measured width, and cuts text that does not fit at the end of a phrase."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from iosonar.units import UNITS

Width = Callable[[str], float]
"""Measures the width of a text."""

CUT = " …"

ORPHAN = 0.25
"""A last line shorter than this share of the one before it is an orphan."""

_WORD = re.compile(rf"\S+(?:(?<=\d) {UNITS}\S*)?")
"""A word; a number with its unit is one."""

_PHRASE_END = re.compile(r"[.;:,)!?](?=\s)|(?=\s[(–])")


def wrapped(text: str, width: Width, rooms: Sequence[float]) -> list[str]:
    """The text in as few lines as possible, at most one per room; if it does not fit, it is cut and ends with ` …`."""
    lines, rest = _filled(text, width, rooms)
    if not rest:
        return _without_orphan(lines, width, rooms)
    taken = len(text) - len(rest)
    ends = [match.end() for match in _PHRASE_END.finditer(text) if match.end() <= taken]
    # If no phrase ends within the lines, cut after a word.
    ends = ends or [match.start() for match in re.finditer(r"\s", text) if match.start() <= taken] or [taken]
    for end in reversed(ends):
        lines, rest = _filled(text[:end].rstrip(" ,;:.") + CUT, width, rooms)
        if not rest:
            return lines
    return lines


def _without_orphan(lines: list[str], width: Width, rooms: Sequence[float]) -> list[str]:
    """A short last line gets the last phrase of the line before it, so that no word is alone."""
    if len(lines) < 2 or len(lines[-1]) >= ORPHAN * len(lines[-2]):
        return lines
    *first, before, last = lines
    for end in reversed([match.end() for match in _PHRASE_END.finditer(before)]):
        joined = f"{before[end:].strip()} {last}"
        if 0 < end < len(before) and width(joined) <= rooms[len(lines) - 1]:
            return [*first, before[:end].rstrip(), joined]
    return lines


def _filled(text: str, width: Width, rooms: Sequence[float]) -> tuple[list[str], str]:
    """Fills lines one after the other; returns them and the rest. A word that no line holds is broken."""
    lines: list[str] = []
    rest = text.strip()
    for room in rooms:
        if not rest:
            break
        words = list(_WORD.finditer(rest))
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
