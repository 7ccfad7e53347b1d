"""The libraries that programs load: each costs a fraction of a second in every call."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from factory import MS, S, run_row, write_run

LARGE = {"ibis", "sqlglot", "pandas", "scipy", "matplotlib", "pyarrow", "duckdb"}

PROGRAM = """
import importlib, json, sys
name, *words = sys.argv[1:]
app = importlib.import_module(f"iosonar.cli.{name}").app
try:
    app(words)
except SystemExit as ended:
    assert not ended.code
print(json.dumps(sorted(sys.modules)))
"""


def loaded(*words: object) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *map(str, words)], check=True, stdout=subprocess.PIPE, text=True
    )
    return LARGE & set(json.loads(done.stdout.splitlines()[-1]))


def test_a_query_needs_no_ibis(tmp_path: Path) -> None:
    run = write_run(tmp_path / "a.replay.parquet", [run_row(0, latency=2 * MS)])
    assert loaded("sql", run, "SELECT 1") == {"duckdb", "pyarrow"}


def test_help_needs_no_library() -> None:
    for program in ("report", "compare", "ab", "sql", "sweep", "sensitivity", "campaign"):
        assert loaded(program, "--help") == set()


def test_only_drawing_processes_need_matplotlib(tmp_path: Path) -> None:
    run = write_run(tmp_path / "a.replay.parquet", [run_row(n, scheduled=n * S, latency=2 * MS) for n in range(9)])
    found = loaded("report", run, "--format", "png", "--out", tmp_path)
    assert {"duckdb", "ibis"} <= found and found.isdisjoint({"matplotlib", "scipy"})
    assert loaded("report", run, "--out", tmp_path).isdisjoint({"matplotlib", "scipy"})
