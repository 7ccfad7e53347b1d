from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest
from conftest import OpenStudy
from factory import MS, S, run_row
from test_sonar import ROWS, build

from iosonar.figures.model import Axis, Figure, Line, Role, Scale, Unit
from iosonar.figures.numbers import DataFormat, column_name, edges, numbers, write_numbers


def test_cells_of_a_cloud_hold_their_requests(open_study: OpenStudy) -> None:
    with open_study([run_row(scheduled=n * S, latency=2 * MS) for n in range(10)]) as study:
        table = numbers(build(study, "latency.realtime")).to_pylist()
    assert len(table) == 10
    for number, row in enumerate(sorted(table, key=lambda row: row["real_time_of_issue_s"])):
        assert (row["series"], row["requests"]) == ("Reads", 1)
        assert row["real_time_of_issue_s"] <= number < row["real_time_of_issue_s_to"]
        assert row["latency_s"] <= 0.002 <= row["latency_s_to"]


def test_steps_have_both_ends(open_study: OpenStudy) -> None:
    with open_study([run_row(scheduled=n * S) for n in range(31)]) as study:
        rows = numbers(build(study, "thrp.setpoint")).to_pylist()
    assert rows[0] == {"series": "Reads", "time_s": 0.0, "time_s_to": 3.0, "throughput_io_per_s": 1.0}


def test_points_of_a_line_and_axes_of_one_name() -> None:
    axis = Axis("Latency", Unit.SECONDS, 1, 10)
    line = Line(Role.READ, "Reads", np.array([1.0, 2.0]), np.array([3.0, np.nan]))
    assert numbers(Figure("a", "g", "", "", axis, axis, (line,))).to_pylist() == [
        {"series": "Reads", "latency_s": 1.0, "latency_s_value": 3.0},
        {"series": "Reads", "latency_s": 2.0, "latency_s_value": None},
    ]


def test_columns_keep_their_names_and_bins_their_edges() -> None:
    assert column_name(Axis("Queue depth", Unit.REQUESTS, 0, 1)) == "queue_depth_requests"
    # Files keep the columns of docs/reports.md when a label changes.
    assert column_name(Axis("Issue time", Unit.TIMELINE, 0, 1)) == "real_time_of_issue_s"
    assert np.allclose(edges(Axis("", Unit.SECONDS, 1, 100, Scale.LOG), 2), [1, 10, 100])


@pytest.mark.parametrize("format_", list(DataFormat))
def test_numbers_are_written_in_each_format(open_study: OpenStudy, tmp_path: Path, format_: DataFormat) -> None:
    with open_study(ROWS) as study:
        figure = build(study, "latency.realtime")
    path = tmp_path / f"numbers.{format_}"
    write_numbers(figure, path, format_)
    read = pyarrow.csv.read_csv if format_ is DataFormat.CSV else pyarrow.parquet.read_table
    assert read(path).num_rows == numbers(figure).num_rows
