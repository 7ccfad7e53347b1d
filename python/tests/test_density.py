from __future__ import annotations

import numpy as np
from conftest import OpenRun
from factory import MS, S, run_row

from iosonar.quantities.density import Cells, density
from iosonar.quantities.series import Series


def test_each_request_is_in_its_cell(open_run: OpenRun) -> None:
    rows = [
        run_row(scheduled=0, latency=1 * MS),
        run_row(scheduled=0, latency=1 * MS),
        run_row(scheduled=5 * S, latency=50 * MS),
        run_row(scheduled=5 * S, latency=50 * MS, op="write"),
        run_row(scheduled=5 * S, latency=50 * MS, op="write", pushed_back=True),
        run_row(scheduled=5 * S, latency=50 * MS, op="discard"),
        run_row(scheduled=5 * S, latency=50 * MS, outcome="error", errno=5),
        run_row(scheduled=5 * S, latency=None),
    ]
    with open_run(rows) as requests:
        table = requests.table
        cells = density(
            table,
            table.issued_ns / 1e9,
            table.latency_ns / 1e9,
            Cells(0, 10, 10),
            Cells(1e-3, 1e-1, 4, logarithmic=True),
        )
    found = {
        series: sorted(zip(part.columns.tolist(), part.rows.tolist(), part.counts.tolist(), strict=True))
        for series, part in cells.items()
    }
    assert found == {
        Series.READ: [(0, 0, 2), (5, 3, 1)],
        Series.WRITE: [(5, 3, 1)],
        Series.PUSHED_WRITE: [(5, 3, 1)],
        Series.OTHER: [(5, 3, 1)],
        Series.FAILED: [(5, 3, 1)],
    }


def test_values_outside_count_in_the_nearest_cell(open_run: OpenRun) -> None:
    rows = [run_row(scheduled=-5, latency=0), run_row(scheduled=100 * S, latency=100 * S)]
    with open_run(rows) as requests:
        table = requests.table
        cells = density(
            table,
            table.issued_ns / 1e9,
            table.latency_ns / 1e9,
            Cells(0, 10, 10),
            Cells(1e-3, 1e-1, 4, logarithmic=True),
        )[Series.READ]
    assert sorted(zip(cells.columns.tolist(), cells.rows.tolist(), strict=True)) == [(0, 0), (9, 3)]


def test_edges_of_a_logarithmic_axis() -> None:
    assert np.allclose(Cells(1, 100, 2, logarithmic=True).edges(), [1, 10, 100])
    assert np.allclose(Cells(0, 4, 2).edges(), [0, 2, 4])
