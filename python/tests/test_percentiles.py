from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import OpenStudy
from factory import MS, S, run_row, write_run
from hypothesis import given, settings
from hypothesis import strategies as st
from test_distribution import nearest_rank
from test_sonar import build, notes

from iosonar.diagrams import CATALOGUE
from iosonar.diagrams.percentiles import quantile_curve
from iosonar.figures.model import Empty, Line, NoteKind, Role, Rule, Severity, Steps
from iosonar.quantities.bands import bands
from iosonar.quantities.density import Cells
from iosonar.quantities.distribution import Distribution
from iosonar.quantities.steady import drift_of, steady_from
from iosonar.table import open_requests


@settings(max_examples=15)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 10**10)), min_size=1, max_size=120))
def test_bands_equal_quantiles_of_sorted_values(tmp_path: Path, values: list[tuple[int, int]]) -> None:
    rows = [run_row(scheduled=second * S, latency=latency) for second, latency in values]
    with open_requests([write_run(tmp_path / "a.parquet", rows)]) as requests:
        table = requests.table
        found = bands(table, table.issued_ns / 1e9, table.latency_ns, Cells(0, 4, 4), (0.5, 0.9))
    for second in range(4):
        mine = [latency for at, latency in values if at == second]
        assert found.counts[second] == len(mine)
        if mine:
            assert found.mean[second] == pytest.approx(np.mean(mine))
        for share in (0.5, 0.9):
            if len(mine) * (1 - share) >= 10 - 1e-6:
                assert found.quantiles[share][second] == pytest.approx(nearest_rank(mine, share), rel=0.0125)
            else:
                assert math.isnan(found.quantiles[share][second])


def test_a_warm_up_is_removed() -> None:
    chance = np.random.default_rng(1)
    rest = chance.normal(1.0, 0.1, 180)
    assert steady_from(np.concatenate([np.linspace(5, 1.5, 20), rest])) in range(15, 30)
    assert steady_from(rest) in range(10)


def test_a_series_that_keeps_changing_is_never_steady() -> None:
    assert steady_from(np.linspace(1, 10, 100)) is None
    assert steady_from(np.full(5, 1.0)) is None


def test_a_later_change_is_a_drift() -> None:
    chance = np.random.default_rng(2)
    for n in (20, 180):
        noise = chance.normal(0, 0.3, n)
        assert drift_of(noise) is None
        for share in (0.5, 0.9):
            drift = drift_of(noise + np.where(np.arange(n) < share * n, 0, math.log(20)))
            assert drift is not None and drift.at == share * n
            assert math.exp(drift.by) == pytest.approx(20, rel=0.5)
    assert drift_of(np.full(60, 1.0)) is None
    assert drift_of(np.full(5, 1.0)) is None


def test_phases_are_rarely_a_drift() -> None:
    chance = np.random.default_rng(3)
    found = 0
    for _ in range(200):
        level = np.convolve(chance.normal(0, 0.3, 189), np.full(10, 0.1**0.5), "valid")
        found += drift_of(level) is not None
    assert found <= 10


def test_gaps_do_not_shift_the_result() -> None:
    series = np.concatenate([[9.0, np.nan, 8.0, np.nan], np.full(60, 1.0)])
    assert steady_from(series) == 4


def test_a_percentile_needs_enough_requests_in_a_slice(open_study: OpenStudy) -> None:
    rows = [run_row(scheduled=n * S // 100, latency=(10 if n % 5 == 4 else 1) * MS) for n in range(4000)]
    with open_study(rows) as study:
        figure = build(study, "latency.bands")
    lines = {layer.role: layer for layer in figure.layers if isinstance(layer, Steps)}
    assert np.allclose(lines[Role.ORDER_1].y, 1e-3, rtol=0.0125)
    assert np.allclose(lines[Role.ORDER_2].y, 10e-3, rtol=0.0125)
    assert np.isnan(lines[Role.ORDER_3].y).all(), "400 in a slice are too few for a 99th percentile"
    assert np.isnan(lines[Role.ORDER_5].y).all()
    assert ("Steady throughout: no warm-up, no drift", Severity.GOOD) in notes(figure, NoteKind.VERDICT)


def test_a_run_too_short_for_its_warm_up(open_study: OpenStudy) -> None:
    rows = [run_row(scheduled=n * S // 100, latency=(50 if n < 800 else 1) * MS + n % 7) for n in range(4000)]
    with open_study(rows) as study:
        figure = build(study, "latency.bands")
    (rule,) = (layer for layer in figure.layers if isinstance(layer, Rule))
    assert rule.at == pytest.approx(8.0, abs=2.1)
    ((text, severity),) = notes(figure, NoteKind.VERDICT)
    assert severity is Severity.WARNING and "10 times" in text


def test_a_run_that_slows_down_late_is_not_steady(open_study: OpenStudy) -> None:
    rows = [run_row(scheduled=n * S // 100, latency=(1 if n < 3000 else 20) * MS + n % 7) for n in range(4000)]
    with open_study(rows) as study:
        figure = build(study, "latency.bands")
    assert not [layer for layer in figure.layers if isinstance(layer, Rule)]
    ((text, severity),) = notes(figure, NoteKind.VERDICT)
    assert (text, severity) == (
        "Not steady: from 30 s on, latency was 20 times as high as before on average",
        Severity.WARNING,
    )


def test_percentiles_by_size_position_and_depth(open_study: OpenStudy) -> None:
    rows = [
        run_row(sectors=sectors, sector=sector, in_flight=depth, latency=ms * MS)
        for sectors, sector, depth, ms in ((8, 0, 1, 1), (256, 1_000_000, 9, 20))
        for _ in range(20)
    ]
    with open_study(rows) as study:
        for name, low, high in (
            ("latency.size", 8 * 512, 256 * 512),
            ("latency.region", 0, 1_000_000 * 512),
            ("latency.depth", 1, 9),
        ):
            figure = build(study, name)
            line = next(layer for layer in figure.layers if isinstance(layer, Steps) and layer.role is Role.ORDER_1)
            for at, expected in ((low, 1e-3), (high, 20e-3)):
                cell = np.searchsorted(line.edges, at, side="right") - 1
                assert line.y[cell] == pytest.approx(expected, rel=0.0125)
            assert np.isnan(line.y).sum() == len(line.y) - 2


def test_latency_from_the_scheduled_time(open_study: OpenStudy) -> None:
    rows = [run_row(n, scheduled=n * S, delay=9 * MS, latency=MS) for n in range(10)]
    with open_study(rows) as study:
        figure = build(study, "latency.scheduled")
    lines = {layer.role: layer for layer in figure.layers if isinstance(layer, Line)}
    assert np.allclose(lines[Role.DEMAND].y, 10e-3)
    assert np.allclose(lines[Role.ACTUAL].y, 1e-3)
    assert figure.legend.rows[0].cells == ("–", "–", "–", "–", "10 ms"), "ten are too few for a median"


def test_a_percentile_needs_ten_slower_requests(open_study: OpenStudy) -> None:
    rows = [run_row(n, scheduled=n * MS, latency=MS) for n in range(999)]
    with open_study(rows) as study:
        figure = build(study, "latency.bands")
        whole = build(study, "latency.scheduled")
    shown = {row.label: row.cells[0] for row in figure.legend.rows}
    assert shown == {"p50": "1 ms", "p90": "1 ms", "p99": "–", "p99.9": "–", "p99.99": "–"}
    (line, *_) = (layer for layer in whole.layers if isinstance(layer, Line))
    assert line.x[-1] == pytest.approx(99.9)
    with open_study(rows[:19]) as study:
        for name in ("latency.bands", "latency.size", "latency.region", "latency.depth"):
            empty = next(diagram for diagram in CATALOGUE if diagram.name == name).build(study)
            assert isinstance(empty, Empty) and "too few" in empty.reason


def test_a_run_steady_from_its_start_has_no_rule(open_study: OpenStudy) -> None:
    rows = [run_row(scheduled=n * S // 100, latency=MS + n % 7) for n in range(4000)]
    with open_study(rows) as study:
        figure = build(study, "latency.bands")
    assert not [layer for layer in figure.layers if isinstance(layer, Rule)]


def test_a_percentile_with_gaps_says_why(open_study: OpenStudy) -> None:
    def notes(name: str, rows: list[dict[str, Any]]) -> list[str]:
        with open_study(rows, run={"fake": "simulated"}) as study:
            return [note.text for note in build(study, name).notes]

    few = [run_row(scheduled=n * S, latency=MS, sector=max(n - 20, 0) * 800) for n in range(40)]
    assert "p50 needs at least 20 requests; gaps have fewer" in notes("latency.region", few)
    none = "p90 needs at least 100 requests, p99 1,000, p99.9 10,000, p99.99 100,000: no line"
    assert none in notes("latency.region", few)
    many = notes("latency.bands", [run_row(scheduled=n * S // 100, latency=MS + n % 7) for n in range(4000)])
    assert not any("gaps" in text for text in many)
    assert any(text.endswith("No verdict: the result is fake") for text in many)


def test_the_curve_ends_where_ten_requests_are_slower() -> None:
    values = Distribution(np.arange(1000), np.ones(1000, int), np.arange(1000.0), np.arange(1000.0), 0.0)
    odds, latency = quantile_curve(values)
    assert (odds[0], odds[-1]) == (1.0, pytest.approx(100.0))
    assert latency[-1] == pytest.approx(989e-9, abs=2e-9)
