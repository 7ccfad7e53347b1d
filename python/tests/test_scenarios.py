"""The harness of tests/scenarios: its files are valid, its halves are halves, and two scenarios run from end to end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from binary import TOP

MATRIX = TOP / "tests/scenarios/matrix.py"


def matrix(*words: object) -> str:
    command = [sys.executable, str(MATRIX), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def rows(text: str) -> dict[str, list[str]]:
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]
    return {cell[0]: cell for cell in cells[2:]}


def test_each_kind_has_three_scenarios_and_twenty_are_clean() -> None:
    kinds = [line.split()[0] for line in matrix("--list").splitlines()]
    planted = [f"S{number:02}" for number in range(1, 24)] + [f"F{number:02}" for number in range(1, 12)]
    assert {kind for kind in planted if kinds.count(kind) < 3} == set()
    assert kinds.count("clean") >= 20


def test_the_seed_draws_halves_that_share_nothing() -> None:
    def names(*words: object) -> set[str]:
        return set(matrix("--list", *words).splitlines())

    tune, judge = names("--half", "tune", "--seed", 3), names("--half", "judge", "--seed", 3)
    assert tune | judge == names() and not tune & judge
    assert abs(len(tune) - len(judge)) < 20
    assert tune != names("--half", "tune", "--seed", 4)


def test_a_planted_and_a_clean_scenario_end_to_end(tmp_path: Path) -> None:
    out = tmp_path / "runs"
    found = rows(matrix("--only", "stall-each-2-s", "--only", "natural-rocksdb", "--out", out))
    kind, _, planted, was_found, missed, on_others, on_clean = found["S07"]
    assert (kind, planted, was_found, missed, on_others, on_clean) == ("S07", "1", "1", "0", "0", "0")
    assert found["all"][2:] == ["1", "1", "0", "0", "0"]
    runs = {path: path.stat().st_mtime_ns for path in out.glob("*/run.replay.parquet")}
    assert len(runs) == 2
    matrix("--only", "natural-rocksdb", "--out", out)
    assert {path: path.stat().st_mtime_ns for path in runs} == runs, "runs are kept"


@pytest.mark.parametrize("words", [("--only", "S99"), ("--only", "no-such-name")])
def test_an_unknown_kind_or_name_is_refused(words: tuple[str, str]) -> None:
    command = [sys.executable, str(MATRIX), "--list", *words]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1 and "--list" in done.stderr
