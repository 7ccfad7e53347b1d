from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet
import pytest
from factory import MS, S, load_row, run_row, write_load, write_run

from iosonar.cli.sql import app

ROWS = [
    run_row(0, latency=2 * MS),
    run_row(1, scheduled=S, latency=4 * MS, op="write"),
    run_row(2, scheduled=S, latency=6 * MS),
]


def sql(*words: object) -> int:
    with pytest.raises(SystemExit) as ended:
        app([str(word) for word in words], prog_name="iosonar sql")
    return int(ended.value.code or 0)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_run(tmp_path / "a.replay.parquet", ROWS)


def test_results_are_printed_as_a_table(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert sql(run, "SELECT op, count(*) AS n FROM requests GROUP BY op ORDER BY op") == 0
    assert capsys.readouterr().out == "op     n\n─────  ─\nread   2\nwrite  1\n"


def test_requests_have_bytes_as_their_views_have(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    query = "SELECT (SELECT sum(bytes) FROM requests) = (SELECT sum(bytes) FROM per_second) AS same"
    assert sql(run, query) == 0
    assert capsys.readouterr().out.split() == ["same", "────", "True"]


@pytest.mark.parametrize(
    "value", ["TIMESTAMPTZ '2020-01-01 00:00:00+00'", "[TIMESTAMPTZ '2020-01-01 00:00:00+00']", "TIMETZ '01:02:03+01'"]
)
def test_times_with_a_zone_are_printed(run: Path, value: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert sql(run, f'SELECT {value} AS "a""b", 1 AS n') == 0
    heads, _, row = capsys.readouterr().out.splitlines()
    assert heads.startswith('a"b') and ("2020-01-01" in row or "01:02:03" in row)


def test_the_views_have_the_rows_of_the_run(run: Path, tmp_path: Path) -> None:
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


def test_a_query_reads_several_files_and_writes_each_format(run: Path, tmp_path: Path) -> None:
    load = write_load(tmp_path / "b.load.parquet", [load_row(5)])
    out = tmp_path / "out.parquet"
    assert sql(run, load, "SELECT source, count(*) AS n FROM requests GROUP BY 1 ORDER BY 1", "--out", out) == 0
    assert pyarrow.parquet.read_table(out).to_pylist() == [{"source": 0, "n": 3}, {"source": 1, "n": 1}]
    out = tmp_path / "out.csv"
    assert sql(run, "SELECT request FROM writes", "--out", out) == 0
    assert out.read_text() == "request\n1\n"
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_long_tables_are_truncated_with_a_note(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_run(tmp_path / "a.parquet", [run_row(n) for n in range(300)])
    assert sql(path, "SELECT request FROM requests") == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 203 and "first 200 rows" in lines[-1]


@pytest.mark.parametrize(
    ("code", "query", "message"),
    [
        (2, "SELEC 1", "syntax error"),
        (2, "SELECT nothing FROM requests", "nothing"),
        (2, "FROM nowhere", "nowhere"),
        (2, "SELECT no_such(op) FROM requests", "no_such"),
        (2, "FROM read_csv('x')", "read_csv is not available"),
        (2, "DROP TABLE requests", "one read-only query"),
        (2, "UPDATE EXTENSIONS", "one read-only query"),
        (2, "SELECT 1; SELECT 2", "one read-only query"),
        # Valid queries that fail on a value.
        (1, "SELECT error('no way')", "no way"),
        (1, "SELECT op::INT FROM requests", "Could not convert"),
    ],
)
def test_wrong_queries_end_with_a_code_and_a_reason(
    run: Path, code: int, query: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sql(run, query) == code
    err = capsys.readouterr().err
    assert message in err and "cannot read" not in err


def test_a_query_that_is_not_utf_8_is_a_wrong_command_line(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert sql(run, "SELECT '\udcff'") == 2
    assert capsys.readouterr().err == "iosonar sql: the query is not UTF-8: SELECT '\\xff'\n"


@pytest.mark.parametrize("format_", ["csv", "json", "parquet"])
def test_errors_do_not_show_internal_statements(
    run: Path, tmp_path: Path, format_: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sql(run, "SELECT op::INT FROM requests", "--out", tmp_path / f"o.{format_}") == 1
    err = capsys.readouterr().err
    assert "Could not convert" in err and "COPY" not in err and "/proc/" not in err and err.count("\n") == 1


def test_json_has_null_for_nan_and_infinity(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "o.json"
    query = """SELECT 'nan'::DOUBLE AS a, 'inf'::FLOAT AS "b""c", 1.5::DOUBLE AS d, '-inf'::DOUBLE AS e, 1 AS f"""
    assert sql(run, query, "--out", out) == 0
    assert json.loads(out.read_text()) == [{"a": None, 'b"c': None, "d": 1.5, "e": None, "f": 1}]


def test_a_file_size_limit_is_reported(run: Path, tmp_path: Path) -> None:
    program = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16,) * 2)\n"
    program += "from iosonar.cli.sql import main; main()"
    for format_ in ("csv", "json", "parquet"):
        out = tmp_path / f"o.{format_}"
        words = [sys.executable, "-c", program, str(run), "SELECT random() FROM range(1_000_000)", "--out", str(out)]
        ended = subprocess.run(words, capture_output=True, text=True, check=False)
        assert (ended.returncode, ended.stderr) == (1, f"iosonar sql: cannot write {out}: File too large\n")
    assert [path.name for path in tmp_path.iterdir()] == [run.name]


@pytest.mark.parametrize("size", ["999999999T", "9" * 5000 + "G"])
def test_impossible_memory_is_a_wrong_command_line(run: Path, size: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert sql(run, "SELECT 1", "--memory", size) == 2
    assert "maximum is 1024 TiB" in capsys.readouterr().err


@pytest.mark.parametrize(("kind", "expected"), [("csv", "n\n3\n"), ("json", '[\n\t{"n":3}\n]\n')])
def test_standard_output_may_be_appended_to_a_file(run: Path, tmp_path: Path, kind: str, expected: str) -> None:
    out = tmp_path / "out"
    out.write_text("before\n")
    program = "import sys; from iosonar.cli.sql import main; main()"
    with out.open("a") as appended:
        for _ in range(2):
            words = [str(run), "SELECT count(*) AS n FROM requests", "--format", kind]
            subprocess.run([sys.executable, "-c", program, *words], stdout=appended, check=True)
    assert out.read_text() == "before\n" + expected * 2


def test_a_reader_may_close_the_pipe_early(run: Path) -> None:
    program = "from iosonar.cli.sql import main; main()"
    words = [str(run), "SELECT range FROM range(10_000_000)", "--format", "csv"]
    reader = subprocess.Popen([sys.executable, "-c", program, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert reader.stdout and reader.stderr
    assert reader.stdout.readline() == b"range\n"
    reader.stdout.close()
    assert reader.wait(60) == 1
    assert reader.stderr.read() == b""
    reader.stderr.close()


def test_an_output_that_cannot_be_written_is_reported(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("x.csv", "x.parquet", "x"):
        assert sql(run, "SELECT 1", "--out", f"/proc/{name}") == 1
        assert f"cannot write /proc/{name}: " in capsys.readouterr().err
    out = tmp_path / "o.xyz"
    assert sql(run, "SELECT 1", "--out", out) == 2
    assert "unknown format of " in capsys.readouterr().err
    assert sql(run, "SELECT error('no')", "--out", tmp_path / "o.csv") == 1
    assert [path.name for path in tmp_path.iterdir()] == [run.name]


def test_a_file_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    assert sql("SELECT 1") == 2
    assert "a file and a query" in capsys.readouterr().err


def test_parquet_needs_a_file(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert sql(run, "SELECT 1", "--format", "parquet") == 2
    assert "--out FILE" in capsys.readouterr().err


def test_not_held_back_equals_the_count_of_the_replay(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        run_row(),
        run_row(delay_reason="input"),
        run_row(delay_reason="completion_log"),
        run_row(delay_reason="depth"),
        run_row(pushed_back=True),
        run_row(delay_reason="input", pushed_back=True),
        run_row(delay_reason="backlog"),
        run_row(delay_reason="backlog", pushed_back=True),
        run_row(issued_ns=None, completed_ns=None, outcome="dropped"),
    ]
    path = write_run(tmp_path / "a.replay.parquet", rows)
    # By the definition in docs/schema.md.
    documented = (
        "issued_ns IS NOT NULL AND (delay_reason = 'backlog' "
        "OR NOT pushed_back AND delay_reason IN ('none', 'input', 'completion_log'))"
    )
    query = f"SELECT count(*) FILTER (not_held_back) AS a, count(*) FILTER ({documented}) AS b FROM requests"
    assert sql(path, query, "--format", "json") == 0
    assert json.loads(capsys.readouterr().out) == [{"a": 5, "b": 5}]


ATTEMPTS = [
    "WITH a AS (COPY (SELECT 1) TO '{run}') SELECT 1",
    "WITH a AS (COPY (SELECT 1) TO '{new}') SELECT 1",
    "SELECT (WITH a AS (COPY (SELECT 1) TO '{new}') SELECT 1)",
    "WITH a AS (INSERT INTO requests SELECT * FROM requests RETURNING *) FROM a",
    "FROM query('WITH a AS (COPY (SELECT 1) TO ''{new}'') SELECT 1')",
    "FROM json_execute_serialized_sql(json_serialize_sql('SELECT 1'))",
    "COPY (SELECT 1) TO '{new}'",
    "COPY requests TO '{run}' (FORMAT parquet)",
    "EXPORT DATABASE '{new}'",
    "ATTACH '{new}'",
    "INSTALL httpfs",
    "LOAD httpfs",
    "SET enable_external_access = true",
    "PRAGMA profiling_output = '{new}'",
    "PRAGMA enable_profiling",
    "CALL enable_logging(storage_path = '{new}')",
    "CREATE TABLE t AS SELECT 1",
    "FROM read_csv('/etc/passwd')",
    "FROM read_text('/etc/passwd')",
    "FROM '/etc/passwd'",
    "FROM '{other}'",
    "FROM read_parquet('{other}')",
    "FROM parquet_metadata('{other}')",
    "FROM glob('/*')",
    "FROM read_parquet('http://127.0.0.1:9/x.parquet')",
    "FROM duckdb_secrets()",
    "FROM arrow_scan(1, 2, 3)",
]


@pytest.mark.parametrize("query", ATTEMPTS)
def test_a_query_changes_nothing_and_reads_no_other_files(
    run: Path, tmp_path: Path, query: str, capsys: pytest.CaptureFixture[str]
) -> None:
    other = write_run(tmp_path / "other.parquet", ROWS)
    before = {path: path.read_bytes() for path in (run, other)}
    assert sql(run, query.format(run=run, new=tmp_path / "new", other=other)) == 2
    err = capsys.readouterr().err
    assert err.startswith("iosonar sql: ") and "Traceback" not in err
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_locked_engine_can_spill(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_run(tmp_path / "a.parquet", ROWS)
    # More than fits into the memory.
    query = "SELECT count(*) AS n FROM (SELECT range, hash(range) AS h FROM range(6_000_000) ORDER BY h)"
    spilling = f"SELECT max(h) > 0 AS n FROM ({query.split('(', 2)[2].rsplit(')', 1)[0]} LIMIT 5_000_000)"
    assert sql(path, spilling, "--memory", "64MiB", "--format", "csv") == 0
    assert capsys.readouterr().out == "n\ntrue\n"


def test_an_existing_file_is_replaced_only_with_overwrite(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    measured = run.read_bytes()
    link, hard = tmp_path / "link.parquet", tmp_path / "hard.parquet"
    link.symlink_to(run)
    hard.hardlink_to(run)
    for out in (run, link, hard, tmp_path / ".." / tmp_path.name / run.name):
        for words in ((), ("--overwrite",)):
            assert sql(run, "SELECT 1", "--out", out, *words) == 1
            assert "is also an input; give the output another name" in capsys.readouterr().err
    assert run.read_bytes() == measured and link.is_symlink()
    for kind in ("csv", "json", "parquet", "txt"):
        out = tmp_path / f"mine.{kind}"
        out.write_text("mine")
        assert sql(run, "SELECT 1", "--out", out) == 1
        message = capsys.readouterr().err
        assert message.endswith(f"{out} exists; give the output another name, or replace it with --overwrite\n")
        assert out.read_text() == "mine"
        assert sql(run, "SELECT 1", "--out", out, "--overwrite") == 0
        assert out.read_bytes() != b"mine"
    out = tmp_path / "to.csv"
    out.symlink_to(tmp_path / "mine.csv")
    assert sql(run, "SELECT 2 AS a", "--out", out, "--overwrite") == 0
    assert out.is_symlink() and (tmp_path / "mine.csv").read_text() == "a\n2\n"


def test_devices_and_pipes_are_written_to(run: Path, tmp_path: Path) -> None:
    import os
    from threading import Thread

    null = tmp_path / "null"
    os.mkfifo(null)
    read: list[bytes] = []
    reading = Thread(target=lambda: read.append(null.read_bytes()))
    reading.start()
    assert sql(run, "SELECT 1 AS a", "--format", "csv", "--out", null) == 0
    reading.join()
    assert read == [b"a\n1\n"] and null.is_fifo()
    assert sql(run, "SELECT 1", "--out", "/dev/null") == 0
    assert Path("/dev/null").is_char_device()


def test_a_load_has_its_own_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import pyarrow as pa

    rows = pa.Table.from_pylist([load_row(5), load_row(7, op="write")])
    rows = rows.append_column("latency_ns", pa.array([30, None], pa.int64()))
    rows = rows.append_column("queued_ns", pa.array([1, 2], pa.int64())).append_column("process", pa.array(["a", "b"]))
    rows = rows.append_column("mine", pa.array([[1], [2]])).append_column("place", pa.array(["x", "y"]))
    path = write_load(tmp_path / "a.load.parquet", rows)
    query = (
        "SELECT at_ns, queued_ns, process, latency_ns, mine, place, place_1, scheduled_ns, completed_ns, pid, request "
        "FROM requests ORDER BY at_ns"
    )
    assert sql(path, query, "--format", "json") == 0
    assert json.loads(capsys.readouterr().out) == [
        {
            **{"at_ns": 5, "queued_ns": 1, "process": "a", "latency_ns": 30, "mine": [1], "place": 0, "place_1": "x"},
            **{"scheduled_ns": 5, "completed_ns": 35, "pid": None, "request": 0},
        },
        {
            **{"at_ns": 7, "queued_ns": 2, "process": "b", "latency_ns": None, "mine": [2], "place": 1, "place_1": "y"},
            **{"scheduled_ns": 7, "completed_ns": None, "pid": None, "request": 1},
        },
    ]


def test_additional_columns_of_a_run_can_be_queried(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import pyarrow as pa
    from factory import RUN_SCHEMA

    table = pa.Table.from_pylist(ROWS, schema=RUN_SCHEMA)
    for name in ("tenant", "source", "latency_ns", "file_row_number", "OP"):
        table = table.append_column(name, pa.array(["a", "b", "c"]))
    path = write_run(tmp_path / "a.replay.parquet", table)
    query = "SELECT tenant, source_1, latency_ns_1, file_row_number_1, OP_1, op FROM requests WHERE latency_ns > 5e6"
    assert sql(path, query, "--format", "csv") == 0
    assert capsys.readouterr().out.splitlines()[1:] == ["c,c,c,c,c,read"]


def test_loads_and_runs_together_have_all_columns(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    load = write_load(tmp_path / "b.load.parquet", [load_row(5)])
    query = "SELECT source, count(at_ns) AS a, count(issued_ns) AS b FROM requests GROUP BY ALL ORDER BY ALL"
    assert sql(run, load, query, "--format", "csv") == 0
    assert capsys.readouterr().out.splitlines()[1:] == ["0,0,3", "1,1,0"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT op::INT FROM requests", r'.* \(at "::INT FROM requests"\)'),
        ("SELECT 1,\n op::INT FROM requests", r'.* \(at "::INT FROM requests" in line 2\)'),
        ("SELECT 1,\n (2", r'Parser Error: syntax error at or near "2" \(at "2" in line 2\)'),
        ("SELECT quantile_cont(op, 1) FROM requests", r"Binder Error: No function matches .* explicit type casts\."),
        ("SELECT error('a\nb')", "Invalid Input Error: a b"),
        ("SELECT strptime(op, '%Y') FROM requests", '.*format specifier "%Y" Error: Expected a number'),
    ],
)
def test_an_error_of_a_query_is_one_line(
    run: Path, query: str, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        app([str(run), query])
    message = capsys.readouterr().err
    assert re.fullmatch(f"iosonar sql: {expected}\n", message), message


def test_a_pipe_that_is_read_is_not_written(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["sh", "-c", 'cat "$1" > "$2"', "sh", run, pipe]):
        assert sql(pipe, "SELECT count(*) FROM requests", "--out", pipe) == 1
    assert "pipe" in capsys.readouterr().err
