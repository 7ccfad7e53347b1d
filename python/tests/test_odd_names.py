"""File names do not affect numbers, pictures or the terminal."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from factory import MS, S, load_row, run_row, write_load, write_run

from iosonar.cli import compare, report, sql

ROWS = [run_row(n, scheduled=n * MS, op="write" if n % 3 else "read", latency=(n + 1) * MS) for n in range(30)]
BAD_ROWS = [run_row(n, outcome="error", errno=5) for n in range(9)]

ODD = [
    *(
        "st*r",
        "wh?t",
        "[a-z]",
        "{a,b}",
        "a$x^$b",
        "$x^$",
        "100%",
        "a&b",
        "#1",
        "run-10:30",
        "it's",
        'a"b',
        "back\\slash",
    ),
    *("a b", "line\nend", "~", "tab\there", "\x1b[31mred", "\u202eright", "naïve-测试-🎈", "bytes-\udcff\udcfe"),
    *("s3:x", "file:x", "<b>bold", "a;b", "(x)", "-dash", "--help", "_hidden", ".dot", "x" * 230),
    *("op=zebra", "outcome=error", "$USER", "%s%n", "{0}", "a|b", "`id`", "!x"),
]
DIRECTORIES = ["op=zebra", "outcome=error", "st*r", "a$x^$b", "10:30", "[ab]", "new\nline", "http:", "\udcff"]


def ended(app: Callable[..., Any], *words: object) -> int:
    with pytest.raises(SystemExit) as end:
        app([os.fspath(word) if isinstance(word, Path) else str(word) for word in words], prog_name="iosonar")
    return int(end.value.code or 0)


def written(directory: Path, name: str, rows: list[dict[str, Any]] = ROWS) -> Path:
    """The run with an odd name, beside one that the name would match as a pattern."""
    directory.mkdir(parents=True, exist_ok=True)
    for other in ("stXr", "whXt", "a", "b", "q"):
        write_run(directory / f"{other}.replay.parquet", BAD_ROWS)
    return write_run(directory / f"{name}.replay.parquet", rows)


def answer(capsys: pytest.CaptureFixture[str], path: Path) -> object:
    query = "SELECT op, outcome, count(*) AS n, max(latency_ns) AS most FROM requests GROUP BY ALL ORDER BY ALL"
    capsys.readouterr()
    assert ended(sql.app, "--format", "json", "--", path, query) == 0
    return json.loads(capsys.readouterr().out)


EXPECTED = [
    {"op": "read", "outcome": "ok", "n": 10, "most": 28 * MS},
    {"op": "write", "outcome": "ok", "n": 20, "most": 30 * MS},
]


@pytest.mark.parametrize("name", ODD)
def test_sql_reads_the_named_file(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path / "x", name)
    assert answer(capsys, path) == EXPECTED
    # A relative name too: it may begin with a dash.
    monkeypatch.chdir(path.parent)
    assert answer(capsys, Path(path.name)) == EXPECTED
    out = tmp_path / f"{name}.parquet"
    assert ended(sql.app, "--out", out, "--", path.name, "SELECT op FROM requests") == 0
    assert out.stat().st_size > 0


@pytest.mark.parametrize("directory", DIRECTORIES)
def test_directories_do_not_become_columns(tmp_path: Path, directory: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert answer(capsys, written(tmp_path / directory, "run")) == EXPECTED


DRAWN = [
    "st*r",
    "a$x^$b",
    "100%",
    "run-10:30",
    "line\nend",
    "\x1b[31mred",
    "测试-🎈",
    "bytes-\udcff",
    "-dash",
    "x" * 230,
]


@pytest.mark.parametrize("name", DRAWN)
def test_a_picture_and_its_numbers(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, out = written(tmp_path / "x", name), tmp_path / f"out-{name[:60]}"
    monkeypatch.chdir(path.parent)
    words = ("--only", "latency.realtime", "--out", out, "--format")
    assert ended(report.app, *words, "png", "--data", "csv", "--", path.name) == 0
    message = capsys.readouterr()
    assert message.err == "" and len(message.out.splitlines()) == 3
    assert not [sign for sign in message.out if ord(sign) < 32 and sign != "\n"] and "\u202e" not in message.out
    assert len([each for each in out.iterdir() if each.suffix in (".png", ".csv", ".json")]) == 3
    (verdict,) = out.glob("*.verdict.json")
    assert json.loads(verdict.read_text())["errors"]["requests"] == 0
    assert json.loads(verdict.read_text())["requests"] == 30


@pytest.mark.parametrize("name", ["$x^$", "<b>bold", "\x1b[31m\u202ered", "10:30"])
def test_a_page_and_a_vector_picture(tmp_path: Path, name: str) -> None:
    from xml.etree import ElementTree

    path = written(tmp_path / "x", name)
    words = ("--only", "latency.realtime", "--out", tmp_path / "out", "--data", "parquet", "--", path)
    assert ended(report.app, "--format", "svg", *words) == 0
    assert ended(report.app, *words) == 0
    (picture,), (page,) = (tmp_path / "out").glob("*.svg"), (tmp_path / "out").glob("*.html")
    ElementTree.parse(picture)
    text = page.read_text(encoding="utf-8")
    assert "<b>bold" not in text and "\x1b" not in text and "\u202e" not in text


@pytest.mark.parametrize("name", ["st*r:1", "\x1b[31m\udcff", "--json"])
def test_runs_with_odd_names_are_compared(tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    one = written(tmp_path / name, name)
    two = write_run(tmp_path / "two.replay.parquet", [row | {"completed_ns": row["completed_ns"] + S} for row in ROWS])
    assert ended(compare.app, "--out", tmp_path / f"out{name}", "--", one, two) == 0
    message = capsys.readouterr().out
    assert "30 requests" in message and "\x1b" not in message


def test_the_directory_for_temporary_files_may_be_odd(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import tempfile

    from iosonar.table import embedded

    odd = tmp_path / "a'b*[c] =:$x$\n\udcff"
    odd.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", os.fspath(odd))
    # Rows are kept in a file there.
    monkeypatch.setattr(embedded, "MAX_ROWS_IN_MEMORY", 0)
    path = written(tmp_path, "st*r")
    assert answer(capsys, path) == EXPECTED
    assert ended(report.app, "--only", "latency.realtime", "--out", tmp_path / "out", path) == 0
    assert not list(odd.iterdir())


def test_a_name_like_an_option_is_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for app in (report.app, compare.app, sql.app):
        assert ended(app, "-dash.parquet", "x") == 2
        message = capsys.readouterr().err
        assert "needs ./ in front of it, or -- before it" in message


def test_control_characters_are_escaped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    evil = "\x1b]0;title\x07\x9b31m\u202e\r\n\x00"
    run = {"target": {"path": evil, "sectors": 8}, "warnings": [evil], "load": evil, "machine": {"hostname": evil}}
    path = write_run(tmp_path / "a.replay.parquet", ROWS, run=run, devices=[{"name": evil}], warnings=[evil])
    assert ended(report.app, "--only", "latency.realtime", "--out", tmp_path, path) == 0
    text = (tmp_path / "a.report.html").read_text(encoding="utf-8")
    query = "SELECT chr(27) || '[2J' || chr(155) AS \"a\x1b[1m\", chr(8238) AS b"
    assert ended(sql.app, path, query) == 0
    assert ended(sql.app, path, "SELECT error(chr(27) || '[2J')") == 1
    message = capsys.readouterr()
    for each in (text, message.out, message.err):
        assert not {"\x1b", "\x07", "\x9b", "\u202e", "\r", "\x00"} & set(each)
    assert "\\x1b]0;title" in text and "\\x1b[2J" in message.out and "\\x1b[2J" in message.err


def test_loads_have_odd_names_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_load(tmp_path / "l*[d]:x.load.parquet", [load_row(5), load_row(7)])
    (tmp_path / "classic *:1.load").write_text("0.5 ; 0 ; 8 ; R\n0.7 ; 0 ; 8 ; W\n")
    for each in (path, tmp_path / "classic *:1.load"):
        assert ended(sql.app, each, "SELECT count(*) AS n FROM requests", "--format", "csv") == 0
        assert capsys.readouterr().out == "n\n2\n"
