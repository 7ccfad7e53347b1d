from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from call_factory import call, read, replayed, write_calls, write_calls_run, write_scale
from factory import load_row, write_load
from test_sql import sql


def rows_of(tmp_path: Path, *words: object) -> list[dict[str, Any]]:
    out = tmp_path / "out.json"
    assert sql(*words, "--out", out, "--overwrite") == 0
    found: list[dict[str, Any]] = json.loads(out.read_text())
    return found


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    rows = [
        call("openat", 0, 4, path="a", result=3, file="/d/a"),
        read(10, "/d/a", 0, 4096),
        call("stat", 20, 2, path="b", result=-1, errno=2, file="/d/b"),
        call("exit_group", 30, None, result=None),
    ]
    return write_calls(tmp_path / "t.calls.parquet", rows)


def test_calls_have_numbers_ends_families_and_bytes(trace: Path, tmp_path: Path) -> None:
    found = rows_of(tmp_path, trace, "SELECT call_number, call, family, end_ns, bytes FROM calls ORDER BY call_number")
    assert found == [
        {"call_number": 0, "call": "openat", "family": "open", "end_ns": 4_000, "bytes": None},
        {"call_number": 1, "call": "read", "family": "read", "end_ns": 11_000, "bytes": 4096},
        {"call_number": 2, "call": "stat", "family": "stat", "end_ns": 22_000, "bytes": None},
        {"call_number": 3, "call": "exit_group", "family": "process", "end_ns": None, "bytes": None},
    ]


def test_a_run_says_which_calls_were_free_and_which_differ(tmp_path: Path) -> None:
    run = write_calls_run(
        tmp_path / "r.calls-run.parquet",
        [
            replayed(0, "read", 0, 3),
            replayed(1, "read", 5, 20, delay_reason="predecessor", outcome="fewer"),
            replayed(2, "dup", 9, issued_ns=None, completed_ns=None, outcome="bookkeeping"),
        ],
    )
    query = "SELECT call_number AS n, duration_ns, latency_ns, delay_ns, not_held_back, mismatch FROM calls_run"
    assert rows_of(tmp_path, run, f"{query} ORDER BY n") == [
        {"n": 0, "duration_ns": 2000, "latency_ns": 2000, "delay_ns": 3000, "not_held_back": True, "mismatch": False},
        {
            "n": 1,
            "duration_ns": 2000,
            "latency_ns": 2000,
            "delay_ns": 20_000,
            "not_held_back": False,
            "mismatch": True,
        },
        {"n": 2, "duration_ns": None, "latency_ns": None, "delay_ns": None, "not_held_back": False, "mismatch": False},
    ]


def test_calls_and_requests_in_one_query(trace: Path, tmp_path: Path) -> None:
    load = write_load(tmp_path / "b.load.parquet", [load_row(0)])
    found = rows_of(tmp_path, trace, load, "SELECT (SELECT count(*) FROM calls) AS c, count(*) AS r FROM requests")
    assert found == [{"c": 4, "r": 1}]
    kinds = rows_of(tmp_path, trace, load, "SELECT kind FROM files ORDER BY source")
    assert kinds == [{"kind": "calls"}, {"kind": "load"}]


def test_the_view_calls_per_second_counts_by_second(trace: Path, tmp_path: Path) -> None:
    found = rows_of(tmp_path, trace, "SELECT second, calls, failed, bytes_read FROM calls_per_second")
    assert found == [{"second": 0, "calls": 4, "failed": 1, "bytes_read": 4096}]


def test_a_missing_optional_column_is_null(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    path = write_calls(tmp_path / "t.calls.parquet", [read(0, "/a", 0, 1)])
    table = pq.ParquetFile(path).read().drop_columns(["file", "uring"])
    with path.open("wb") as file:
        pq.write_table(table, file)
    assert rows_of(tmp_path, path, "SELECT file, uring FROM calls") == [{"file": None, "uring": None}]


def test_a_missing_required_column_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import pyarrow.parquet as pq

    path = write_calls(tmp_path / "t.calls.parquet", [read(0, "/a", 0, 1)])
    table = pq.ParquetFile(path).read().drop_columns(["call"])
    with path.open("wb") as file:
        pq.write_table(table, file)
    assert sql(path, "FROM calls") == 1
    assert "its column call is missing" in capsys.readouterr().err


def test_scale_is_a_view(tmp_path: Path) -> None:
    rows = [{"instances": 2, "what": "replay", "instance": 1, "seconds": 1.5}]
    path = write_scale(tmp_path / "t.scale.parquet", rows)
    assert rows_of(tmp_path, path, "SELECT instances, what, instance, seconds FROM scale") == rows
