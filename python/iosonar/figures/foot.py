"""The foot of a picture: its warnings in a few lines, the most important first."""

from __future__ import annotations

from dataclasses import dataclass

from iosonar.figures.model import Note, NoteKind, Severity
from iosonar.figures.wrapping import Width, wrapped

LINES = 3

FIRST = (
    "only zeros",
    "came back all zero",
    "engine failed",
    "target failed",
    "only in part",
    "lost",
    "skipped",
    "left out",
    "wrap",
    "all zero",
)
"""Words of notes that come first, as they invalidate a result. The others keep their order. Some are of earlier
versions."""


@dataclass(frozen=True)
class FootLine:
    """A line of the foot."""

    text: str
    severity: Severity


def foot(notes: tuple[Note, ...], width: Width, room: float, room_last: float) -> list[FootLine]:
    """The lines from top to bottom, of width `room`; the last has `room_last`, as other text is beside it.

    A note is complete, or cut at the end of a phrase. Omitted notes are counted.
    """
    shown_notes = sorted((note for note in notes if note.kind in (NoteKind.WARNING, NoteKind.INFO)), key=_importance)
    lines: list[FootLine] = []
    for number, note in enumerate(shown_notes):
        later = len(shown_notes) - number - 1
        # Each other note gets a line, as long as there are enough.
        free = LINES - len(lines)
        rooms = _rooms(max(free - later, 1), free, room, room_last)
        more = f" (and {later} more)" if free == 1 and later else ""
        rooms[-1] -= width(more)
        found = wrapped(note.text, width, rooms)
        lines += [FootLine(text, note.severity) for text in found]
        if more:
            lines[-1] = FootLine(lines[-1].text + more, note.severity)
        if len(lines) == LINES:
            break
    return _narrow_enough(lines, width, room_last)


def _rooms(count: int, free: int, room: float, room_last: float) -> list[float]:
    return [room_last if line == free - 1 else room for line in range(count)]


def _narrow_enough(lines: list[FootLine], width: Width, room_last: float) -> list[FootLine]:
    """Shortens the last line if it was not measured as such, as fewer lines than the maximum are used."""
    if not lines or width(lines[-1].text) <= room_last:
        return lines
    *before, last = lines
    if len(lines) < LINES:
        first, *rest = wrapped(last.text, width, [room_last, room_last])
        return [*before, FootLine(first, last.severity), *(FootLine(text, last.severity) for text in rest)]
    return [*before, FootLine(wrapped(last.text, width, [room_last])[0], last.severity)]


def _importance(note: Note) -> tuple[bool, int]:
    places = (place for place, words in enumerate(FIRST) if words in note.text)
    return note.severity is not Severity.BAD, next(places, len(FIRST))
