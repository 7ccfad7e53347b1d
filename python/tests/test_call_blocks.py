from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from call_factory import call, read, write, write_calls, write_scale
from factory import LOAD_TYPES, US, S, load_row, write_load
from test_report import report

from iosonar.diagrams.calls.scaling import scaling_curve
from iosonar.errors import UsageError
from iosonar.figures.model import Empty, Figure, Line
from iosonar.quantities.calls.attribution import FileRequests, requests_of_files
from iosonar.quantities.calls.scaling import JobTimes
from iosonar.table import calls_of, open_files
from iosonar.table.blocks import blocks_beside

RECORDED = pa.schema(LOAD_TYPES | {"pid": pa.int32(), "process": pa.string()})
EPOCH = 1_700_000_000 * S
CLOCKS = {"epoch_unix_ns": EPOCH, "clocks": {"unix_ns": EPOCH, "monotonic_ns": 500 * S}}


def request(at_us: float, op: str, sectors: int, pid: int, process: str) -> dict[str, Any]:
    return load_row(round(at_us * US), sectors=sectors, op=op) | {"pid": pid, "process": process}


def recording(path: Path, rows: list[dict[str, Any]], **footer: Any) -> Path:
    return write_load(path, pa.Table.from_pylist(rows, RECORDED), **footer)


def found(trace: Path, load: Path) -> list[FileRequests]:
    with open_files([trace, load]) as (files, spill), calls_of(files[0], spill) as calls:
        return requests_of_files(calls.table, blocks_beside(calls, files[1]).table)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    rows = [
        read(100, "/a", 0, 4096, duration_ns=50 * US, process=7),
        write(200, "/b", 0, 1000, duration_ns=5 * US, process=7),
        call("fsync", 300, 100, fd=4, file="/b", process=7),
        # A thread of the same process reads while the other one syncs.
        read(350, "/a", 4096, 4096, duration_ns=20 * US, process=7, thread=2),
        read(500, "/cached", 0, 100, process=7),
        read(510, "/dev/zero", 0, 100, process=7),
    ]
    return write_calls(tmp_path / "t.calls.parquet", rows, **CLOCKS)


def test_requests_belong_to_the_call_in_progress(trace: Path, tmp_path: Path) -> None:
    # The load's zero is 1 s before that of the trace.
    s = 1e6
    rows = [
        request(s + 120, "read", 64, 7, "db"),
        request(s + 320, "write", 8, 7, "db"),
        request(s + 360, "read", 8, 7, "db"),
        request(s + 360, "write", 8, 7, "db"),
        request(s + 450, "write", 16, 99, "kworker/u8:1-flush-8:0"),
        request(s + 460, "write", 16, 98, "kworker/u8:2-flush-8:0"),
    ]
    clocks = {"epoch_unix_ns": EPOCH - S, "clocks": {"unix_ns": EPOCH + 9 * S, "monotonic_ns": 509 * S}}
    load = recording(tmp_path / "b.load.parquet", rows, **clocks)
    assert found(trace, load) == [
        FileRequests("/a", True, 8192, 0, 72 * 512, 0, 2),
        FileRequests("kworker", False, 0, 0, 0, 32 * 512, 2),
        FileRequests("/b", True, 0, 1000, 0, 16 * 512, 2),
        FileRequests("/cached", True, 100, 0, 0, 0, 0),
    ]


def test_amplification_is_requests_by_calls() -> None:
    one = FileRequests("/a", True, 1000, 0, 4000, 512, 2)
    assert (one.read_amplification, one.write_amplification) == (4.0, None)


def test_the_wall_clock_is_used_if_a_file_has_no_other(trace: Path, tmp_path: Path) -> None:
    load = recording(tmp_path / "b.load.parquet", [request(120, "read", 8, 7, "db")], epoch_unix_ns=EPOCH)
    assert found(trace, load)[0].requested_read == 4096


@pytest.mark.parametrize(
    ("schema", "footer", "reason"),
    [
        (RECORDED, {}, "does not say when it was recorded"),
        (pa.schema(LOAD_TYPES), CLOCKS, "no column pid"),
    ],
)
def test_a_recording_without_what_blocks_needs_is_refused(
    trace: Path, tmp_path: Path, schema: pa.Schema, footer: dict[str, Any], reason: str
) -> None:
    table = pa.Table.from_pylist([request(120, "read", 8, 7, "db")], schema)
    load = write_load(tmp_path / "b.load.parquet", table, **footer)
    with pytest.raises(UsageError, match=reason):
        found(trace, load)


@pytest.mark.slow
def test_the_report_shows_amplification(trace: Path, tmp_path: Path) -> None:
    load = recording(tmp_path / "b.load.parquet", [request(120, "read", 64, 7, "db")], **CLOCKS)
    assert report(trace, "--blocks", load, "--out", tmp_path) == 0
    page = (tmp_path / "t.calls.report.html").read_text()
    assert "Bytes of calls and of the requests that they caused" in page
    assert "4 ×" in page


def test_a_scaling_curve_has_program_and_replay(tmp_path: Path) -> None:
    rows = [
        {"instances": number, "what": what, "instance": instance, "seconds": float(number + instance)}
        for what in ("program", "replay")
        for number in (1, 2, 4)
        for instance in range(number)
    ]
    path = write_scale(tmp_path / "job.scale.parquet", rows)
    assert report(path, "--out", tmp_path) == 0
    assert "Scaling: time of an instance" in (tmp_path / "job.scale.report.html").read_text()
    curve = scaling_curve([JobTimes("replay", 2, 2.5, 2, 3)], "job")
    assert isinstance(curve, Figure)
    (mean, span) = (layer for layer in curve.layers if isinstance(layer, Line))
    assert (mean.y.tolist(), span.y[:6].tolist()) == ([2.5], [2, 2, 2, 3, 3, 3])


def test_a_scaling_curve_needs_instances() -> None:
    assert isinstance(scaling_curve([], "job"), Empty)
