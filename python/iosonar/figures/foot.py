"""What the foot of a picture says: its warnings in two lines, the most important first."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

from iosonar.figures.model import Mood, Note, NoteKind

LINES = 2

FIRST = ("came back all zero", "target failed", "only in part", "lost", "left out", "wrap", "all zero")
"""What makes a result worthless comes before what only colours it; of the rest, the order is that of the run."""


@dataclass(frozen=True)
class FootLine:
    """A line of it."""

    text: str
    mood: Mood


def foot(notes: tuple[Note, ...], room: int, room_last: int) -> list[FootLine]:
    """The lines, from the upper one: `room` letters fit into one, `room_last` into the last, as more stands there."""
    said = sorted((note for note in notes if note.kind in (NoteKind.WARNING, NoteKind.INFO)), key=_importance)
    if not said:
        return []
    if len(said) == 1:
        return [FootLine(text, said[0].mood) for text in _wrapped(said[0].text, room, room_last)]
    more = f" (and {len(said) - LINES} more)" if len(said) > LINES else ""
    return [
        FootLine(_shortened(said[0].text, room), said[0].mood),
        FootLine(_shortened(said[1].text, room_last - len(more)) + more, said[1].mood),
    ]


def _importance(note: Note) -> tuple[bool, int]:
    places = (place for place, words in enumerate(FIRST) if words in note.text)
    return note.mood is not Mood.BAD, next(places, len(FIRST))


def _wrapped(text: str, room: int, room_last: int) -> list[str]:
    """One line if it fits beside what else stands there, else two."""
    if len(text) <= room_last:
        return [text]
    first, *rest = textwrap.wrap(text, room)
    return [first, _shortened(" ".join(rest), room_last)] if rest else [first]


def _shortened(text: str, room: int) -> str:
    return textwrap.shorten(text, room, placeholder=" …")
