from __future__ import annotations

from pathlib import Path

import pytest
from factory import MS, load_row, run_row, write_load, write_run

from iosonar.errors import UserError
from iosonar.table import open_requests


def test_a_load_is_read_as_a_run(tmp_path: Path) -> None:
    path = write_load(tmp_path / "a.load.parquet", [load_row(5, sector=100), load_row(7, sector=200, op="write")])
    with open_requests([path]) as requests:
        rows = requests.table.order_by("place").to_pyarrow().to_pylist()
    assert [row["scheduled_ns"] for row in rows] == [5, 7]
    assert [row["source_sector"] for row in rows] == [100, 200]
    assert [row["request"] for row in rows] == [0, 1]
    assert {row["latency_ns"] for row in rows} == {None}


def test_a_recorded_load_has_its_latencies(tmp_path: Path) -> None:
    import pyarrow as pa

    rows = pa.Table.from_pylist([load_row(5), load_row(7)])
    rows = rows.append_column("latency_ns", pa.array([30, None], pa.int64()))
    with open_requests([write_load(tmp_path / "a.load.parquet", rows)]) as requests:
        found = requests.table.order_by("place").to_pyarrow().to_pylist()
    assert [row["latency_ns"] for row in found] == [30, None]
    assert [row["issued_ns"] for row in found] == [5, None]


def test_several_files_are_one_table(tmp_path: Path) -> None:
    one = write_run(tmp_path / "one.replay.parquet", [run_row(0, delay=3), run_row(1)])
    two = write_run(tmp_path / "two.replay.parquet", [run_row(0, latency=None)])
    with open_requests([one, two]) as requests:
        rows = requests.table.order_by("source", "place").to_pyarrow().to_pylist()
        assert [file.name for file in requests.files] == ["one", "two"]
    assert [(row["source"], row["place"]) for row in rows] == [(0, 0), (0, 1), (1, 0)]
    assert [(row["delay_ns"], row["latency_ns"]) for row in rows] == [(3, MS), (0, MS), (0, None)]


def test_another_version_is_refused(tmp_path: Path) -> None:
    path = write_run(tmp_path / "a.parquet", [run_row()], schema_version=99)
    message = "has version 99 of the tables; this iosonar reads versions up to 3: use a newer iosonar"
    with pytest.raises(UserError, match=message), open_requests([path]):
        pass


def test_a_foreign_parquet_is_refused(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"x": [1]}), tmp_path / "x.parquet")
    with pytest.raises(UserError, match="neither a load"), open_requests([tmp_path / "x.parquet"]):
        pass


def test_a_truncated_file_is_named(tmp_path: Path) -> None:
    path = write_run(tmp_path / "a.parquet", [run_row()])
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(UserError, match="truncated"), open_requests([path]):
        pass


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with (
        pytest.raises(UserError, match=r"nowhere\.parquet: No such file"),
        open_requests([tmp_path / "nowhere.parquet"]),
    ):
        pass


def test_text_without_the_binary_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.load").write_text("0.0 ; 0 ; 8 ; R\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sys.argv", [str(tmp_path / "iosonar-report")])
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    with pytest.raises(UserError, match="pip install"), open_requests([tmp_path / "a.load"]):
        pass


def test_text_is_converted_by_the_binary_beside_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = write_run(tmp_path / "made.parquet", [run_row()])
    binary = tmp_path / "iosonar"
    binary.write_text(f'#!/bin/sh\n[ "$1" = convert ] && cp {made} "$3"\n')
    binary.chmod(0o755)
    monkeypatch.setattr("sys.argv", [str(tmp_path / "iosonar-report")])
    (tmp_path / "a.replay.gz").write_bytes(b"\x1f\x8b")
    with open_requests([tmp_path / "a.replay.gz"]) as requests:
        assert requests.files[0].name == "a"
        assert requests.table.count().to_pyarrow().as_py() == 1


def test_an_error_of_the_binary_is_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    binary = tmp_path / "iosonar"
    binary.write_text('#!/bin/sh\necho "iosonar: $2: empty" >&2\nexit 1\n')
    binary.chmod(0o755)
    monkeypatch.setattr("sys.argv", [str(tmp_path / "iosonar-report")])
    (tmp_path / "a.load").write_text("")
    with pytest.raises(UserError, match=r"a\.load: empty$"), open_requests([tmp_path / "a.load"]):
        pass
