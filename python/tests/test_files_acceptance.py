"""Real programs: recorded by strace and by eBPF, and replayed on several file systems."""

from __future__ import annotations

import errno
import json
import os
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from file_trees import differences, file_system
from recorded_programs import (
    BINARY,
    PROGRAMS,
    Recording,
    disagreements,
    record_both,
    record_by_ebpf,
    run,
    work_directory,
)

pytestmark = pytest.mark.slow

REPLAYS = (
    ("ebpf", "exact", "tmpfs"),
    ("ebpf", "asap", "ext4"),
    ("ebpf", "exact", "xfs"),
    ("ebpf", "asap", "btrfs"),
    ("strace", "asap", "tmpfs"),
)


class Recordings:
    """The programs' recordings, each made when it is needed first."""

    def __init__(self, below: Path) -> None:
        self.below = below
        self.both = cache(lambda program: record_both(program, below))
        self.by_ebpf = cache(lambda program: record_by_ebpf(program, below))

    def recording(self, program: str, recorder: str) -> Recording:
        return self.by_ebpf(program) if recorder == "ebpf" else self.both(program)[0]


def is_explained(mismatch: dict[str, Any]) -> bool:
    """Whether docs/files-replay.md names this reason for other results."""
    # Root may do what the server's user may not; the name of a socket is not made.
    return mismatch["expected_errno"] == errno.EACCES or ".s.PGSQL." in (mismatch["first_path"] or "")


def differing_without_overlap(trace: Path, result: Path, kinds: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The calls of these kinds whose results differ although no write to the same file overlapped them in the trace.

    Which of two overlapping calls took effect first is not in the trace: docs/files-orders.md.
    """
    names = {(kind["call"], kind["outcome"]) for kind in kinds}
    differing = [row for row in pq.read_table(result).to_pylist() if (row["call"], row["outcome"]) in names]
    recorded = pq.read_table(trace).to_pylist()
    writes = defaultdict(list)
    for row in recorded:
        if row["call"] in ("write", "pwrite64"):
            writes[row["path"]].append(row)

    def overlaps(row: dict[str, Any]) -> bool:
        call = recorded[row["call_number"]]
        end = call["begin_ns"] + call["duration_ns"]
        others = (write for write in writes[call["path"]] if write["thread"] != call["thread"])
        return any(
            write["begin_ns"] <= end and call["begin_ns"] <= write["begin_ns"] + write["duration_ns"]
            for write in others
        )

    return [row for row in differing if not overlaps(row)]


@pytest.fixture(scope="module")
def recordings() -> Iterator[Recordings]:
    with work_directory() as directory:
        yield Recordings(directory)


@pytest.mark.parametrize("program", PROGRAMS)
def test_strace_and_ebpf_record_the_same_calls(program: str, recordings: Recordings) -> None:
    recording, around = recordings.both(program)
    same, found = disagreements(recording.trace, around)
    assert found == []
    assert same > 1000


@pytest.mark.parametrize(("recorder", "timing", "kind"), REPLAYS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_replay_has_the_results_and_the_tree_of_the_program(
    program: str, recorder: str, timing: str, kind: str, recordings: Recordings, tmp_path: Path
) -> None:
    recording = recordings.recording(program, recorder)
    result = tmp_path / "x.calls-run.parquet"
    with file_system(kind, tmp_path / "root") as root:
        run(BINARY, "files", "prepare", recording.trace, "--root", root)
        words = ["--root", root, "--output", result, "--timing", timing, "--json"]
        found = json.loads(run(BINARY, "files", "replay", recording.trace, *words, codes=(0, 4)))
        unexplained = [each for each in found["mismatch_kinds"] if not is_explained(each)]
        assert not unexplained or differing_without_overlap(recording.trace, result, unexplained) == []
        assert found["order"]["violations"] == 0 and found["order"]["pairs"] > 0
        replayed = root / os.path.relpath(recording.directory, "/")
        assert differences(recording.directory, replayed) == []
