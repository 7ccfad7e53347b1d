"""Runs of version 1 of the tables have the same numbers as of version 2, under the names of version 2."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from call_factory import replayed, write_calls_run
from factory import MS, RUN_SCHEMA, US, S, as_version_1, run_row, write_run
from made_run import made_run

from iosonar.cli import compare, sql
from iosonar.diagrams import Options, Study
from iosonar.diagrams.notes import common_notes
from iosonar.figures.model import NoteKind
from iosonar.report.typed_options import command_line
from iosonar.table import open_requests
from iosonar.table.calls import open_calls
from iosonar.table.footer import Statistics
from iosonar.table.structure import structured
from iosonar.table.versions import rename_footer

INNER = pa.field("last_empty_poll_ns", pa.int64())
ROWS: list[dict[str, Any]] = [
    run_row(0, scheduled=0, iteration=0, last_empty_poll_ns=5),
    run_row(1, scheduled=MS, iteration=1, delay=3, delay_reason="completion_log", last_empty_poll_ns=None),
    run_row(2, scheduled=2 * MS, iteration=2, delay=7, delay_reason="depth", last_empty_poll_ns=8),
]


def pair(directory: Path, rows: list[dict[str, Any]] | pa.Table = ROWS, **footer: Any) -> tuple[Path, Path]:
    """The same run in version 1 and in version 2."""
    table = rows if isinstance(rows, pa.Table) else pa.Table.from_pylist(rows, schema=RUN_SCHEMA.append(INNER))
    old, new = (write_run(directory / f"v{version}.replay.parquet", table, **footer) for version in (1, 2))
    return as_version_1(old), new


def answer(capsys: pytest.CaptureFixture[str], path: Path, query: str) -> Any:
    with pytest.raises(SystemExit) as ended:
        sql.app([str(path), query, "--format", "json"], prog_name="iosonar sql")
    message = capsys.readouterr()
    assert not ended.value.code, message.err
    return json.loads(message.out)


def test_both_versions_are_one_table(tmp_path: Path) -> None:
    tables = []
    for path in pair(tmp_path):
        with open_requests([path]) as requests:
            tables.append(requests.table.order_by("place").to_pyarrow())
    assert tables[0].equals(tables[1])
    assert tables[0]["delay_reason"].to_pylist() == ["none", "completion_log", "depth"]
    assert tables[0]["iteration"].to_pylist() == [0, 1, 2]


def test_sql_has_the_new_names_for_a_run_of_version_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    query = "SELECT * FROM requests ORDER BY place"
    old, new = (answer(capsys, path, query) for path in pair(tmp_path))
    assert old == new
    assert [(row["delay_reason"], row["not_held_back"]) for row in old] == [
        *[("none", True), ("completion_log", True), ("depth", False)]
    ]
    assert {"iteration", "scheduled_ns", "last_empty_poll_ns"} < old[0].keys()
    assert {"round", "intended_ns", "unanswered_ns", "held_by", "free_to_go"}.isdisjoint(old[0])


def test_both_versions_together_are_one_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = pair(tmp_path)
    with pytest.raises(SystemExit):
        query = "SELECT sum(scheduled_ns) AS sum, count(*) FILTER (not_held_back) AS free FROM requests GROUP BY source"
        sql.app([str(old), str(new), query, "--format", "json"], prog_name="iosonar sql")
    assert json.loads(capsys.readouterr().out) == [{"sum": 3 * MS, "free": 2}] * 2


def test_additional_columns_may_have_the_new_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = pair(tmp_path)[0]
    table = pq.ParquetFile(path).read()
    for name in ("iteration", "delay_reason", "ROUND"):
        table = table.append_column(name, pa.array(["a", "b", "c"]))
    pq.write_table(table, path)
    query = "SELECT iteration, iteration_1, delay_reason, delay_reason_1, ROUND_1 FROM requests WHERE request = 1"
    expected = {"iteration": 1, "iteration_1": "b", "delay_reason": "completion_log", "delay_reason_1": "b"}
    assert answer(capsys, path, query) == [expected | {"ROUND_1": "b"}]


def test_statistics_of_version_1_are_read(tmp_path: Path) -> None:
    """The fidelity of a run without a verdict comes from its statistics."""
    statistics = {"within_not_held_back_pct": {"50": 98.0, "100": 99.0}, "delay_not_held_back_us": {"p99": 30.0}}
    notes = []
    for path in pair(tmp_path, run={"statistics": statistics}):
        with open_requests([path]) as requests:
            found = common_notes(Study(requests, Options()))
            notes.append([note.text for note in found if note.kind is NoteKind.FIDELITY])
            assert requests.files[0].run.statistics == structured(Statistics, statistics)
    assert notes[0] == notes[1] and notes[0]


def test_response_times_of_version_1_have_their_new_name(tmp_path: Path) -> None:
    run = {"statistics": {"latency_intended_us": {"p50": 1.0}}}
    with open_requests([pair(tmp_path, run=run)[0]]) as requests:
        assert requests.files[0].run.statistics.latency_from_scheduled_us == {"p50": 1.0}


def test_options_of_version_1_have_new_names(tmp_path: Path) -> None:
    run: dict[str, Any] = {
        "wait": "work",
        "options": {"wait": "work", "engine": None, "fake_io": False, "dry_run": True},
        "typed": {"wait": "work", "dry-run": True},
    }
    with open_requests([pair(tmp_path, run=run)[0]]) as requests:
        found = requests.files[0].run
    assert (found.wait, found.options) == ("inline", {"wait": "inline", "engine": "dry_run"})
    assert command_line(found) == "--wait inline --dry-run"


def test_compare_accepts_both_versions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a = pair(tmp_path, made_run(3000, seconds=10))
    (tmp_path / "b").mkdir()
    b = pair(tmp_path / "b", made_run(3000, seconds=10, seed=2), run={"started_unix_ns": 7})
    message = []
    for left, right in ((a[0], b[0]), (a[0], b[1]), (a[1], b[0]), (a[1], b[1])):
        sides = [tmp_path / f"{side}.replay.parquet" for side in "ab"]
        for path, name in zip((left, right), sides, strict=True):
            name.write_bytes(path.read_bytes())
        with pytest.raises(SystemExit):
            compare.app([*map(str, sides), "--out", str(tmp_path), "--json"], prog_name="iosonar compare")
        message.append(capsys.readouterr().out)
    assert "p99" in message[0] and message == [message[0]] * 4


def test_columns_of_version_1_without_a_footer_are_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in pair(tmp_path):
        table = pq.ParquetFile(path).read()
        pq.write_table(table.replace_schema_metadata(None), path)
        query = "SELECT scheduled_ns, iteration, delay_reason FROM requests ORDER BY place"
        assert [tuple(row.values()) for row in answer(capsys, path, query)] == [
            *[(0, 0, "none"), (MS, 1, "completion_log"), (2 * MS, 2, "depth")]
        ]


def test_errors_in_a_run_of_version_1_have_its_names(tmp_path: Path) -> None:
    from iosonar.errors import UserError

    path = pair(tmp_path)[0]
    pq.write_table(pq.ParquetFile(path).read().drop_columns(["intended_ns"]), path)
    with pytest.raises(UserError, match="its column intended_ns is missing"), open_requests([path]):
        pass


def test_invalid_rows_of_version_1_are_skipped(tmp_path: Path) -> None:
    path = write_run(tmp_path / "a.replay.parquet", [*ROWS, run_row(3, scheduled=S, delay=US, delay_reason="x")])
    with open_requests([as_version_1(path)]) as requests:
        assert requests.table.count().to_pyarrow().as_py() == len(ROWS)
        assert requests.files[0].skipped_rows == ("row 3 left out: delay_reason is not a known name",)


def test_runs_of_calls_of_version_2_have_the_new_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [replayed(0, "read", 0, 5), replayed(1, "read", 5, 20), replayed(2, "read", 6, 30)]
    for row, reason in zip(rows, ("none", "replayer", "pool"), strict=True):
        row["delay_reason"] = reason
    path = write_calls_run(tmp_path / "x.calls-run.parquet", rows, schema_version=2)
    table = pq.ParquetFile(path).read()
    old = table.rename_columns(["held_by" if name == "delay_reason" else name for name in table.column_names])
    pq.write_table(old.replace_schema_metadata(table.schema.metadata), path)
    with open_calls(path) as calls:
        found = calls.table.order_by("number").to_pyarrow()
    assert found["delay_reason"].to_pylist() == ["none", "backlog", "depth"]
    query = "SELECT delay_reason, not_held_back FROM calls_run ORDER BY place"
    answered = answer(capsys, path, query)
    assert [(row["delay_reason"], row["not_held_back"]) for row in answered] == [
        *[("none", True), ("backlog", True), ("depth", False)]
    ]


def test_keys_of_version_2_have_the_new_names() -> None:
    statistics = {"issue_error_us": {"p50": 1.0}, "held": {"pool": 1}, "calls": 3}
    footer = {"kind": "calls_run", "request_time": "asked", "run": {"company": {}, "statistics": statistics}}
    rename_footer(footer, 2)
    renamed = {"delay_not_held_back_us": {"p50": 1.0}, "delay_reasons": {"depth": 1}, "calls": 3}
    assert footer == {
        **{"kind": "calls_run", "request_time": "queued", "run": {"contention": {}, "statistics": renamed}}
    }
