"""The diagrams of a run, on small inputs with known results."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from conftest import OpenStudy
from factory import MS, S, run_row
from test_sonar import ROWS, build

from iosonar.diagrams import CATALOGUE
from iosonar.diagrams.histograms import decade_bins
from iosonar.figures.model import Cloud, Figure, Role, Steps, Unit
from iosonar.quantities.distribution import Distribution


def test_points_are_at_equal_distances(open_study: OpenStudy) -> None:
    with open_study(ROWS) as study:
        figure = build(study, "delay.points")
    cloud = figure.layers[0]
    assert isinstance(cloud, Cloud)
    columns = sorted(int(column) for part in cloud.parts for column in part.columns)
    assert columns == [int(number * cloud.across / 5) for number in range(5)]


def test_histograms_have_ten_bins_per_decade(open_study: OpenStudy) -> None:
    rows = [run_row(latency=MS), run_row(latency=int(1.25 * MS)), run_row(latency=int(1.26 * MS), op="write")]
    with open_study(rows) as study:
        figure = build(study, "latency.bins")
    lines = {layer.role: layer for layer in figure.layers if isinstance(layer, Steps)}
    first = int(np.argmin(abs(lines[Role.READ].edges - 1e-3)))
    assert lines[Role.READ].edges[first + 1] == pytest.approx(1e-3 * 10**0.1)
    assert lines[Role.READ].y[first] == 2
    assert lines[Role.WRITE].y[first + 1] == 1
    assert np.nansum(lines[Role.ALL].y) == 3


def test_no_value_is_missing_from_a_histogram() -> None:
    bins = np.array([0, 3000, 6999])
    values = Distribution(bins, np.array([5, 7, 1]), bins * 1.0, bins * 1.0, 0.0)
    _, counts = decade_bins(values, 1e-7, 1e-2)
    assert np.nansum(counts) == 13
    assert counts[0] == 5


def test_each_series_has_its_throughput(open_study: OpenStudy) -> None:
    rows = [run_row(scheduled=n * S, sectors=16, op="write" if n % 3 == 0 else "read") for n in range(61)]
    with open_study(rows) as study:
        figure = build(study, "thrs.setpoint")
    lines = {layer.role: layer for layer in figure.layers if isinstance(layer, Steps)}
    assert lines[Role.READ].y[:20].tolist() == [pytest.approx(512 * 32 / 3)] * 20
    assert lines[Role.WRITE].y[:20].tolist() == [pytest.approx(512 * 16 / 3)] * 20
    assert lines[Role.ALL].y[:20].tolist() == [16 * 512] * 20
    assert (figure.title, figure.y.label, figure.y.unit) == ("Bandwidth demanded", "Bandwidth", Unit.BYTES_PER_S)
    assert figure.legend.rows[-1].cells[1] == "8.19 kB/s"


def test_flying_counts_requests_over_time(open_study: OpenStudy) -> None:
    rows = [run_row(scheduled=n * S, latency=3 * S) for n in range(8)]
    with open_study(rows) as study:
        figure = build(study, "latency.flying")
        smooth = build(study, "smooth.latency.flying")
    lines = {layer.role: layer for layer in figure.layers if isinstance(layer, Steps)}
    middle = np.searchsorted(lines[Role.READ].edges, 5.5)
    assert lines[Role.READ].y[middle] == pytest.approx(3)
    assert lines[Role.FAINT].y.max() == 3  # as one ends, the next begins
    assert [row.label for row in smooth.legend.rows] == ["Reads"]


def test_requests_wait_between_their_time_and_their_issue(open_study: OpenStudy) -> None:
    rows = [run_row(scheduled=0, delay=4 * S), run_row(scheduled=2 * S, delay=2 * S), run_row(scheduled=8 * S)]
    with open_study(rows) as study:
        figure = build(study, "delay.flying")
    line = next(layer for layer in figure.layers if isinstance(layer, Steps) and layer.role is Role.READ)
    at = {second: float(line.y[np.searchsorted(line.edges, second) - 1]) for second in (1, 3, 6)}
    assert at == {1: pytest.approx(1), 3: pytest.approx(2), 6: pytest.approx(0, abs=1e-6)}


def test_latency_over_depth_has_a_cell_for_each_depth(open_study: OpenStudy) -> None:
    rows = [run_row(in_flight=depth, latency=depth * MS) for depth in (1, 2, 2, 5)]
    with open_study(rows) as study:
        figure = build(study, "latency.xy")
    cloud = figure.layers[0]
    assert isinstance(cloud, Cloud)
    (part,) = cloud.parts
    assert cloud.across == 5
    assert sorted(zip(part.columns.tolist(), part.counts.tolist(), strict=True)) == [(0, 1), (1, 2), (4, 1)]


def test_latency_over_delay_has_a_dot_for_each_pair(open_study: OpenStudy) -> None:
    with open_study([run_row(delay=MS, latency=MS), run_row(delay=MS, latency=100 * MS)]) as study:
        figure = build(study, "latency.delay.xy")
    cloud = figure.layers[0]
    assert isinstance(cloud, Cloud)
    (part,) = cloud.parts
    assert len(set(part.columns.tolist())) == 1 and len(set(part.rows.tolist())) == 2


def test_titles_of_diagrams_are_unique(open_study: OpenStudy) -> None:
    rows = [run_row(n, scheduled=n * S // 100, latency=MS + n, sector=n * 8, in_flight=1 + n % 3) for n in range(300)]
    with open_study(rows) as study:
        built = [diagram.build(study) for diagram in CATALOGUE]
    titles = Counter(figure.title for figure in built if isinstance(figure, Figure))
    assert [title for title, times in titles.items() if times > 1] == []
    assert len(titles) > 20
