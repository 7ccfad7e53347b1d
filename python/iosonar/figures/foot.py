"""What the foot of a picture says: its warnings in a few lines, the most important first."""

from __future__ import annotations

from dataclasses import dataclass

from iosonar.figures.model import Note, NoteKind, Severity
from iosonar.figures.wrapping import Width, wrapped

LINES = 3

FIRST = ("came back all zero", "target failed", "only in part", "lost", "left out", "skipped", "wrap", "all zero")
"""What makes a result worthless comes before what only colours it; of the rest, the order is that of the run."""


@dataclass(frozen=True)
class FootLine:
    """A line of it."""

    text: str
    severity: Severity


def foot(notes: tuple[Note, ...], width: Width, room: float, room_last: float) -> list[FootLine]:
    """The lines, from the upper one, each as wide as `room`, the last as `room_last`, as more stands beside it.

    Every note that is begun is ended, or cut where a phrase ends; what isn't said is counted.
    """
    said = sorted((note for note in notes if note.kind in (NoteKind.WARNING, NoteKind.INFO)), key=_importance)
    lines: list[FootLine] = []
    for number, note in enumerate(said):
        later = len(said) - number - 1
        # Each of the others gets a line, as long as there are enough.
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


def _rooms(many: int, free: int, room: float, room_last: float) -> list[float]:
    return [room_last if line == free - 1 else room for line in range(many)]


def _narrow_enough(lines: list[FootLine], width: Width, room_last: float) -> list[FootLine]:
    """Where fewer lines than all are used, the last of them is not the one that was measured as such."""
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
