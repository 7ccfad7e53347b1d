from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iosonar.figures.foot import LINES, foot
from iosonar.figures.model import Note, NoteKind, Severity
from iosonar.figures.wrapping import CUT, wrapped


def warnings(*texts: str) -> tuple[Note, ...]:
    return tuple(Note(NoteKind.WARNING, text, Severity.WARNING) for text in texts)


def texts(notes: tuple[Note, ...], room: int = 60, last: int = 40) -> list[str]:
    return [line.text for line in foot(notes, len, room, last)]


def test_the_most_important_of_many_come_first() -> None:
    notes = warnings(
        "a speed-up of 100 distorts a load",
        "the file was read from a cache",
        "sectors wrapped around",
        "7 of 9 reads came back all zero",
    )
    assert texts(notes)[:2] == ["7 of 9 reads came back all zero", "sectors wrapped around"]
    assert texts(notes)[2].endswith("(and 1 more)")
    fake = Note(NoteKind.WARNING, "Fake: nothing was written", Severity.BAD)
    assert texts((*notes, fake))[0] == fake.text


def test_a_single_note_may_take_several_lines() -> None:
    assert texts(warnings("short")) == ["short"]
    long = "all of this has to be read before anybody may believe in what the picture shows"
    assert " ".join(texts(warnings(long))) == long
    assert all(len(line) <= 60 for line in texts(warnings(long * 3)))
    assert texts(warnings(long * 3))[-1].endswith(CUT)


def test_a_note_without_room_is_cut_at_the_end_of_a_phrase() -> None:
    note = (
        "the disk was asked 32735 times for 17546 requests of the replay: they were split, a file system added its "
        "own, or others used it at the same time, which nobody can tell apart afterwards, however hard they try"
    )
    assert texts(warnings(note))[-1].endswith(f"used it at the same time{CUT}")
    assert wrapped("one phrase, and another that is longer", len, [20]) == [f"one phrase{CUT}"]


def test_without_notes_there_are_no_lines() -> None:
    assert texts((Note(NoteKind.WRAP, "wrap-around factor 1"),)) == []


words = st.text("abc,;: ", min_size=1, max_size=200).filter(str.strip)


@given(st.lists(words, max_size=6), st.integers(30, 80), st.integers(20, 30))
def test_lines_have_limited_length_and_number(notes: list[str], room: int, last: int) -> None:
    found = texts(warnings(*notes), room, last)
    assert len(found) <= LINES
    assert all(len(line) <= room for line in found)
    if found:
        assert len(found[-1]) <= last, "more stands beside the last line"


@pytest.mark.parametrize("room", [8, 20, 79, 80, 200])
def test_lines_are_broken_only_where_necessary(room: int) -> None:
    text = "all of this has to be read before anybody may believe in what the picture shows"
    lines = wrapped(text, len, [room] * 50)
    assert " ".join(lines) == text
    for line, after in pairwise(lines):
        assert len(f"{line} {after.split()[0]}") > room


def test_a_number_stays_on_the_line_of_its_unit() -> None:
    text = "Replay NOT faithful: 71.6 % within 10 µs, 92.7 % within 50 µs; delay p99 3.24 ms"
    for room in range(25, len(text)):
        lines = wrapped(text, len, [room] * 9)
        assert " ".join(lines) == text
        assert not any(line.startswith(("%", "µs", "ms")) for line in lines), (room, lines)
    assert wrapped(text, len, [len(text) - 2] * 2)[1] == "delay p99 3.24 ms"
