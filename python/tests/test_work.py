import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from binary import iosonar
from factory import MS, S, load_row, run_row, write_load, write_run

import iosonar as library
from iosonar.quantities.work import demand
from iosonar.table import open_requests

SHORT = {"outcome": "short", "bytes_done": 512}
FAILED = {"outcome": "error", "errno": 5, "bytes_done": 0}
DROPPED = {"outcome": "dropped", "issued_ns": None, "completed_ns": None, "bytes_done": 0}
RUN: tuple[dict[str, Any], ...] = (
    *({}, {"op": "write"}, SHORT, SHORT | {"op": "write"}, FAILED, FAILED | {"op": "write"}, DROPPED),
    *(
        {"outcome": "corrupt"},
        {"op": "discard"},
        {"op": "write_zeroes"},
        {"op": "flush", "sectors": 0, "bytes_done": 0},
    ),
)
"""What runs say of their requests, which read 8704 bytes and write 4608."""

STRACE = """\
7 1700000001.0 openat(AT_FDCWD, "/a", O_RDWR) = 3</a> <0.1>
7 1700000001.1 read(3</a>, ""..., 500) = 500 <0.1>
7 1700000001.2 read(0, ""..., 70) = 7 <0.1>
7 1700000001.3 read(3</a>, 0x1, 500) = -1 EIO (Input/output error) <0.1>
7 1700000001.4 write(9, ""..., 30) = 30 <0.1>
7 1700000001.5 copy_file_range(3</a>, NULL, 9, NULL, 4000, 0) = 4000 <0.1>
"""


def of_run(directory: Path) -> Path:
    rows = [run_row(n, scheduled=n * MS, **more) for n, more in enumerate(RUN)]
    return write_run(directory / "a.replay.parquet", rows)


def of_load(directory: Path) -> Path:
    ops = ("read", "write", "write", "discard", "write_zeroes", "flush")
    rows = [load_row(n * MS, op=op, sectors=0 if op == "flush" else 8) for n, op in enumerate(ops)]
    return write_load(directory / "a.load.parquet", rows)


def of_trace(directory: Path) -> Path:
    (directory / "a.strace").write_text(STRACE)
    iosonar("convert", directory / "a.strace", directory / "a.calls.parquet")
    return directory / "a.calls.parquet"


@pytest.mark.parametrize(
    ("made", "read", "written"), [(of_run, 8704, 4608), (of_load, 4096, 8192), (of_trace, 507, 4030)]
)
def test_both_halves_count_the_bytes_that_were_moved(
    made: Callable[[Path], Path], read: int, written: int, tmp_path: Path
) -> None:
    path = made(tmp_path)
    assert json.loads(iosonar("info", "--json", path))["bytes"] == {"read": read, "written": written}
    with library.open(path) as opened:
        assert opened.summary.bytes_moved == read + written
    column, view = ("bytes", "calls") if made is of_trace else ("bytes_moved", "requests")
    found = iosonar("sql", path, f"SELECT sum({column})::BIGINT FROM {view}", "--format", "csv")
    assert int(found.splitlines()[1]) == read + written
    if made is not of_trace:
        found = iosonar("sql", path, "SELECT sum(bytes)::BIGINT FROM per_second", "--format", "csv")
        assert int(found.splitlines()[1]) == read + written


def test_a_replay_counts_the_bytes_that_were_moved(tmp_path: Path) -> None:
    run = tmp_path / "a.replay.parquet"
    words = ("--simulate", "constant=1ms", "--virtual-time", "--json")
    statistics = json.loads(iosonar("replay", of_load(tmp_path), "--output", run, *words))
    moved = json.loads(iosonar("info", "--json", run))["bytes"]
    assert statistics["bytes_per_s"] * statistics["elapsed_s"] == pytest.approx(moved["read"] + moved["written"])


def test_data_beyond_64_bits_does_not_overflow(tmp_path: Path) -> None:
    rows = [load_row(number * S, sectors=(1 << 54) - 8) for number in range(8)]
    with open_requests([write_load(tmp_path / "a.load.parquet", rows)]) as requests:
        asked = demand(requests.table)
    assert (asked.requests, asked.seconds) == (8, 7.0)
    assert abs(asked.data / (8 * ((1 << 54) - 8) * 512) - 1) < 1e-12
