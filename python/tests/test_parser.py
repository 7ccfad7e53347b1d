"""The look of the command line: the same in both halves, from one definition."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from iosonar.cli import PROGRAMS
from iosonar.cli.parser import MAX_WIDTH, SCREEN, definitions

COPY = Path(__file__).resolve().parents[2] / "crates/iosonar/src/python_half.json"

COMMANDS = [[name] for name in PROGRAMS] + [["campaign", name] for name in ("new", "status", "report", "undo")]


def run(*words: str, columns: int = 200) -> subprocess.CompletedProcess[str]:
    """Runs `iosonar WORDS` on a terminal of that width."""
    environment = {**os.environ, "COLUMNS": str(columns)}
    binary = Path(sys.executable).with_name("iosonar")
    return subprocess.run([binary, *words], capture_output=True, text=True, check=False, env=environment)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_h_is_help_in_the_look_of_the_other_half(words: list[str]) -> None:
    short, long = run(*words, "-h"), run(*words, "--help")
    assert short.returncode == long.returncode == 0, short.stderr
    assert len(short.stdout.splitlines()) <= SCREEN
    if len(long.stdout.splitlines()) <= SCREEN:
        assert short.stdout == long.stdout
    else:
        assert short.stdout.endswith(f"\nAll options and examples: iosonar {' '.join(words)} --help\n")
    for part in (f"\nUsage: iosonar {' '.join(words)} [OPTIONS]", "\nOptions:\n", "  -h, --help ", "Print help\n"):
        assert part in short.stdout
    assert max(map(len, short.stdout.splitlines())) <= MAX_WIDTH


def test_help_fits_a_narrow_terminal() -> None:
    options = run("report", "-h", columns=60).stdout.partition("Options:")[2].partition("\n\n")[0]
    assert max(map(len, options.splitlines())) <= 60


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["sql", "--nonsense"], "no such option: --nonsense"),
        (["sql", "a", "--format", "x"], "invalid value for '--format': 'x' is not one of"),
        (["campaign", "nonsense"], "no such command 'nonsense'"),
        (["report", "--bad-count", "x"], "invalid value for '--bad-count': `x` is not a whole number of 1 or more"),
        (["campaign", "new", "--repeats", "0"], "invalid value for '--repeats': `0` is not a whole number of 1"),
        (
            ["sensitivity", "--repeat", "1001"],
            "invalid value for '--repeat': `1001` is not a whole number from 1 to 1000",
        ),
        (["campaign", "new"], "missing argument"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, list) else "",
)
def test_usage_errors_have_the_look_of_the_other_half(words: list[str], said: str) -> None:
    theirs, ours = run("info", "--nonsense"), run(*words)
    assert theirs.returncode == ours.returncode == 2
    assert ours.stderr.startswith(f"error: {said}")
    end = "\n\nFor more information, try '--help'.\n"
    assert theirs.stderr.endswith(end)
    assert ours.stderr.endswith(end)
    assert "\n\nUsage: iosonar " in ours.stderr


def test_completions_and_man_pages_have_all_options() -> None:
    described = json.dumps(definitions(), indent=1, ensure_ascii=False) + "\n"
    if os.environ.get("UPDATE_DOCS"):
        COPY.write_text(described, encoding="utf-8")
    assert COPY.read_text(encoding="utf-8") == described, "run this test with UPDATE_DOCS=1"
