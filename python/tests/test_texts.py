"""Texts from outside, as terminals show them."""

from __future__ import annotations

from iosonar.text import aligned, width


def test_columns_are_as_wide_as_a_terminal_shows_them() -> None:
    assert [width(text) for text in ("ab", "日本", "e\u0301", "ü")] == [2, 4, 1, 1]
    assert list(aligned([("日本", "1"), ("abcd", "2"), ("e\u0301", "3")])) == ["日本  1", "abcd  2", "e\u0301     3"]
