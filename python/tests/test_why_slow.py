"""`iosonar diagnose --request N`: one sentence about what held the request up."""

from pathlib import Path

import numpy as np
import pytest
from factory import MS, US
from findings_kit import made

from iosonar.errors import UserError
from iosonar.library.run import open_run

ROWS = 2000
SLOW = 1000


def sentence(path: Path, number: int = SLOW) -> str:
    with open_run(path, original="none") as run:
        return run.why_slow(number).sentence


def run(path: Path, before_op: str = "read", *, alone: bool = True, sectors: int = 8, sector: int = 0) -> Path:
    """A request each 10 ms; SLOW takes 40 ms, as does the one before it, which is of another kind or size."""
    at = np.arange(ROWS) * 10 * MS
    latency = np.full(ROWS, 300 * US)
    latency[SLOW] = 40 * MS
    latency[SLOW - 1] = 49 * MS if before_op != "read" or sectors != 8 or sector else 300 * US
    if not alone:
        latency[SLOW + 1 : SLOW + 4] = 30 * MS
    op, lengths, sectors_of = np.full(ROWS, "read", object), np.full(ROWS, 8), np.arange(ROWS) * 4096
    op[SLOW - 1], lengths[SLOW - 1] = before_op, 0 if before_op == "flush" else sectors
    if sector:
        sectors_of[SLOW - 1] = sectors_of[SLOW]
    return made(path / "a.replay.parquet", at, latency, op=op.tolist(), sectors=lengths, sector=sectors_of)


def test_a_request_behind_a_flush_names_it(tmp_path: Path) -> None:
    text = sentence(run(tmp_path, "flush"))
    assert text == (
        "Request 1000, a read of 4 KiB, took 40 ms instead of the usual 300 µs: "
        "it waited behind a flush (request 999) that was in flight."
    )


def test_a_request_behind_a_large_one_names_its_size(tmp_path: Path) -> None:
    assert sentence(run(tmp_path, "write", sectors=8192)).endswith(
        "behind a write of 4 MiB (request 999) that was in flight."
    )


def test_a_request_to_the_same_place_names_the_other(tmp_path: Path) -> None:
    assert sentence(run(tmp_path, "write", sector=1)).endswith(
        "it met a write to the same place (request 999) in flight."
    )


def test_a_slow_request_is_alone_or_not(tmp_path: Path) -> None:
    assert "it was slow alone, as 1 of 1 request issued meanwhile were not" in sentence(run(tmp_path))
    assert "the storage paused, as 1 of 1 request issued meanwhile were slow" in sentence(run(tmp_path, alone=False))


def test_a_usual_request_is_called_usual(tmp_path: Path) -> None:
    path = run(tmp_path)
    assert sentence(path, 5).endswith("took 300 µs, which is usual: half of all take 300 µs.")
    with pytest.raises(UserError, match="has no request 9999"):
        sentence(path, 9999)
