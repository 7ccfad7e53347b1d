"""`iosonar view --follow`: the journal of a replay, read while it goes on."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from binary import iosonar

from iosonar.errors import UserError
from iosonar.view.follow import Following, following, rows_of
from iosonar.view.journal import LAYOUTS, Journal


def start(directory: Path, seconds: int = 8) -> tuple[subprocess.Popen[bytes], Path]:
    """Starts a replay to a file; returns it and its result."""
    load, target, run = (directory / name for name in ("a.load.parquet", "disk", "a.replay.parquet"))
    shape = ("--size", "4k", "--reads", "0.7", "--span", "16M", "--seed", "1")
    iosonar("generate", "poisson", load, "--rate", "500", "--duration", f"{seconds}s", *shape)
    target.write_bytes(bytes(16 << 20))
    binary = Path(sys.executable).with_name("iosonar")
    words: list[str | Path] = [binary, "replay", load, "--target", target, "--overwrite", "--output", run]
    return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL), run


def until(met: Callable[[], object], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not met():
        assert time.monotonic() < end, "it does not come"
        time.sleep(0.05)


def state(view: Following) -> dict[str, Any]:
    found = view.state({})
    assert isinstance(found, dict)
    return found


def test_a_view_grows_with_the_run_and_says_when_it_ends(tmp_path: Path) -> None:
    replay, run = start(tmp_path, 20)
    try:
        journal = Path(f"{run}.journal")
        until(lambda: journal.exists() and journal.stat().st_size > 100_000)
        with following(run, None) as view:
            first = state(view)
            assert first["follows"] and first["rows"] > 0 and "goes on" in first["text"]
            until(lambda: state(view)["rows"] > first["rows"])
            found = view.request({"row": "0"})
            assert isinstance(found, dict) and found["columns"]

            # What it has read is what the binary makes of the same journal.
            copy = tmp_path / "copy.replay.parquet.journal"
            shutil.copy(journal, copy)
            read = Journal(copy)
            entries, places = read.read()
            read.close()
            iosonar("recover", copy)
            table = pq.read_table(tmp_path / "copy.replay.parquet")
            assert len(entries) == table.num_rows > 0
            order, same = np.argsort(entries["request"]), np.argsort(table["request"].to_numpy())
            for name in ("request", "scheduled_ns", "issued_ns", "completed_ns", "sector", "bytes_done", "in_flight"):
                assert (entries[name][order] == table[name].to_numpy()[same]).all(), name
            assert (rows_of(entries, places)["sectors"][order] == table["sectors"].to_numpy()[same]).all()
            kinds = rows_of(entries, places)["kind"][order]
            assert (kinds == (np.array(table["op"].to_pylist())[same] == "write")).all()

            until(lambda: not state(view)["follows"])
            assert replay.wait(30) == 0
            last = state(view)
            assert last["text"] == f"The run has ended: iosonar view {run} shows its result."
            rows = pq.read_table(run)
            assert last["rows"] == rows.num_rows
            issued = np.sort(rows["issued_ns"].to_numpy())
            assert (view.figures.index.requests.begin == issued).all()
        with pytest.raises(UserError, match="whose run has ended: iosonar view"), following(run, None):
            pass
    finally:
        replay.kill()
        replay.wait()


def test_the_journal_of_a_killed_run_is_said_to_be_one(tmp_path: Path) -> None:
    replay, run = start(tmp_path)
    journal = Path(f"{run}.journal")
    try:
        until(lambda: journal.exists() and journal.stat().st_size > 50_000)
    finally:
        replay.kill()
        replay.wait()
    with following(journal, None) as view:
        until(lambda: not state(view)["follows"])
        assert f"iosonar recover {journal}" in view.words and len(view.growing) > 0


def test_what_is_no_journal_of_requests_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="start the replay first"), following(tmp_path / "a.replay.parquet", None):
        pass
    for content, reason in (
        (b"", "no journal"),
        (b"nonsense of sixteen bytes", "no journal"),
        (b"iosonar\x09" + bytes(8), "this version"),
        (b"iosonar\x03\x02\0\0\0\0\0\0\0{}", "header is damaged"),
    ):
        path = tmp_path / "b.replay.parquet.journal"
        path.write_bytes(content)
        with pytest.raises(UserError, match=reason), following(path, None):
            pass


def test_damaged_entries_are_left_out(tmp_path: Path) -> None:
    header = b"{}"
    content = b"iosonar\x03" + len(header).to_bytes(4, "little") + zlib.crc32(header).to_bytes(4, "little") + header
    made = np.zeros(3, LAYOUTS[3])
    made["request"] = (5, 6, 7)
    for entry in made:
        entry["crc"] = zlib.crc32(entry.tobytes()[:-4])
    made["sector"][1] = 9
    path = tmp_path / "a.journal"
    # The last entry is not yet whole.
    path.write_bytes(content + made.tobytes() + made.tobytes()[:50])
    journal = Journal(path)
    entries, places = journal.read()
    assert entries["request"].tolist() == [5, 7] and journal.damaged == 1
    assert journal.entry_at(int(places[1]))["request"] == 7
    with path.open("ab") as file:
        file.write(made.tobytes()[50 : LAYOUTS[3].itemsize])
    assert journal.read()[0]["request"].tolist() == [5]
    journal.close()
