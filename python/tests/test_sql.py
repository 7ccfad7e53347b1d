from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet
import pytest
from factory import MS, S, load_row, run_row, write_load, write_run

from iosonar.cli.sql import app

ROWS = [
    run_row(0, latency=2 * MS),
    run_row(1, intended=S, latency=4 * MS, op="write"),
    run_row(2, intended=S, latency=6 * MS),
]


def sql(*words: object) -> int:
    with pytest.raises(SystemExit) as ended:
        app([str(word) for word in words], prog_name="iosonar sql")
    return int(ended.value.code or 0)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_run(tmp_path / "a.replay.parquet", ROWS)


def test_a_table_for_people(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert sql(run, "SELECT op, count(*) AS n FROM requests GROUP BY op ORDER BY op") == 0
    assert capsys.readouterr().out == "op     n\n─────  ─\nread   2\nwrite  1\n"


def test_the_views(run: Path, tmp_path: Path) -> None:
    for number, (query, expected) in enumerate(
        [
            ("SELECT count(*) AS n FROM reads", [{"n": 2}]),
            ("SELECT count(*) AS n FROM writes", [{"n": 1}]),
            (
                "SELECT second, requests, reads, bytes, latency_max_s FROM per_second WHERE second = 1",
                [{"second": 1, "requests": 2, "reads": 1, "bytes": 8192, "latency_max_s": 0.006}],
            ),
            ("SELECT source, name, rows FROM files", [{"source": 0, "name": "a", "rows": 3}]),
        ]
    ):
        out = tmp_path / f"{number}.json"
        assert sql(run, query, "--out", out) == 0
        assert json.loads(out.read_text()) == expected


def test_several_files_and_formats(run: Path, tmp_path: Path) -> None:
    load = write_load(tmp_path / "b.load.parquet", [load_row(5)])
    out = tmp_path / "out.parquet"
    assert sql(run, load, "SELECT source, count(*) AS n FROM requests GROUP BY 1 ORDER BY 1", "--out", out) == 0
    assert pyarrow.parquet.read_table(out).to_pylist() == [{"source": 0, "n": 3}, {"source": 1, "n": 1}]
    out = tmp_path / "out.csv"
    assert sql(run, "SELECT request FROM writes", "--out", out) == 0
    assert out.read_text() == "request\n1\n"
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_long_tables_are_cut_and_say_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_run(tmp_path / "a.parquet", [run_row(n) for n in range(300)])
    assert sql(path, "SELECT request FROM requests") == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 203 and "only 200 are shown" in lines[-1]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELEC 1", "syntax error"),
        ("SELECT nothing FROM requests", "nothing"),
        ("FROM nowhere", "nowhere"),
        ("DROP TABLE requests", "files are not changed"),
        ("SELECT 1; SELECT 2", "one question at a time"),
        ("SELECT error('no way')", "no way"),
        ("SELECT op::INT FROM requests", "Could not convert"),
    ],
)
def test_bad_questions(run: Path, query: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert sql(run, query) == 1
    err = capsys.readouterr().err
    assert said in err and "can't read" not in err


@pytest.mark.parametrize(("kind", "expected"), [("csv", "n\n3\n"), ("json", '[\n\t{"n":3}\n]\n')])
def test_a_file_is_appended_to(run: Path, tmp_path: Path, kind: str, expected: str) -> None:
    out = tmp_path / "out"
    out.write_text("before\n")
    program = "import sys; from iosonar.cli.sql import main; main()"
    with out.open("a") as appended:
        for _ in range(2):
            words = [str(run), "SELECT count(*) AS n FROM requests", "--format", kind]
            subprocess.run([sys.executable, "-c", program, *words], stdout=appended, check=True)
    assert out.read_text() == "before\n" + expected * 2


def test_whoever_reads_may_have_had_enough(run: Path) -> None:
    program = "from iosonar.cli.sql import main; main()"
    words = [str(run), "SELECT range FROM range(10_000_000)", "--format", "csv"]
    reader = subprocess.Popen([sys.executable, "-c", program, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert reader.stdout and reader.stderr
    assert reader.stdout.readline() == b"range\n"
    reader.stdout.close()
    assert reader.wait(60) == 1
    assert reader.stderr.read() == b""
    reader.stderr.close()


def test_where_it_can_not_be_written_is_said(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("x.csv", "x.parquet", "x"):
        assert sql(run, "SELECT 1", "--out", f"/proc/{name}") == 1
        assert f"can't write /proc/{name}: " in capsys.readouterr().err
    out = tmp_path / "o.xyz"
    assert sql(run, "SELECT 1", "--out", out) == 2
    assert "o.xyz: which format is that?" in capsys.readouterr().err
    assert sql(run, "SELECT error('no')", "--out", tmp_path / "o.csv") == 1
    assert [path.name for path in tmp_path.iterdir()] == [run.name]


def test_a_file_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    assert sql("SELECT 1") == 2
    assert "a file and a query" in capsys.readouterr().err


def test_parquet_needs_a_file(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert sql(run, "SELECT 1", "--format", "parquet") == 2
    assert "--out FILE" in capsys.readouterr().err
