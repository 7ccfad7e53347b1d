"""What the machine did during a run, on pages and in diagrams."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from call_factory import replayed, write_calls_run
from factory import run_row, write_run
from test_report import report

from iosonar.diagrams import machine
from iosonar.errors import UserError
from iosonar.figures.model import Empty, Figure, Steps
from iosonar.table import open_files

SAMPLES: dict[str, Any] = {
    "at_s": [1.0, 3.0],
    "busy_pct": [50.0, 100.0],
    "available_bytes": [10, 9],
    "received_bytes": [1000, 4000],
    "sent_bytes": [0, 20],
}
USAGE: dict[str, Any] = {
    **{"seconds": 3.0, "busy_pct": 83.3, "kernel_pct": 20.0, "iowait_pct": 0.0, "replayer_s": 1.0},
    **{"available_bytes": 9 << 30, "cached_bytes": 1, "dirty_bytes": 1, "received_bytes": 5000, "sent_bytes": 20},
    "interfaces": [{"name": "eth0", "received_bytes": 5000, "sent_bytes": 20}],
    "samples": SAMPLES,
}


def run_with(path: Path, usage: dict[str, Any]) -> Path:
    return write_run(path, [run_row(0)], run={"statistics": {"usage": usage}})


def drawn(path: Path, of: Any) -> Figure | Empty:
    with open_files([path]) as (files, _):
        found: Figure | Empty = of(files, "run", "g51")
        return found


def test_samples_are_steps_from_one_to_the_next(tmp_path: Path) -> None:
    path = run_with(tmp_path / "a.replay.parquet", USAGE)
    busy = drawn(path, machine.processors)
    assert isinstance(busy, Figure) and isinstance(steps := busy.layers[0], Steps)
    assert (list(steps.edges), list(steps.y)) == ([0.0, 1.0, 3.0], [50.0, 100.0])
    moved = drawn(path, machine.network)
    assert isinstance(moved, Figure)
    rates = [layer.y for layer in moved.layers if isinstance(layer, Steps)]
    assert np.allclose(rates, [[1000, 2000], [0, 10]])
    assert [row.cells for row in moved.legend.rows] == [("5 kB",), ("20 B",)]


@pytest.mark.parametrize("usage", [{}, {"samples": {}}, {"samples": {**SAMPLES, "busy_pct": []}}])
def test_a_run_without_samples_has_no_diagram(tmp_path: Path, usage: dict[str, Any]) -> None:
    path = tmp_path / "a.replay.parquet"
    run_with(path, {**USAGE, **usage}) if usage else write_run(path, [run_row(0)])
    assert drawn(path, machine.processors) == Empty(machine.PROCESSORS, machine.UNKNOWN)


def test_usage_of_another_type_is_an_error(tmp_path: Path) -> None:
    path = run_with(tmp_path / "a.replay.parquet", {**USAGE, "busy_pct": "much"})
    with pytest.raises(UserError, match=r"run.statistics.usage.busy_pct"):
        drawn(path, machine.processors)


def test_pages_say_what_the_machine_did(tmp_path: Path) -> None:
    statistics = {"statistics": {"usage": USAGE}}
    for path in (
        run_with(tmp_path / "a.replay.parquet", USAGE),
        write_calls_run(tmp_path / "b.calls-run.parquet", [replayed(0, "fsync", 0)], run=statistics),
    ):
        assert report(path, "--out", tmp_path) == 0
        (page,) = tmp_path.glob(f"{path.name[0]}*.html")
        assert "processors 83.3 % busy (20.0 % in the kernel), at least 9 GiB" in page.read_text(encoding="utf-8")
