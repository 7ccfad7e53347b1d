"""The library: `import iosonar`."""

from __future__ import annotations

import ast
import inspect
import json
import os
import sys
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pytest
from binary import TOP
from call_factory import read, replayed, write_calls, write_calls_run
from factory import MS, load_row, run_row, write_load, write_run
from made_run import made_run

import iosonar
from iosonar.table.embedded import Embedded

ROWS = [run_row(n, scheduled=n * MS, latency=MS) for n in range(2000)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_run(tmp_path / "db.replay.parquet", ROWS)


def public() -> list[tuple[str, Any]]:
    """All public functions, classes, and methods and properties of these classes."""
    found = []
    for name in iosonar.__all__:
        each = getattr(iosonar, name)
        if not callable(each):
            continue
        found.append((name, each))
        if inspect.isclass(each):
            members = inspect.getmembers(each, lambda member: callable(member) or isinstance(member, property))
            own = [(inner, member) for inner, member in members if _is_own(each, inner) and not inner.startswith("_")]
            found += [(f"{name}.{inner}", member) for inner, member in own]
    return found


def _is_own(each: type, name: str) -> bool:
    return any(name in base.__dict__ for base in each.__mro__ if base.__module__.startswith("iosonar"))


@pytest.mark.parametrize(("name", "each"), public(), ids=lambda value: value if isinstance(value, str) else "")
def test_every_public_name_has_a_docstring(name: str, each: Any) -> None:
    text = inspect.getdoc(each)
    assert text and not text.startswith(f"{name}("), "a docstring that is not generated"


def test_a_run_has_its_numbers_and_its_verdict(path: Path) -> None:
    with iosonar.open(path) as run:
        assert (run.summary.rows, run.summary.latency.p50_s, run.summary.noun) == (2000, 0.001, "requests")
        assert run.verdict.grade is iosonar.Grade.GOOD and not run.verdict.reasons
        assert run.verdict["errors"].values == {"requests": 0}
        assert run.info.run.target is not None and run.info.run.target.path == "/dev/loop9"
        html = run._repr_html_()
    assert "2,000" in html and "good" in html and "db" in html


def test_rows_are_data_frames_in_the_order_of_the_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with iosonar.open(path) as run:
        assert run.table.filter(run.table.request > 1990).count().to_pyarrow().as_py() == 9
        assert run.to_arrow("request").to_pydict() == {"request": list(range(2000))}
        assert list(run.to_pandas("op", "latency_ns").columns) == ["op", "latency_ns"]
        with pytest.raises(iosonar.UserError, match="no column opp; the columns are source"):
            run.to_arrow("opp")
        monkeypatch.setitem(sys.modules, "polars", None)
        with pytest.raises(iosonar.UserError, match="polars is not installed: `pip install polars`"):
            run.to_polars()


def test_diagrams_are_drawn_on_axes(tmp_path: Path) -> None:
    path = write_run(tmp_path / "a.replay.parquet", made_run(500, seconds=5))
    figure, axes = plt.subplots(1, 2)
    try:
        with iosonar.open(path) as run:
            for name, ax in zip(("latency.realtime", "latency.bins"), axes, strict=True):
                assert run.draw(name, ax=ax) is ax
            with pytest.raises(iosonar.UsageError, match="no diagram is called"):
                run.draw("latency.realtim")
            with pytest.raises(iosonar.UserError, match=r"streams\.rate not drawn"):
                run.figure("streams.rate")
        assert axes[0].get_title().startswith("Latency over issue time")
        assert axes[0].images and axes[1].get_legend()
        figure.canvas.draw()
    finally:
        plt.close(figure)


def test_diagrams_of_any_size_share_the_rows(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[int] = []
    keep = Embedded.keep

    def counted(self: Embedded, columns: Any, rows: int, parts: Any = ()) -> Any:
        kept.append(rows)
        return keep(self, columns, rows, parts)

    monkeypatch.setattr(Embedded, "keep", counted)
    with iosonar.open(path) as run:
        for size in ("1200x800", "800x600", "4k"):
            run.figure("latency.bins", size)
        assert run.summary.rows == 2000 and kept == [2000]


def test_the_report_is_that_of_the_command(path: Path, tmp_path: Path) -> None:
    with iosonar.open(path) as run:
        written = run.report(tmp_path, "svg", only=["overview"])
    assert [each.name for each in written] == [
        "db.g000.overview.thrp.svg",
        "db.g000.overview.thrs.svg",
        "db.verdict.json",
    ]
    assert json.loads(written[-1].read_text())["grade"] == "good"


def test_a_load_has_no_verdict(tmp_path: Path) -> None:
    path = write_load(tmp_path / "a.load.parquet", [load_row(n * MS) for n in range(11)])
    with iosonar.open(path) as load:
        assert (load.summary.rows, load.summary.demanded_s, load.summary.delay) == (11, 0.01, None)
        with pytest.raises(iosonar.UserError, match="a load: there is no verdict on it"):
            _ = load.verdict


def test_calls_are_opened_as_requests_are(tmp_path: Path) -> None:
    trace = write_calls(tmp_path / "t.calls.parquet", [read(n * 100, "/f", 4096 * n, 4096) for n in range(50)])
    rows = [replayed(n, "read", n * 100, result=4096, expected_result=4096) for n in range(50)]
    path = write_calls_run(tmp_path / "r.calls-run.parquet", rows, run={"trace": str(trace), "options": {}})
    with iosonar.open(path) as run:
        assert (run.summary.noun, run.summary.rows, run.summary.reads) == ("calls", 50, 50)
        assert run.verdict.grade is iosonar.Grade.GOOD and run.to_arrow().num_rows == 50
        assert "50" in run._repr_html_()
    with iosonar.compare(trace, path) as compared:
        assert [each.letter for each in compared.against] == ["B"]
        assert "throughput" in compared.to_arrow("metric")["metric"].to_pylist()


def test_runs_are_compared(tmp_path: Path) -> None:
    def side(name: str, latency: int) -> list[Path]:
        return [
            write_run(
                tmp_path / f"{name}{n}.replay.parquet",
                [run_row(k, scheduled=k * MS, latency=latency + k % 7 * n * 1000) for k in range(2000)],
                run={"started_unix_ns": latency + n},
                span={"first_ns": 0, "last_ns": 2000 * MS},
            )
            for n in range(1, 4)
        ]

    with iosonar.compare(side("a", MS), side("b", 2 * MS)) as compared:
        assert compared.holds("p50 > +50%") == {"B": "holds"}
        assert any("slower" in text for text in compared.sentences)
        found = {row["metric"]: row for row in compared.to_arrow().to_pylist()}
        assert found["p50"]["b"] == pytest.approx(0.002, rel=0.05) and found["p50"]["side"] == "B"
        assert "<table>" in compared._repr_html_()
        assert [each.name for each in compared.report(tmp_path)] == ["a1-3.compare.html"]
    with pytest.raises(iosonar.UsageError, match="compare needs two sides"):
        iosonar.compare(tmp_path / "a1.replay.parquet")


def test_an_open_run_is_a_side_and_stays_open(path: Path, tmp_path: Path) -> None:
    other = write_run(tmp_path / "other.replay.parquet", ROWS, run={"started_unix_ns": 5})
    with iosonar.open(path) as run:
        with iosonar.compare(run, other) as compared:
            assert "no claim" in " ".join(compared.sentences)
        assert run.summary.rows == 2000


def test_what_cannot_be_opened_says_why(tmp_path: Path) -> None:
    with pytest.raises(iosonar.UserError, match="No such file"):
        iosonar.open(tmp_path / "missing")
    load = write_load(tmp_path / "a.load.parquet", [load_row()])
    with pytest.raises(iosonar.UserError, match="make a separate report of each"):
        iosonar.open(load, write_run(tmp_path / "a.replay.parquet", ROWS[:5]))
    with pytest.raises(iosonar.UsageError, match="no device is called 'sdz'"), iosonar.open(load, device="sdz") as run:
        _ = run.table


def test_the_notebook_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    notebook = json.loads((TOP / "examples/library.ipynb").read_text())
    names: dict[str, Any] = {}
    shown = []
    for cell in (cell for cell in notebook["cells"] if cell["cell_type"] == "code"):
        assert cell["outputs"] == [] and cell["execution_count"] is None, "clear its outputs"
        body = ast.parse("".join(cell["source"])).body
        last = body.pop() if isinstance(body[-1], ast.Expr) else None
        exec(compile(ast.Module(body, []), "<cell>", "exec"), names)
        if isinstance(last, ast.Expr):
            shown.append(eval(compile(ast.Expression(last.value), "<cell>", "eval"), names))
    plt.close("all")
    assert any(hasattr(value, "_repr_html_") for value in shown)


def test_the_manual_has_at_most_600_words() -> None:
    assert len((TOP / "docs/library.md").read_text().split()) <= 600
