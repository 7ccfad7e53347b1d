"""Long commands say on a terminal which step they are at."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from factory import write_run
from made_run import made_run

import iosonar
from iosonar import progress
from iosonar.cli import progress as on_terminal


class Terminal:
    """Standard error that keeps what is written."""

    def __init__(self, *, is_terminal: bool) -> None:
        self.text = ""
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal

    def write(self, text: str) -> None:
        self.text += text

    def flush(self) -> None:
        pass


def test_a_step_is_shown_in_place_and_erased_before_other_output(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal(is_terminal=True)
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(on_terminal, "AFTER_S", 0.0)
    with on_terminal.shown():
        progress.step("latency\x1b[31m", 11, 20)
        assert terminal.text == f"{on_terminal.ERASE}[{'=' * 10}{' ' * 10}] 11 of 20: latency\\x1b[31m"
        on_terminal.erase()
        assert terminal.text.endswith(on_terminal.ERASE)
    length = len(terminal.text)
    progress.step("after the block", 1, 1)
    assert len(terminal.text) == length


def test_without_a_terminal_nothing_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    other = Terminal(is_terminal=False)
    monkeypatch.setattr(sys, "stderr", other)
    monkeypatch.setattr(on_terminal, "AFTER_S", 0.0)
    with on_terminal.shown():
        progress.step("latency", 1, 2)
    assert other.text == ""


def test_reports_and_comparisons_tell_their_steps(tmp_path: Path) -> None:
    a, b = (write_run(tmp_path / f"{name}.replay.parquet", made_run(2000)) for name in "ab")
    seen: list[tuple[str, int, int]] = []
    with progress.shown_by(lambda *step: seen.append(step)):
        with iosonar.open(a) as run:
            run.report(tmp_path)
        assert [number for _, number, _ in seen] == list(range(1, seen[0][2] + 1))
        assert seen[0][2] > 5
        seen.clear()
        with iosonar.compare(a, b) as compared:
            compared.report(tmp_path)
    assert seen == [("times of A", 1, 4), ("times of B", 2, 4), ("B against A", 3, 4), ("the page", 4, 4)]
