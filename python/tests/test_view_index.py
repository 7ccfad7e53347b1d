"""The index of a view, compared with slow models."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from factory import MS, S, load_row, run_row, write_load, write_run
from made_run import made_run
from numpy.typing import NDArray
from views import viewed

from iosonar.errors import UserError
from iosonar.figures.model import Cloud, Figure, Steps
from iosonar.view import buckets, build, figures, index, pyramid, raster
from iosonar.view.figures import FLYING, THROUGHPUT
from iosonar.view.growing import NEVER, Growing
from iosonar.view.index import index_of
from iosonar.view.lattice import Window
from iosonar.view.page import View
from iosonar.view.scales import COMPLETED, DELAY, LATENCY, MEASURES, POSITION, Order

ROWS = 6000


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run whose rows are in any order, as those of a recovered one may be."""
    table = made_run(ROWS, seconds=10)
    return write_run(tmp_path / "made.replay.parquet", table.take(np.random.default_rng(2).permutation(ROWS)))


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes at which a small run is divided as a large one."""
    for module, name, value in (
        (buckets, "IN_BUCKET", 700),
        (build, "AT_ONCE", 500),
        (pyramid, "AT_ONCE", 900),
        (pyramid, "MAX_SLOTS", 1 << 17),
        (raster, "FEW", 300),
        (raster, "AT_ONCE", 250),
        (figures, "FEW", 300),
        (index, "SAMPLED_FROM", 1),
    ):
        monkeypatch.setattr(module, name, value)


def columns(run: Path) -> dict[str, NDArray[np.int64]]:
    table = pa.parquet.read_table(run)
    return {name: table[name].to_numpy() for name in ("scheduled_ns", "issued_ns", "completed_ns", "sector")}


def cloud_of(figure: Figure) -> Cloud:
    [cloud] = figure.layers
    assert isinstance(cloud, Cloud)
    return cloud


def steps_of(figure: Figure) -> list[Steps]:
    return [layer for layer in figure.layers if isinstance(layer, Steps)]


def test_requests_are_sorted_by_issue_and_by_completion(run: Path, tmp_path: Path, small: None) -> None:
    found = columns(run)
    order = np.argsort(found["issued_ns"], kind="stable")
    with viewed(run, tmp_path / "caches") as view:
        requests = view.figures.index.requests
        assert (requests.begin == found["issued_ns"][order]).all()
        assert (requests.begin + requests.latency == found["completed_ns"][requests.place]).all()
        assert (requests.begin - requests.delay == found["scheduled_ns"][requests.place]).all()
        assert (requests.sector == found["sector"][requests.place]).all()
        assert sorted(requests.place.tolist()) == list(range(ROWS))
        assert (requests.end == np.sort(found["completed_ns"])).all()
        latencies = (found["completed_ns"] - found["issued_ns"])[np.argsort(found["completed_ns"], kind="stable")]
        assert sorted(requests.latency_of_end.tolist()) == sorted(latencies.tolist())


@pytest.mark.parametrize("measure", MEASURES, ids=lambda each: each.name)
def test_rasters_have_the_requests_of_any_window(measure: Any, run: Path, tmp_path: Path, small: None) -> None:
    chance = np.random.default_rng(3)
    with viewed(run, tmp_path / "caches") as view:
        drawn, requests = view.figures, view.figures.index.requests
        x, y = drawn.axes(measure.name)
        times = requests.times(measure.order, slice(None)) / 1e9
        values = requests.values(measure, slice(None)) * raster.unit_of(measure)
        of_levels = 0
        for share in (1, 0.6, 0.3, 0.1, 0.02):
            for _ in range(4):
                low = x.low + chance.uniform(0, (x.high - x.low) * (1 - share))
                figure = drawn.window(measure.name, Window(low, low + (x.high - x.low) * share, y.low, y.high))
                cloud = cloud_of(figure)
                inside = (times >= figure.x.low) & (times < figure.x.high)
                count = int(inside.sum())
                # Requests of a level are in a bin, so those at an end may be in or out.
                off = 0
                if count > raster.FEW:
                    each = (requests.high_ns - requests.low_ns) / pyramid.WANTED_BINS / 1e9
                    ends = [np.abs(times - end) < each for end in (figure.x.low, figure.x.high)]
                    off, of_levels = int(np.sum(ends)), of_levels + 1
                assert abs(cloud.requests - count) <= off
                # The middle of what is drawn is that of the requests.
                rows = np.concatenate([np.repeat(part.rows, part.counts) for part in cloud.parts])
                share_of = (np.median(rows) + 0.5) / cloud.up
                if count > 50:
                    shares = [figure.y.share(max(each, figure.y.low)) for each in values[inside]]
                    assert abs(float(np.median(shares)) - share_of) < 2 / cloud.up + 0.01
        assert of_levels > 5


def test_a_window_is_divided_into_the_dots_of_its_plot(run: Path, tmp_path: Path) -> None:
    with viewed(run, tmp_path / "caches") as view:
        requests = view.figures.index.requests
        _, y = view.figures.axes(LATENCY.name)
        figure = view.figures.window(LATENCY.name, Window(2.0, 4.0, y.low, y.high, 800, 284))
        cloud = cloud_of(figure)
        dot = (4.0 - 2.0) / 800 * view.figures.dot(LATENCY.name, Window(2.0, 4.0, y.low, y.high))
        assert (figure.x.high - figure.x.low) / cloud.across == pytest.approx(dot)
        assert figure.x.low / dot == pytest.approx(round(figure.x.low / dot)), "dots keep their places in a pan"
        inside = (requests.begin / 1e9 >= figure.x.low) & (requests.begin / 1e9 < figure.x.high)
        model = np.bincount(((requests.begin[inside] / 1e9 - figure.x.low) / dot).astype(int), minlength=cloud.across)
        columns_ = np.zeros(cloud.across, int)
        for part in cloud.parts:
            np.add.at(columns_, part.columns, part.counts)
        assert np.abs(columns_ - model).sum() <= 2, "of floating-point numbers at the ends of dots"


def test_requests_in_flight_are_those_of_a_slow_count(run: Path, tmp_path: Path, small: None) -> None:
    with viewed(run, tmp_path / "caches") as view:
        requests = view.figures.index.requests
        begin, end = requests.begin, requests.begin + requests.latency.astype(np.int64)
        for low, high in ((0, 10 * S), (2 * S, 2 * S + 20 * MS), (9 * S, 12 * S), (11 * S, 12 * S)):
            rows = requests.overlapping(low, high)
            assert rows.tolist() == np.flatnonzero((begin < high) & (end >= low)).tolist()
        for window in (Window(0, 10, 0, 1), Window(4, 5, 0, 1), Window(4, 4.01, 0, 1)):
            [steps] = steps_of(view.figures.window(FLYING, window))
            for first, last, level in list(zip(steps.edges, steps.edges[1:], steps.y, strict=False))[
                :: len(steps.y) // 7
            ]:
                times = np.unique(np.concatenate([begin[(begin >= first * 1e9) & (begin < last * 1e9)], [first * 1e9]]))
                assert level >= max(int(((begin <= at) & (end > at)).sum()) for at in times) - 1
                assert level <= max(int(((begin <= at + 1) & (end > at - 1)).sum()) for at in times) + 1
        [issued, completed] = steps_of(view.figures.window(THROUGHPUT, Window(0, 10, 0, 1)))
        for steps, number in ((issued, (begin < 10 * S).sum()), (completed, (end < 10 * S).sum())):
            total = float((steps.y * np.diff(steps.edges)).sum())
            assert total == pytest.approx(ROWS, abs=float(ROWS - number + 1))


def test_single_requests_are_bars_from_issue_to_completion(tmp_path: Path) -> None:
    rows = [
        run_row(0, scheduled=0, delay=MS, latency=9 * MS, sector=80),
        run_row(1, scheduled=2 * MS, latency=None, outcome="unfinished"),
        run_row(2, scheduled=3 * MS, latency=MS, op="write"),
        run_row(3, scheduled=90 * MS, latency=MS),
        run_row(4, scheduled=5 * MS, issued_ns=None, completed_ns=None, outcome="dropped"),
    ]
    with viewed(write_run(tmp_path / "few.replay.parquet", rows), tmp_path / "caches") as view:
        assert view.figures.index.requests.not_issued == 1
        assert "4 requests" in view.lead()[0] and "1 more were never issued" in view.lead()[0]
        bars = view.figures.bars(POSITION.name, Window(0.0025, 0.02, 0, 1))
        assert bars and bars.row.tolist() == [0, 2], "one was issued before the window and completed in it"
        assert bars.begin.tolist() == pytest.approx([0.001, 0.003])
        assert bars.end.tolist() == pytest.approx([0.010, 0.004])
        late = view.figures.bars(DELAY.name, Window(0.0, 0.02, 0, 1))
        assert late and late.begin[0] == 0 and late.end[0] == pytest.approx(0.001), "from due to issue"
        latency = view.figures.bars(LATENCY.name, Window(0.0, 0.02, 0, 1))
        assert latency and latency.as_json()["y"][1] is None and latency.as_json()["end"][1] is None
        assert latency.kind.tolist() == [0, 3, 1]


def test_an_index_is_kept_until_the_table_changes(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    caches = tmp_path / "caches"
    with viewed(run, caches):
        pass
    [kept] = caches.iterdir()
    made = kept.stat().st_ino
    with viewed(run, caches):
        assert kept.stat().st_ino == made
    os.utime(run, ns=(1, 1))
    with viewed(run, caches):
        assert [each.name for each in caches.iterdir()] == [kept.name]
        assert kept.stat().st_ino != made
    (kept / build.ABOUT).write_text("{")
    with viewed(run, caches) as view:
        assert len(view.figures.index.requests) == ROWS, "a damaged index is made again"
    other = run.rename(tmp_path / "other.replay.parquet")
    with viewed(other, caches):
        assert kept not in caches.iterdir(), "the index of a table that is gone is removed"
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(UserError, match="use --index DIRECTORY"), viewed(other, blocked / "x"):
        pass
    assert index_of.__module__ == "iosonar.view.index"


def test_a_load_has_positions_and_recorded_latencies(tmp_path: Path) -> None:
    rows = [load_row(at * MS, sector=8 * at) for at in range(100)]
    with viewed(write_load(tmp_path / "a.load.parquet", rows), tmp_path / "caches") as view:
        assert view.figures.names == (POSITION.name, THROUGHPUT)
    types = pa.schema(
        [(name, pa.int64()) for name in ("at_ns", "sector", "sectors", "latency_ns")] + [("op", pa.string())]
    )
    recorded = pa.Table.from_pylist([row | {"latency_ns": MS} for row in rows], schema=types)
    with viewed(write_load(tmp_path / "b.load.parquet", recorded), tmp_path / "caches") as view:
        assert view.figures.names == (LATENCY.name, FLYING, THROUGHPUT, POSITION.name, COMPLETED.name)
        assert view.figures.axes(LATENCY.name)[0].label == "Time"


def test_a_run_without_issued_requests_has_nothing_to_show(tmp_path: Path) -> None:
    rows = [run_row(issued_ns=None, completed_ns=None, outcome="dropped")]
    with (
        pytest.raises(UserError, match="no request was issued"),
        viewed(write_run(tmp_path / "none.replay.parquet", rows), tmp_path / "caches"),
    ):
        pass
    assert list((tmp_path / "caches").iterdir()) == []


@pytest.mark.parametrize("most", [10**9, 2500], ids=["all are kept", "the earlier half is left out"])
def test_a_growing_index_is_that_of_the_finished_run(
    most: int, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small: None
) -> None:
    monkeypatch.setattr("iosonar.view.growing.MOST", most)
    with viewed(run, tmp_path / "caches") as view:
        requests = view.figures.index.requests
        by_end = np.argsort(requests.begin + requests.latency, kind="stable")
        growing = Growing(top=1000)
        for first in range(0, ROWS, 370):
            some = by_end[first : first + 370]
            latency = requests.latency[some].astype(np.int64)
            named = {name: getattr(requests, name)[some].astype(np.int64) for name in ("begin", "delay", "sector")}
            more = {"sectors": requests.sectors[some].astype(np.int64), "place": requests.place[some].astype(np.int64)}
            growing.add(named | more | {"latency": latency, "kind": requests.kind[some]})
        grown = growing.index()
        left = growing.left_out
        assert (left > 0) == (most < ROWS) and len(grown.requests) == ROWS - left
        assert grown.requests.low_ns <= int(grown.requests.begin[0])
        if not left:
            for name in ("begin", "latency", "delay", "sector", "sectors", "kind", "end", "latency_of_end"):
                assert (getattr(grown.requests, name) == getattr(requests, name)).all(), name
            assert (grown.kinds == view.figures.index.kinds).all()
            assert (grown.requests.last_end == requests.last_end).all()
        assert NEVER not in grown.requests.latency
        drawn = View(figures.Figures(grown, "grown", grows=True), "grown").figures
        for measure in MEASURES:
            cloud = cloud_of(drawn.whole(measure.name))
            times = grown.requests.times(measure.order, slice(None))
            # Completions are left out up to the first issue that is kept.
            assert cloud.requests == len(times) and measure.order in Order
        [steps] = steps_of(drawn.whole(FLYING))
        begin, end = grown.requests.begin, grown.requests.end
        at = np.arange(1, len(begin) + 1) - np.searchsorted(end, begin, side="right")
        assert steps.y.max() == at.max()
