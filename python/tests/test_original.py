"""The original beside the replay, against independent computations on arrays."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from factory import LOAD_SCHEMA, MS, S, load_row, write_load, write_run
from hypothesis import given, settings
from hypothesis import strategies as st
from made_run import made_run
from scipy import stats
from test_compare import compare
from test_report import report

from iosonar import open as open_files
from iosonar.diagrams import CATALOGUE
from iosonar.diagrams.original import DIAGRAMS
from iosonar.errors import UserError
from iosonar.figures.model import Cloud, Empty, Figure, NoteKind
from iosonar.library.run import Run
from iosonar.quantities.at_issue import at_issue
from iosonar.report.answers import Asked, did_load_or_storage_change
from iosonar.report.run_page import run_page
from iosonar.report.selection import Selection
from iosonar.study.original import LAST_SECOND, QUEUE, RESPONSE, distances, original_beside, seen_at_issue
from iosonar.study.requests import Study

ROWS = 4000
LATER = 250 * S
"""When the recording began before the first request of the run."""


def made(directory: Path, slower: float = 2.0, first: int = 0, **load: Any) -> tuple[Path, Path]:
    """A load with latencies, and a run of it from its request `first` on, which is so much slower."""
    table = made_run(ROWS, seconds=20).sort_by("request")
    latency = table["completed_ns"].to_numpy() - table["issued_ns"].to_numpy()
    noise = np.random.default_rng(5).lognormal(0, 0.2, ROWS)
    columns: dict[str, list[Any]] = {
        "at_ns": (table["scheduled_ns"].to_numpy() + LATER).tolist(),
        "device": [0] * ROWS,
        "sector": table["source_sector"].to_pylist(),
        "sectors": table["sectors"].to_pylist(),
        "op": table["op"].to_pylist(),
        "flags": [0] * ROWS,
    }
    rows = pa.table({name: pa.array(columns[name]).cast(LOAD_SCHEMA.field(name).type) for name in LOAD_SCHEMA.names})
    rows = rows.append_column("latency_ns", pa.array((latency * noise / slower).astype(np.int64).tolist(), pa.int64()))
    rows = rows.append_column("queued_ns", pa.array([1000] * ROWS, pa.int64()))
    rows = rows.append_column("pid", pa.array([n % 7 + 100 for n in range(ROWS)], pa.int32()))
    rows = rows.append_column("process", pa.array([f"db{n % 7}" for n in range(ROWS)]))
    original = write_load(directory / "production.load.parquet", rows, **load)
    run = table.slice(first).sort_by("completed_ns")
    return original, write_run(directory / "first.replay.parquet", run, run={"load": str(original)})


def arrays(path: Path, *names: str) -> list[np.ndarray[Any, Any]]:
    with path.open("rb") as file:
        table = pa.parquet.read_table(file)
    return [table[name].to_numpy() for name in names]


def study_of(run: Run) -> Study:
    assert isinstance(run.study, Study)
    return run.study


def seen_by_each(issued: np.ndarray[Any, Any], completed: np.ndarray[Any, Any]) -> tuple[list[int], list[int]]:
    """The slow and obvious model: the queue length and the requests of the last second at each issue."""
    order = sorted(range(len(issued)), key=lambda n: issued[n])
    queue, second = [], []
    for place, number in enumerate(order):
        before = order[: place + 1]
        at = issued[number]
        queue.append(sum(max(completed[n], issued[n] + 1) > at for n in before))
        second.append(sum(issued[n] > at - S for n in before))
    return sorted(queue), sorted(second)


@settings(max_examples=30)
@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 30)), min_size=1, max_size=40),
    st.sampled_from([1, S // 10]),
)
def test_what_requests_see_is_that_of_a_slow_model(times: list[tuple[int, int]], unit: int) -> None:
    import ibis

    issued, completed = (np.array(each) * unit for each in ([at for at, _ in times], [at + took for at, took in times]))
    columns = {"source": np.zeros(len(times), np.int32), "scheduled_ns": issued, "issued_ns": issued}
    table = ibis.memtable(pa.table(columns | {"completed_ns": completed}))
    found = at_issue(table).to_pyarrow()
    queue, second = seen_by_each(issued, completed)
    assert sorted(found["queue"].to_pylist()) == queue
    assert sorted(found["last_second"].to_pylist()) == second


def test_distances_are_those_of_scipy(tmp_path: Path) -> None:
    original, path = made(tmp_path)
    took, queued = arrays(original, "latency_ns", "queued_ns")
    (run_took,) = [np.subtract(*arrays(path, "completed_ns", "issued_ns"))]
    with open_files(path) as run:
        study = study_of(run)
        found = {each.quantity: each for each in distances(study)}
        original_side = original_beside(study)
        assert original_side
        seen = [seen_at_issue(each).to_pyarrow() for each in (original_side.study, study)]
    values = {RESPONSE: (took + queued, run_took)}
    for quantity in (QUEUE, LAST_SECOND):
        values[quantity] = (seen[0][quantity.column].to_numpy(), seen[1][quantity.column].to_numpy())
    for quantity, (a, b) in values.items():
        gap = found[quantity].gap
        # Bins of latency are 0.23 % wide.
        assert gap.share == pytest.approx(stats.ks_2samp(a, b).statistic, abs=0.01)
        assert gap.low <= gap.share <= gap.high
        mean = next(one for one in found[quantity].differences if one.metric == "mean")
        assert (mean.a_ns, mean.b_ns) == pytest.approx((a.mean(), b.mean()))
        assert mean.low <= mean.change <= mean.high
    assert [one.metric for one in found[RESPONSE].differences] == ["p50", "p90", "p95", "p99", "mean"]
    assert [one.metric for one in found[QUEUE].differences] == ["p50", "p95", "p99", "mean"]


def test_a_longer_queue_alone_is_no_change_of_the_storage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, path = made(tmp_path)
    with open_files(path) as run:
        study = study_of(run)
        unclear = [
            replace(one, differences=[replace(each, low=-0.1, high=0.1) for each in one.differences])
            if one.quantity is RESPONSE
            else replace(
                one, differences=[replace(each, low=-0.5 if each.metric == "p50" else 0.5) for each in one.differences]
            )
            for one in distances(study)
        ]
        monkeypatch.setattr("iosonar.report.answers.distances", lambda study: unclear)
        text = did_load_or_storage_change(Asked(study)).text
    assert text.startswith("Not known: latency did not clearly change from the original, but queue length at p95 ")
    assert text.endswith("; the load is the same.")


def test_an_original_has_the_times_of_the_run(tmp_path: Path) -> None:
    _, path = made(tmp_path, first=1000)
    with open_files(path) as run:
        original = original_beside(study_of(run))
        assert original and original.is_by_row and original.keeps_times
        assert original.study.span.requests == ROWS - 1000 and original.left_out == 1000
        assert original.study.span.first_scheduled_ns == study_of(run).span.first_scheduled_ns
        assert original.study.span.last_scheduled_ns == study_of(run).span.last_scheduled_ns


def test_the_times_of_an_original_are_divided_by_the_speed_up(tmp_path: Path) -> None:
    original, _ = made(tmp_path)
    at, took, queued = arrays(original, "at_ns", "latency_ns", "queued_ns")
    rows = made_run(ROWS, seconds=20).to_pylist()
    for row in rows:
        took_ns = row["completed_ns"] - row["issued_ns"]
        delay_ns = row["issued_ns"] - row["scheduled_ns"]
        row["scheduled_ns"] = round(row["scheduled_ns"] / 4)
        row["issued_ns"] = row["scheduled_ns"] + delay_ns
        row["completed_ns"] = row["issued_ns"] + took_ns
    run_of = {"load": str(original), "options": {"speedup": 4.0}}
    path = write_run(tmp_path / "fast.replay.parquet", rows, run=run_of)
    with open_files(path) as run:
        study = study_of(run)
        beside = original_beside(study)
        assert beside and beside.is_by_row and not beside.keeps_times
        span, own = beside.study.span, study.span
        assert span.first_scheduled_ns == own.first_scheduled_ns
        assert span.last_scheduled_ns == pytest.approx(own.last_scheduled_ns, abs=1)
        issued = np.sort(beside.study.table.issued_ns.to_pyarrow().to_numpy())
        assert RESPONSE.distribution(beside.study).mean == pytest.approx((took + queued).mean(), rel=1e-12)
        assert "The times of production are divided by 4, its latencies are not" in beside.notes
    in_order = np.sort((at - at.min()) / 4)
    assert issued - issued[0] == pytest.approx(in_order, abs=1)


@pytest.mark.parametrize(("request_time", "queued"), [("queued", 1000), ("issued", 0)])
def test_time_in_the_queue_belongs_to_the_latency(tmp_path: Path, request_time: str, queued: int) -> None:
    original, path = made(tmp_path, request_time=request_time)
    (took,) = arrays(original, "latency_ns")
    with open_files(path) as run:
        beside = original_beside(study_of(run))
        assert beside
        found = RESPONSE.distribution(beside.study)
    assert found.mean == pytest.approx((took + queued).mean(), rel=1e-12)


def test_requests_are_paired_by_their_number(tmp_path: Path) -> None:
    original, path = made(tmp_path, slower=1.1)
    took, queued = arrays(original, "latency_ns", "queued_ns")
    number, completed, issued = arrays(path, "request", "completed_ns", "issued_ns")
    with open_files(path) as run:
        figure = run.figure("original.requests")
    cloud = figure.layers[0]
    assert isinstance(cloud, Cloud) and cloud.requests == ROWS
    slower = (completed - issued > (took + queued)[number]).mean() * 100
    (text,) = [note.text for note in figure.notes if "took longer" in note.text]
    assert text.startswith(f"{slower:.1f} % of {ROWS:,} requests took longer")


def test_the_load_that_a_run_names_is_its_original(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    original, path = made(tmp_path)
    names = {diagram.name for diagram in DIAGRAMS}
    for named, is_beside in ((None, True), ("none", False)):
        with open_files(path, original=named) as run:
            assert (names <= set(run.diagrams)) is is_beside
    elsewhere = tmp_path / "directory" / "elsewhere.load.parquet"
    elsewhere.parent.mkdir()
    original.rename(elsewhere)
    with open_files(path) as run:
        assert not names & set(run.diagrams)
    assert report(path, "--out", tmp_path, "--only", "original", "--original", elsewhere) == 0
    page = (tmp_path / "first.report.html").read_text()
    # A slice of time has too few requests for a p99.
    assert all(f'id="figure-{name}"' in page for name in names - {"original.p99"})
    assert "Distance of the replay from the original" in page
    assert capsys.readouterr().err == "original.p99 not drawn: too few requests in each slice of time\n"


def test_another_load_is_no_original_by_itself(tmp_path: Path) -> None:
    original, path = made(tmp_path)
    rows = pa.Table.from_pylist([load_row(n * MS, sector=n) for n in range(ROWS)], schema=LOAD_SCHEMA)
    write_load(original, rows.append_column("latency_ns", pa.array([MS] * ROWS, pa.int64())))
    with open_files(path) as run:
        assert original_beside(study_of(run)) is None
        assert "original.latency" not in run.diagrams
    with open_files(path, original=original) as run:
        found = original_beside(study_of(run))
        assert found and not found.is_by_row
        figure = run.figure("original.latency")
        assert any("not row by row" in note.text for note in figure.notes if note.kind is NoteKind.INFO)
        with pytest.raises(UserError, match="not row by row"):
            run.figure("original.requests")


def test_an_original_needs_latencies(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, path = made(tmp_path)
    plain = write_load(tmp_path / "plain.load.parquet", [load_row(n) for n in range(ROWS)])
    for other, why in ((plain, "has no latencies"), (path, "not a load"), (tmp_path / "none.parquet", "No such file")):
        assert report(path, "--original", other, "--out", tmp_path) == 1
        assert why in capsys.readouterr().err
    assert report(plain, "--original", path, "--out", tmp_path) == 2
    assert "--original needs a run" in capsys.readouterr().err


def test_a_load_of_unknown_latencies_is_no_original(tmp_path: Path) -> None:
    original, path = made(tmp_path)
    with original.open("rb") as file:
        rows = pa.parquet.read_table(file)
    rows = rows.drop_columns("latency_ns").append_column("latency_ns", pa.array([None] * ROWS, pa.int64()))
    write_load(original, rows)
    with open_files(path) as run:
        assert original_beside(study_of(run)) is None
    with pytest.raises(UserError, match="has no latencies"), open_files(path, original=original) as run:
        study_of(run)


def test_without_an_original_its_diagrams_say_how(tmp_path: Path) -> None:
    path = write_run(tmp_path / "a.replay.parquet", made_run(500, seconds=5))
    with open_files(path) as run:
        found = [diagram.build(study_of(run)) for diagram in DIAGRAMS]
    assert all(isinstance(each, Empty) and "--original" in each.reason for each in found)


@pytest.mark.parametrize(
    ("options", "words"),
    [({"asap": True}, "as fast as possible"), ({"closed": True}, "closed loop"), ({"speedup": 2.0}, "2 times as fast")],
)
def test_other_times_than_the_original_are_said(tmp_path: Path, options: dict[str, Any], words: str) -> None:
    original, path = made(tmp_path)
    write_run(path, made_run(ROWS, seconds=20), run={"load": str(original), "options": options})
    with open_files(path) as run:
        found = original_beside(study_of(run))
        assert found and not found.keeps_times
        assert any(words in note.text for note in run.figure("original.rate").notes)


def test_a_load_with_latencies_is_a_side(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    original, path = made(tmp_path)
    took, queued = arrays(original, "latency_ns", "queued_ns")
    # Whatever the order.
    for words in ((original, path), (path, original)):
        assert compare(*words, "--out", tmp_path) == 0
        text = capsys.readouterr().out
        assert "A · production: the original, 4,000 requests" in text and "B against A, the original: no claim." in text
        assert "no verdict and no delays" in text and "of the 4,000 requests that completed on both sides" in text
        assert "differ in" not in text
    page = (tmp_path / "production.load.compare.html").read_text()
    assert all(f'id="figure-original.{name}"' in page for name in ("queue", "rate", "requests", "queue.time"))
    assert compare(original, path, "--out", tmp_path, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [side.get("original") for side in found["sides"]] == [True, None]
    mean = next(one for one in found["comparisons"][0]["differences"] if one["metric"] == "mean")
    assert mean["a_ns"] == pytest.approx((took + queued).mean())
    assert found["comparisons"][0]["same_load"] and found["comparisons"][0]["pairing"] == "paired"


def test_a_comparison_has_one_original(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    original, path = made(tmp_path)
    other = tmp_path / "other.load.parquet"
    other.write_bytes(original.read_bytes())
    for words in (
        (original, other),
        (original, other, "vs", path),
        (original, other, path),
    ):
        assert compare(*words, "--out", tmp_path) == 1
        assert "a side of its own" in capsys.readouterr().err
    again = write_run(tmp_path / "again.replay.parquet", made_run(ROWS, seconds=20))
    assert compare(original, path, again, "--out", tmp_path) == 0
    assert "C · again" in capsys.readouterr().out


def test_the_page_of_a_load_begins_with_its_sonar(tmp_path: Path) -> None:
    original, _ = made(tmp_path)
    with open_files(original) as load:
        study = study_of(load)
        diagrams = Selection().choose(CATALOGUE, study.requests)
        page = run_page(study, diagrams)
        built = next(each for each in diagrams if each.name == "latency.realtime").build(study)
    sonar = page.sections[0].figures[0]
    assert (sonar.name, sonar.title) == ("latency.realtime", "Recorded latency over time")
    assert not [note for note in sonar.notes if note.kind is NoteKind.VERDICT], "a load has no verdict"
    assert isinstance(built, Figure) and isinstance(built.layers[0], Cloud) and built.layers[0].requests == ROWS


def test_the_slowest_requests_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    original, path = made(tmp_path)
    number, completed, issued = arrays(path, "request", "completed_ns", "issued_ns")
    order = np.argsort(-(completed - issued), kind="stable")[:3]
    with open_files(path) as run:
        rows = run.slowest(3)
    assert [row["request"] for row in rows] == [str(number[place]) for place in order]
    assert [row["process"] for row in rows] == [f"db{number[place] % 7} ({number[place] % 7 + 100})" for place in order]
    assert set(rows[0]) == {
        "request",
        "time",
        "operation",
        "size",
        "sector",
        "latency",
        "delay",
        "in the original",
        "process",
    }
    few = ("--out", tmp_path, "--only", "rqsize.bins")
    assert report(path, *few, "--slowest", 3) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[3] == "The 3 slowest requests:" and [line.split()[0] for line in lines[5:]] == [
        str(number[place]) for place in order
    ]
    # Without the option, standard output has only paths.
    assert report(original, *few) == 0
    assert capsys.readouterr().out.splitlines() == [str(tmp_path / "production.load.report.html")]
    assert "The 10 slowest requests" in (tmp_path / "production.load.report.html").read_text()
    assert report(original, *few, "--slowest", "0") == 0
    assert "Slowest requests" not in (tmp_path / "production.load.report.html").read_text()


def test_figures_of_originals_have_both_sides(tmp_path: Path) -> None:
    _, path = made(tmp_path)
    with open_files(path, each_device=True) as run:
        found = [diagram.build(study_of(run)) for diagram in DIAGRAMS]
    figures = [figure for figure in found if isinstance(figure, Figure)]
    assert len(figures) == len(DIAGRAMS) - 1 and all("production" in each.of and "first" in each.of for each in figures)
