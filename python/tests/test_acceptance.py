"""The natural loads from file to pictures; `make acceptance` sets their directory."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow.parquet
import pytest
from binary import iosonar, loop_device, replay
from test_report import png_size, report

pytestmark = pytest.mark.acceptance

GIB = 1 << 30

# Name, data lines, reads, writes: counted in the files without iosonar.
LOADS = [("linux-mysql", 80_794, 7_187, 73_607), ("windows-mssql", 42_976, 2_528, 40_448)]


def natural(name: str) -> Path:
    """A natural load's file."""
    directory = os.environ.get("IOSONAR_LOADS")
    if directory is None:
        pytest.fail("IOSONAR_LOADS must name the directory of the natural loads: run `make acceptance LOADS=DIR`")
    return Path(directory) / f"{name}.load.gz"


@pytest.mark.parametrize("name", [load[0] for load in LOADS])
def test_pictures_of_a_load(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert report(natural(name), "--format", "png", "--out", tmp_path) == 0
    written = {Path(line).name: Path(line) for line in capsys.readouterr().out.splitlines()}
    assert f"{name}.load.g000.overview.thrp.png" in written
    assert {png_size(path) for path in written.values()} == {(1200, 800)}


@pytest.mark.parametrize(("name", "lines", "reads", "writes"), LOADS)
def test_every_line_is_replayed_once_and_drawn(name: str, lines: int, reads: int, writes: int, tmp_path: Path) -> None:
    run = tmp_path / f"{name}.replay.parquet"
    with loop_device(4 * GIB) as device:
        statistics = replay(natural(name), device, run, "--speedup", 100)
    assert (statistics["requests"], statistics["reads"], statistics["writes"]) == (lines, reads, writes)
    assert statistics["bad_lines"] == 0 and statistics["errors"] == 0 and statistics["complete"]
    # The load is larger than the device: it wraps around.
    assert statistics["wrap_factor"] > 5
    table = pyarrow.parquet.read_table(run, columns=["request", "outcome"]).to_pydict()
    assert sorted(table["request"]) == list(range(lines))
    left_out = statistics["skipped"]["beyond_end"]
    assert sum(outcome != "ok" for outcome in table["outcome"]) == left_out
    assert left_out < lines / 100, "only requests across the end of the device may be skipped"
    iosonar("report", run, "--format", "png", "--out", tmp_path)
    assert (tmp_path / f"{name}.g01.latency.realtime.png").exists()
