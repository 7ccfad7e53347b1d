"""Programs of `file_programs`, recorded; and their traces, compared call by call."""

from __future__ import annotations

import difflib
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

SCRIPTS = Path(__file__).with_name("file_programs")
PROGRAMS = ("sqlite", "git", "tar", "make", "postgres")
BINARY = Path(sys.executable).with_name("iosonar")

COMPARED = ("path", "path2", "fd", "fd2", "length", "offset", "flags", "mode", "process", "result", "errno")
"""Columns that both recorders fill."""


@dataclass(frozen=True)
class Recording:
    """A program's trace, and the directory as the program left it."""

    directory: Path
    trace: Path


@contextmanager
def work_directory() -> Iterator[Path]:
    """A directory that all users can enter, as PostgreSQL does not run as root."""
    directory = Path(tempfile.mkdtemp(prefix="iosonar-programs-", dir="/dev/shm"))
    directory.chmod(0o755)
    try:
        yield directory
    finally:
        shutil.rmtree(directory)


def record_both(program: str, below: Path) -> tuple[Recording, Path]:
    """Records a program with strace, and both of them with eBPF: the recording by strace, and the trace by eBPF."""
    directory, trace, around = _set_up(program, below / "both")
    inner = [BINARY, "files", "record", "--with", "strace", "--tree", directory, "--output", trace]
    outer = [BINARY, "files", "record", "--with", "ebpf", "--output", around]
    run(*outer, "--", *inner, "--", SCRIPTS / f"{program}.sh", "run", directory)
    return Recording(directory, trace), around


def record_by_ebpf(program: str, below: Path) -> Recording:
    """Records a program at its own speed."""
    directory, trace, _ = _set_up(program, below / "ebpf")
    words = [BINARY, "files", "record", "--with", "ebpf", "--tree", directory, "--output", trace]
    run(*words, "--", SCRIPTS / f"{program}.sh", "run", directory)
    return Recording(directory, trace)


def _set_up(program: str, below: Path) -> tuple[Path, Path, Path]:
    directory = below / program
    directory.mkdir(parents=True)
    run(SCRIPTS / f"{program}.sh", "setup", directory)
    return directory, below / f"{program}.calls.parquet", below / f"{program}-around.calls.parquet"


def run(*words: object, codes: tuple[int, ...] = (0,)) -> str:
    """Runs a command, which must end with one of the exit codes; returns its standard output."""
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    assert done.returncode in codes, f"{done.args} ended with {done.returncode}: {done.stderr}"
    return done.stdout


def calls_by_thread(trace: Path) -> dict[int, list[dict[str, Any]]]:
    """The calls of each thread, without mappings of memory that is no file."""
    found = defaultdict(list)
    for row in pq.read_table(trace).to_pylist():
        if row["call"] != "mmap" or row["fd"] is not None:
            found[row["thread"]].append(row)
    return found


def disagreements(by_strace: Path, by_ebpf: Path) -> tuple[int, list[str]]:
    """The number of calls that both traces have, and what differs.

    eBPF also recorded strace itself, and the first thread before strace traced it. The buffer size of `getcwd` is in
    strace's text only.
    """
    left, right = calls_by_thread(by_strace), calls_by_thread(by_ebpf)
    first = min(left, key=lambda thread: left[thread][0]["begin_ns"])
    program = left[first][0]["path"]
    skipped = next(i for i, row in enumerate(right[first]) if row["call"] == "execve" and row["path"] == program)
    right[first] = right[first][skipped:]
    same, found = 0, []
    for thread, calls in left.items():
        a, b = ([_shown(row) for row in rows] for rows in (calls, right[thread]))
        if a == b:
            same += len(a)
            continue
        lines = [line for line in difflib.ndiff(a, b) if line[0] in "+-"]
        same += len(a) - sum(line[0] == "-" for line in lines)
        found += [f"thread {thread}: {line}" for line in lines]
    return same, found


def _shown(row: dict[str, Any]) -> str:
    values = {name: row[name] for name in COMPARED}
    if row["call"] == "mmap":
        values["result"] = row["result"] is not None and row["result"] != -1
    if row["call"] == "getcwd":
        values["length"] = None
    return f"{row['call']} {values}"
