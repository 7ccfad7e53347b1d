from __future__ import annotations

from iosonar.figures.foot import foot
from iosonar.figures.model import Mood, Note, NoteKind


def warnings(*texts: str) -> tuple[Note, ...]:
    return tuple(Note(NoteKind.WARNING, text, Mood.WARNING) for text in texts)


def texts(notes: tuple[Note, ...], room: int = 60, last: int = 40) -> list[str]:
    return [line.text for line in foot(notes, room, last)]


def test_the_most_important_of_many_come_first() -> None:
    notes = warnings("a speed-up of 100 distorts a load", "sectors wrapped around", "7 of 9 reads came back all zero")
    assert texts(notes) == ["7 of 9 reads came back all zero", "sectors wrapped around (and 1 more)"]
    fake = Note(NoteKind.WARNING, "Fake: nothing was written", Mood.BAD)
    assert texts((*notes, fake))[0] == fake.text


def test_a_single_one_takes_two_lines_if_it_must() -> None:
    assert texts(warnings("short")) == ["short"]
    long = "all of this has to be read before anybody may believe in what the picture shows"
    assert " ".join(texts(warnings(long))) == long
    assert all(len(line) <= 60 for line in texts(warnings(long * 3)))
    assert texts(warnings(long * 3))[-1].endswith(" …")


def test_nothing_to_say() -> None:
    assert texts((Note(NoteKind.WRAP, "wrap-around factor 1"),)) == []
