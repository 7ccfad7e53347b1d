from __future__ import annotations

import numpy as np
import pytest
from conftest import OpenRun, OpenStudy
from factory import S, run_row

from iosonar import units
from iosonar.diagrams import CATALOGUE, Options
from iosonar.diagrams.overview import rates
from iosonar.figures.model import Empty, Figure, Steps
from iosonar.quantities.series import Series
from iosonar.quantities.throughput import throughput, window_for
from iosonar.report.run_page import run_page


def test_windows_count_requests_and_sectors(open_run: OpenRun) -> None:
    rows = [run_row(scheduled=at * S, sectors=10) for at in (0, 1, 2, 3, 8)] + [run_row(scheduled=4 * S, op="write")]
    with open_run(rows) as requests:
        found = throughput(requests.table, requests.table.scheduled_ns, 3.0)
    assert found.requests[Series.READ].tolist() == [3, 1, 1]
    assert found.requests[Series.WRITE].tolist() == [0, 1, 0]
    assert found.sectors[Series.READ].tolist() == [30, 10, 10]
    assert found.edges_s.tolist() == [0, 3, 6, 8]
    assert (found.windows, found.whole) == (3, 2)


def test_a_load_that_begins_late_has_no_empty_windows_before(open_run: OpenRun) -> None:
    with open_run([run_row(scheduled=301 * S), run_row(scheduled=302 * S)]) as requests:
        found = throughput(requests.table, requests.table.scheduled_ns, 3.0)
    assert (found.first, found.windows) == (100, 1)
    assert found.edges_s.tolist() == [300, 302]


def test_a_partial_window_does_not_count_as_whole(open_run: OpenRun) -> None:
    with open_run([run_row(scheduled=at * S // 2) for at in range(16)]) as requests:
        found = throughput(requests.table, requests.table.scheduled_ns, 3.0)
    # 7.5 s: the third window covers 1.5 s with four requests, the one that ends it included.
    assert rates(found.requests[Series.READ], found).tolist() == [2, 2, pytest.approx(4 / 1.5)]
    with open_run([run_row(scheduled=at * S) for at in range(8)]) as requests:
        found = throughput(requests.table, requests.table.scheduled_ns, 3.0)
    assert np.isnan(rates(found.requests[Series.READ], found)).tolist() == [False, False, True]


@pytest.mark.parametrize(
    ("duration", "window"),
    [
        (3600, 3),
        (30, 3),
        (29, 2),
        (10, 1),
        (6, 0.5),
        (0.01, 0.001),
        (0, 3),
        (36_000, 30),
        (86_400, 120),
        (604_800, 600),
        (3.2e9, 2_764_800),
        (1e-9, 1e-9),
    ],
)
def test_short_runs_have_short_windows(duration: float, window: float) -> None:
    assert window_for(duration) == pytest.approx(window)


def test_the_legend_has_the_maximum_of_all_windows_drawn(open_study: OpenStudy) -> None:
    # Two requests in each second, and five in the last half second.
    rows = [run_row(scheduled=number * S // 2, latency=0) for number in range(20)]
    rows += [run_row(scheduled=10 * S + number * S // 8, latency=0) for number in range(5)]
    with open_study(rows, Options(window_s=1.0)) as study:
        figures = [diagram.build(study) for diagram in CATALOGUE if diagram.name in ("overview.thrp", "thrp.setpoint")]
    assert len(figures) == 2
    for figure in figures:
        assert isinstance(figure, Figure)
        for row in figure.legend.rows:
            (drawn,) = [layer for layer in figure.layers if isinstance(layer, Steps) and layer.label == row.label]
            assert row.cells[1] == units.count(float(np.nanmax(drawn.y)))
        assert max(float(row.cells[1]) for row in figure.legend.rows) > 8


def test_averages_equal_those_of_the_page(open_study: OpenStudy) -> None:
    # Begins at 1.3 s, within the first window; completions end 0.7 s later.
    rows = [run_row(n, scheduled=round((1.3 + n / 100) * S), latency=S * 7 // 10) for n in range(101)]
    with open_study(rows, Options(window_s=1.0)) as study:
        tiles = {tile.label: tile for tile in run_page(study, ()).summary.tiles}
        found = {each.name: each.build(study) for each in CATALOGUE if each.name.startswith(("overview.thr", "thr"))}
    averages = {}
    for name, figure in found.items():
        assert isinstance(figure, Figure)
        averages[name] = {row.label: row.cells[0] for row in figure.legend.rows}
    # 101 requests of 4 KiB, scheduled within a second, completed within 1.7 s.
    assert tiles["Throughput"].value == "59.4 requests/s" and tiles["Throughput"].more == "101 requests/s demanded"
    assert averages["overview.thrp"] == {"Demanded": "101", "Delivered": "59.4"}
    assert averages["thrp.setpoint"] == {"Reads": "101"} and averages["thrp.completed"] == {"Reads": "59.4"}
    assert (
        tiles["Data"].value
        == averages["overview.thrs"]["Delivered"]
        == averages["thrs.completed"]["Reads"]
        == "243 kB/s"
    )


@pytest.mark.parametrize("name", ["overview.thrp", "overview.thrs", "thrp.setpoint", "thrs.completed"])
def test_requests_at_a_single_time_have_no_rate(open_study: OpenStudy, name: str) -> None:
    diagram = next(diagram for diagram in CATALOGUE if diagram.name == name)
    with open_study([run_row(latency=0), run_row(latency=0)]) as study:
        empty = diagram.build(study)
    assert isinstance(empty, Empty) and "no rate" in empty.reason


@pytest.mark.parametrize(
    ("last", "words"),
    [
        (10.0, "windows of 1 s; the last covers 0 s and is not drawn"),
        (10.25, "windows of 1 s; the last covers 250 ms and is not drawn"),
        (10.75, "windows of 1 s; the last covers 750 ms and is dotted"),
        (10.998, "windows of 1 s"),
    ],
)
def test_the_subtitle_describes_the_last_window(open_study: OpenStudy, last: float, words: str) -> None:
    rows = [run_row(scheduled=number * S // 2, latency=0) for number in range(20)]
    rows += [run_row(scheduled=round(last * S), latency=0)]
    with open_study(rows, Options(window_s=1.0)) as study:
        for diagram in CATALOGUE:
            if diagram.name in ("overview.thrp", "overview.thrs", "thrp.setpoint", "thrs.completed"):
                figure = diagram.build(study)
                assert isinstance(figure, Figure) and figure.of.endswith(words)
