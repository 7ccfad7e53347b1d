from __future__ import annotations

import numpy as np
import pytest
from conftest import OpenRun, OpenStudy
from factory import S, run_row

from iosonar.diagrams import CATALOGUE, Options
from iosonar.diagrams.overview import rates
from iosonar.figures.model import Figure
from iosonar.quantities.series import Series
from iosonar.quantities.throughput import throughput, window_for


def test_windows_count_requests_and_sectors(open_run: OpenRun) -> None:
    rows = [run_row(intended=at * S, sectors=10) for at in (0, 1, 2, 3, 8)] + [run_row(intended=4 * S, op="write")]
    with open_run(rows) as requests:
        found = throughput(requests.table, requests.table.intended_ns, 3.0)
    assert found.requests[Series.READ].tolist() == [3, 1, 1]
    assert found.requests[Series.WRITE].tolist() == [0, 1, 0]
    assert found.sectors[Series.READ].tolist() == [30, 10, 10]
    assert found.edges_s.tolist() == [0, 3, 6, 8]
    assert (found.windows, found.whole) == (3, 2)


def test_a_load_that_begins_late_has_no_empty_windows_before(open_run: OpenRun) -> None:
    with open_run([run_row(intended=301 * S), run_row(intended=302 * S)]) as requests:
        found = throughput(requests.table, requests.table.intended_ns, 3.0)
    assert (found.first, found.windows) == (100, 1)
    assert found.edges_s.tolist() == [300, 302]


def test_the_partial_window_is_not_taken_for_a_whole_one(open_run: OpenRun) -> None:
    with open_run([run_row(intended=at * S // 2) for at in range(16)]) as requests:
        found = throughput(requests.table, requests.table.intended_ns, 3.0)
    # 7.5 s: the third window covers 1.5 s with four requests, the one that ends it included.
    assert rates(found.requests[Series.READ], found).tolist() == [2, 2, pytest.approx(4 / 1.5)]
    with open_run([run_row(intended=at * S) for at in range(8)]) as requests:
        found = throughput(requests.table, requests.table.intended_ns, 3.0)
    assert np.isnan(rates(found.requests[Series.READ], found)).tolist() == [False, False, True]


@pytest.mark.parametrize(
    ("duration", "window"), [(3600, 3), (30, 3), (29, 2), (10, 1), (6, 0.5), (0.01, 0.001), (0, 3)]
)
def test_short_runs_have_short_windows(duration: float, window: float) -> None:
    assert window_for(duration) == pytest.approx(window)


def test_the_legends_maximum_is_that_of_whole_windows(open_study: OpenStudy) -> None:
    # Two requests in each second, and in the half second at the end five.
    rows = [run_row(intended=number * S // 2, latency=0) for number in range(20)]
    rows += [run_row(intended=10 * S + number * S // 8, latency=0) for number in range(5)]
    with open_study(rows, Options(window_s=1.0)) as study:
        figures = [diagram.build(study) for diagram in CATALOGUE if diagram.name in ("overview.thrp", "thrp.setpoint")]
    assert len(figures) == 2
    for figure in figures:
        assert isinstance(figure, Figure)
        assert {row.cells[1] for row in figure.legend.rows} == {"2"}
