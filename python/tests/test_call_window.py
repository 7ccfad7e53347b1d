"""Windows of time of traces of calls and of their runs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from call_factory import read, replayed, write_calls, write_calls_run
from factory import load_row, write_load
from test_call_report import compare
from test_report import report

import iosonar
from iosonar.cli.sql import app as sql_app
from iosonar.errors import UsageError, UserError

S = 1_000_000
"""A second in the µs of the factory."""


def sql(*words: object) -> int:
    with pytest.raises(SystemExit) as ended:
        sql_app([str(word) for word in words], prog_name="iosonar sql")
    return int(ended.value.code or 0)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """A call each second, the last ones slower, from a trace that begins at 100 s."""
    rows = [
        read((100 + at) * S, f"/{at // 10}", 0, 10, duration_ns=1_000_000 * (1 + 9 * (at >= 30))) for at in range(60)
    ]
    return write_calls(tmp_path / "t.calls.parquet", rows)


def write_run(path: Path, timing: str = "exact", late: float = 0) -> Path:
    """A replay of the trace; each call is issued `late` µs after its time."""
    rows = [replayed(at, "read", at * S, late, path=f"/{at // 10}") for at in range(60)]
    for row in rows:
        row["completed_ns"] = row["issued_ns"] + 2_000_000
    footer = {"trace": "t.calls.parquet", "trace_zero_ns": 100_000_000_000, "options": {"timing": timing}}
    return write_calls_run(path, rows, run=footer)


def test_a_window_of_a_trace_has_the_calls_that_began_in_it(trace: Path) -> None:
    with iosonar.open(trace, from_s=120, to_s=140) as run:
        assert run.table.count().to_pyarrow().as_py() == run.summary.rows == 20
        # From the start of the window to the end of its last call.
        assert run.summary.seconds == pytest.approx(19.01)
        assert run.summary.rate_per_s == pytest.approx(20 / 19.01)
        assert run.summary.latency.max_s == pytest.approx(0.01)
    with pytest.raises(UserError, match=r"no call of .* is made from 10.* all are made from 1 min 40 s"):
        _ = iosonar.open(trace, from_s=10, to_s=20).summary
    with pytest.raises(UsageError, match="a trace of calls has no warm-up; use --from"):
        _ = iosonar.open(trace, skip_warm_up=True).summary


def test_a_window_of_a_run_is_of_scheduled_times(tmp_path: Path) -> None:
    # Issued 1.5 s late: by the time of issue, other calls were in the window.
    exact = write_run(tmp_path / "exact.calls-run.parquet", late=1.5 * S)
    with iosonar.open(exact, from_s=10, to_s=20) as run:
        numbers = run.table.number.to_pyarrow().to_pylist()
        assert sorted(numbers) == list(range(10, 20))
        assert run.summary.seconds == pytest.approx(19 + 1.5 + 0.002 - 10)
    # As fast as possible, no call has a time.
    asap = write_run(tmp_path / "asap.calls-run.parquet", "asap", late=1.5 * S)
    with iosonar.open(asap, from_s=10, to_s=20) as run:
        assert sorted(run.table.number.to_pyarrow().to_pylist()) == list(range(9, 19))


def test_a_report_of_a_window_says_so(trace: Path, tmp_path: Path) -> None:
    assert report(trace, "--from", "2m", "--to", "140", "--out", tmp_path) == 0
    page = (tmp_path / "t.calls.from-120s-to-140s.report.html").read_text()
    assert re.search(r"Only calls made from 2.min to 2.min.20.s\.", page) and re.search(r"20.calls of 1.thread", page)


def test_sides_of_a_comparison_have_the_same_window(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [write_run(tmp_path / f"{name}.calls-run.parquet") for name in "ab"]
    assert compare(trace, *runs, "--from", "10", "--to", "20", "--json", "--out", tmp_path) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["window"] == {"from_s": 10.0, "to_s": 20.0}
    # Of the trace, the calls that the runs made in the window, though its own times are others.
    assert [side["calls"] for side in found["sides"]] == [10, 10, 10]
    mean = next(one for one in found["comparisons"][0]["differences"] if one["metric"] == "mean")
    assert (mean["a_ns"], mean["b_ns"]) == (pytest.approx(1e6), pytest.approx(2e6))
    (page,) = tmp_path.glob("*.compare.html")
    assert re.search(r"Only calls due from 10.s to 20.s\.", page.read_text())


def test_throughput_of_a_window_is_that_of_the_window(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [write_run(tmp_path / f"{name}.calls-run.parquet") for name in "ab"]
    assert compare(*runs, "--from", "30", "--fail-if", "iops < 0.9/s", "--out", tmp_path) == 0
    assert compare(*runs, "--from", "30", "--fail-if", "iops < 1.2/s", "--out", tmp_path, "--overwrite") == 3


def test_the_warm_up_of_a_run_is_left_out(tmp_path: Path) -> None:
    rows = [replayed(at, "read", at * S / 100, 0, path="/a") for at in range(40_000)]
    for at, row in enumerate(rows):
        row["completed_ns"] = row["issued_ns"] + (5_000_000 if at < 4000 else 50_000)
    run = write_calls_run(tmp_path / "r.calls-run.parquet", rows, run={"options": {"timing": "exact"}})
    with iosonar.open(run, skip_warm_up=True) as found:
        assert found.summary.latency.max_s == pytest.approx(50e-6, rel=0.02)
        assert 30_000 < found.summary.rows <= 36_000
        assert "without-warm-up" in found.study.stem


def test_sql_has_the_calls_of_the_window(trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = write_run(tmp_path / "r.calls-run.parquet")
    query = "SELECT count(*) AS n FROM in_window"
    assert sql(trace, query, "--from", "120", "--to", "140", "--format", "csv") == 0
    assert capsys.readouterr().out == "n\n20\n"
    assert sql(run, query, "--from", "10", "--format", "csv") == 0
    assert capsys.readouterr().out == "n\n50\n"
    load = write_load(tmp_path / "l.load.parquet", [load_row(at=at * 1_000_000_000) for at in range(5)])
    both = "SELECT (SELECT count(*) FROM in_window) AS r, (SELECT count(*) FROM calls_run_in_window) AS c"
    assert sql(load, run, both, "--to", "3", "--format", "csv") == 0
    assert capsys.readouterr().out == "r,c\n3,3\n"
