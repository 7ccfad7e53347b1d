"""Position over time: every request at its exact sector, each device with its own scale."""

from __future__ import annotations

from pathlib import Path

import ibis
import numpy as np
import pyarrow as pa
import pytest
from conftest import OpenStudy
from factory import MS, S, load_row, run_row, write_load

from iosonar.diagrams import CATALOGUE, Options, Study
from iosonar.figures.model import Cloud, Empty, Figure, Role, Unit
from iosonar.figures.numbers import numbers
from iosonar.quantities.places import above, extents, placed
from iosonar.report.run_page import run_page
from iosonar.report.selection import Selection
from iosonar.table import open_requests

LAST = (2**63 - 1) // 512 - 1
"""The highest sector of a file."""


def build(study: Study, name: str) -> Figure | Empty:
    return next(diagram for diagram in CATALOGUE if diagram.name == name).build(study)


def load(directory: Path, rows: list[dict[str, object]], **footer: object) -> Path:
    return write_load(directory / "made.load.parquet", rows, **footer)


def test_each_request_is_at_its_time_and_position(open_study: OpenStudy) -> None:
    rows = [
        run_row(0, scheduled=0, delay=S, sector=0),
        run_row(1, scheduled=2 * S, sector=2048, op="write", sectors=64),
        run_row(2, scheduled=10 * S, sector=4095),
        run_row(3, scheduled=5 * S, op="flush", sectors=0),
        run_row(4, scheduled=6 * S, issued_ns=None, completed_ns=None, outcome="dropped"),
    ]
    with open_study(rows) as study:
        figure = build(study, "position.realtime")
    assert isinstance(figure, Figure)
    assert (figure.x.label, figure.y.label, figure.y.unit) == ("Issue time", "Position", Unit.BYTES)
    found = sorted(numbers(figure).to_pylist(), key=lambda row: row["real_time_of_issue_s"])
    for row, (series, at_s, position) in zip(
        found, [("Reads", 1, 0), ("Writes", 2, 2048 * 512), ("Reads", 10, 4095 * 512)], strict=True
    ):
        assert row["series"] == series
        assert row["real_time_of_issue_s"] <= at_s < row["real_time_of_issue_s_to"]
        assert row["position_bytes"] <= position < row["position_bytes_to"]
        assert row["requests"] == 1
    assert [row.cells for row in figure.legend.rows] == [("2", "8.19 kB"), ("1", "32.8 kB")]


def test_a_load_is_drawn_by_its_scheduled_times(tmp_path: Path) -> None:
    path = load(tmp_path, [load_row(n * S, sector=n * 8) for n in range(4)])
    with open_requests([path]) as requests:
        study = Study(requests, Options())
        chosen = [diagram.name for diagram in Selection().choose(CATALOGUE, requests)]
        figure = build(study, "position.setpoint")
        page = run_page(study, [diagram for diagram in CATALOGUE if diagram.name in chosen[:4]])
    assert chosen.index("position.setpoint") < chosen.index("ws_log")
    assert isinstance(figure, Figure) and figure.x.label == "Scheduled time"
    assert "position.realtime" not in chosen
    assert page.sections


@pytest.mark.parametrize("sectors", [(0, 2**63 - 1), (2**63 - 1000, 2**63 - 1), (2**53 + 1, 2**53 + 3), (7, 7)])
def test_sectors_are_subtracted_as_integers(sectors: tuple[int, int]) -> None:
    table = ibis.memtable(pa.table({"device": [0, 0], "sector": list(sectors), "sectors": [1, 1]}))
    (extent,) = extents(placed(table))
    assert (extent.low, extent.high) == sectors
    found = table.select(above=above(table, extent.base)).to_pyarrow()["above"].to_pylist()
    assert found == [float(sector - extent.base) for sector in sectors]


@pytest.mark.parametrize(
    "sectors", [(0, 2**40), (0, 2**53 + 1), (0, LAST), (LAST, LAST), (LAST - 1000, LAST), (2**53 + 1, 2**53 + 100)]
)
def test_any_sector_and_any_span(tmp_path: Path, sectors: tuple[int, int]) -> None:
    path = load(tmp_path, [load_row(n * MS, sector=sector, sectors=1) for n, sector in enumerate(sectors)])
    with open_requests([path]) as requests:
        figure = build(Study(requests, Options()), "position.setpoint")
    assert isinstance(figure, Figure)
    (cloud,) = (layer for layer in figure.layers if isinstance(layer, Cloud))
    rows = cloud.parts[0].rows[np.argsort(cloud.parts[0].columns)]
    if sectors[0] != sectors[1]:
        assert rows[0] < cloud.up / 10 and rows[1] > 0.9 * cloud.up, "told apart, whatever they have in common"


def test_devices_are_above_each_other(tmp_path: Path) -> None:
    rows = [load_row(n * MS, sector=sector) | {"device": n % 2} for n, sector in enumerate([0, 0, 2**41, 800])]
    path = load(tmp_path, rows, devices=[{"name": "sda"}, {"name": "a-very-long-name"}])
    with open_requests([path]) as requests:
        figure = build(Study(requests, Options()), "position.setpoint")
    assert isinstance(figure, Figure)
    assert figure.y.unit is Unit.DEVICES
    assert [text for _, text in figure.y.named] == ["0 B", "a-very-lo…", "401 KiB", "0 B", "sda", "1 PiB"]
    found = {(row["scheduled_time_s"], row["position_on_each_device_devices"]) for row in numbers(figure).to_pylist()}
    at = [height for _, height in sorted(found)]
    # By time; the first device is at the top, each from its lowest to its highest position.
    assert at == pytest.approx([1, 0, 1.82, 0.82], abs=0.02)


def test_of_many_devices_the_busiest_are_drawn(tmp_path: Path) -> None:
    rows = [load_row(n * MS, sector=n) | {"device": n % 20} for n in range(205)]
    with open_requests([load(tmp_path, rows, devices=[{"name": f"d{n}"} for n in range(20)])]) as requests:
        figure = build(Study(requests, Options()), "position.setpoint")
    assert isinstance(figure, Figure)
    assert len(figure.y.named) == 12
    assert figure.of.endswith("the 12 busiest of 20 devices, without 80 requests of the others")


def test_a_run_without_positions_is_listed_as_empty(open_study: OpenStudy) -> None:
    with open_study([run_row(op="flush", sectors=0)]) as study:
        assert build(study, "position.realtime") == Empty("position.realtime", "no request has a position")


def test_failed_requests_have_their_series(open_study: OpenStudy) -> None:
    rows = [run_row(n, scheduled=n * MS, sector=n * 8, outcome="error", errno=5) for n in range(5)]
    with open_study(rows) as study:
        figure = build(study, "position.realtime")
    assert isinstance(figure, Figure)
    (cloud,) = (layer for layer in figure.layers if isinstance(layer, Cloud))
    assert [part.role for part in cloud.parts] == [Role.FAILED]
