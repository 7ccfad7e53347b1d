from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from conftest import OpenStudy
from factory import MS, RUN_SCHEMA, US, S, load_row, run_row, write_load
from test_sonar import build

from iosonar.diagrams import CATALOGUE, Group, Options, Study
from iosonar.figures.model import Empty, Role, Scale, Steps
from iosonar.figures.size import Size
from iosonar.table import open_requests


class TwoSlices(Size):
    """A picture with room for two slices."""

    @property
    def slices(self) -> int:
        return 2


INNER = ("ready_ns", "submitted_ns", "last_empty_poll_ns")
VERBOSE = pa.schema([*RUN_SCHEMA, *(pa.field(name, pa.int64()) for name in INNER)])

ROWS = [
    run_row(0, scheduled=10 * MS, ready_ns=4 * MS, submitted_ns=10 * MS + 5 * US, in_flight=3, waiting=1),
    run_row(1, scheduled=20 * MS, ready_ns=21 * MS, delay=2 * MS, submitted_ns=22 * MS + 7 * US, delay_reason="input"),
    run_row(2, scheduled=30 * MS, ready_ns=30 * MS, delay=4 * MS, submitted_ns=34 * MS, delay_reason="depth"),
    run_row(3, scheduled=40 * MS, ready_ns=40 * MS, delay=1 * MS, submitted_ns=41 * MS, pushed_back=True),
]


for row, unseen_us in zip(ROWS, (1, 3, 0, 6), strict=True):
    row["last_empty_poll_ns"] = row["completed_ns"] - unseen_us * US


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("submit_level", [3, 1, 1, 1]),
        ("pushback_level", [1, 0, 0, 0]),
        ("submit_ahead", [6e-3, -1e-3, 0, 0]),
        ("submit_lag", [5e-6, 7e-6, 0, 0]),
        ("submit_lag_cumul", [5e-6, 12e-6, 12e-6, 12e-6]),
        ("answer_lag", [1e-6, 3e-6, 0, 6e-6]),
        ("answer_lag_cumul", [1e-6, 4e-6, 4e-6, 10e-6]),
        ("input_wait", [0, 2e-3, 0, 0]),
        ("input_wait_cumul", [0, 2e-3, 2e-3, 2e-3]),
        ("answer_wait", [0, 0, 4e-3, 1e-3]),
        ("answer_wait_cumul", [0, 0, 4e-3, 5e-3]),
    ],
)
def test_waits_of_the_replayer_have_their_known_values(open_study: OpenStudy, name: str, expected: list[float]) -> None:
    with open_study(pa.Table.from_pylist(ROWS, schema=VERBOSE)) as study:
        figure = build(study, name)
    line = next(layer for layer in figure.layers if isinstance(layer, Steps) and layer.role is Role.ALL)
    assert line.y.tolist() == pytest.approx(expected)
    assert figure.y.high > max(expected)
    # Zeros are at the lower end of a logarithmic axis.
    assert figure.y.low <= min(value for value in expected if value > 0 or figure.y.scale is Scale.LINEAR)


@pytest.mark.parametrize("name", ["submit_lag", "answer_lag", "input_wait", "answer_wait"])
def test_peaks_do_not_hide_the_mean(open_study: OpenStudy, name: str) -> None:
    # A thousand waits of some µs, and one of a second.
    rows = []
    for n in range(1000):
        wait = S if n == 500 else 5 * US
        row = run_row(n, scheduled=n * MS, delay=wait, delay_reason="input" if name == "input_wait" else "depth")
        row |= {
            "ready_ns": 0,
            "submitted_ns": row["issued_ns"] + wait,
            "last_empty_poll_ns": row["completed_ns"] - wait,
        }
        rows.append(row)
    with open_study(pa.Table.from_pylist(rows, schema=VERBOSE), Options(size=TwoSlices())) as study:
        figure = build(study, name)
    mean, most = (
        next(each for each in figure.layers if isinstance(each, Steps) and each.label == label)
        for label in ("Mean", "Max")
    )
    assert most.y.max() > 400 * mean.y.max()
    assert figure.y.share(mean.y.min()) > 0.05 and figure.y.share(mean.y.max()) > 0.5
    assert [row.cells for row in figure.legend.rows] == [("1 ms", "5 µs"), ("", "", "1 s")]


def test_waits_that_are_all_zero_are_listed_not_drawn(open_study: OpenStudy) -> None:
    with open_study(pa.Table.from_pylist(ROWS[:1], schema=VERBOSE)) as study:
        found = {diagram.name: diagram.build(study) for diagram in CATALOGUE if diagram.group is Group.VERBOSE}
    assert found["input_wait"] == Empty("input_wait", "no request waited for the load to be read")
    assert isinstance(found["answer_wait_cumul"], Empty)
    assert not isinstance(found["pushback_level"], Empty)
    none = [ROWS[0] | {"waiting": 0}]
    with open_study(pa.Table.from_pylist(none, schema=VERBOSE)) as study:
        found = {diagram.name: diagram.build(study) for diagram in CATALOGUE if diagram.group is Group.VERBOSE}
    assert found["pushback_level"] == Empty("pushback_level", "no request waited to be issued")


def test_without_verbose_the_reason_is_listed(open_study: OpenStudy) -> None:
    with open_study([run_row()]) as study:
        found = {diagram.name: diagram.build(study) for diagram in CATALOGUE if diagram.group is Group.VERBOSE}
    assert isinstance(found["submit_lag"], Empty)
    assert "--verbose" in found["submit_lag"].reason


def test_the_average_is_that_of_requests_not_of_slices(open_study: OpenStudy) -> None:
    # Three requests in two slices: the mean of the slices' means differs.
    with open_study(pa.Table.from_pylist(ROWS[:3], schema=VERBOSE), Options(size=TwoSlices())) as study:
        figure = build(study, "submit_level")
    line = next(layer for layer in figure.layers if isinstance(layer, Steps) and layer.role is Role.ALL)
    assert len(line.y) == 2
    assert figure.legend.rows[0].cells[0] == "1.67"


def test_a_load_has_no_diagrams_of_the_replayer(tmp_path: Path) -> None:
    diagram = next(each for each in CATALOGUE if each.name == "submit_level")
    with open_requests([write_load(tmp_path / "a.load.parquet", [load_row()])]) as requests:
        assert diagram.build(Study(requests, Options())) == Empty("submit_level", "a load has no replayer")
