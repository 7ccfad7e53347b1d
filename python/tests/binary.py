"""Runs the binary of the Rust half."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import jsonschema
import pytest

T = TypeVar("T")
TOP = Path(__file__).resolve().parents[2]


def iosonar(*words: object) -> str:
    """Runs the binary beside this interpreter, which must succeed; returns its standard output."""
    binary = Path(sys.executable).with_name("iosonar")
    assert binary.exists(), f"{binary} is missing: `make .venv/program-dev` builds it"
    done = subprocess.run([binary, *map(str, words)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.args} ended with {done.returncode}: {done.stderr}"
    return done.stdout


def replay(load: Path, target: Path, run: Path, *words: object) -> dict[str, Any]:
    """Replays; returns the closing statistics, validated against their schema."""
    statistics: dict[str, Any] = json.loads(
        iosonar("replay", load, "--target", target, "--output", run, "--json", *words)
    )
    schema = json.loads((TOP / "docs/schemas/replay-statistics.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(statistics, schema)
    return statistics


def settled(look: Callable[[], list[T]]) -> list[T]:
    """What is left after processes that are about to end have done so."""
    until = time.monotonic() + 60
    while (found := look()) and time.monotonic() < until:
        time.sleep(0.02)
    return found


def need(what: str, means: str) -> None:
    """Fails the test if the machine lacks "root" or "loop", unless IOSONAR_WITHOUT skips it: see CONTRIBUTING.md."""
    if what in os.environ.get("IOSONAR_WITHOUT", "").split(","):
        pytest.skip(f"skipped because of IOSONAR_WITHOUT: needs {what}")
    if os.geteuid() != 0 or (what == "loop" and not Path("/dev/loop-control").exists()):
        pytest.fail(f"this test needs {means}; skip such tests with IOSONAR_WITHOUT={what}")


@contextmanager
def loop_device(bytes_: int) -> Iterator[Path]:
    """A loop device over a sparse file in memory."""
    need("loop", "root and loop devices")
    backing = Path("/dev/shm") / f"iosonar-test-{os.getpid()}"
    backing.touch()
    try:
        os.truncate(backing, bytes_)
        words = ["losetup", "--find", "--show", "--direct-io=on", str(backing)]
        device = subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()
        try:
            yield Path(device)
        finally:
            subprocess.run(["losetup", "--detach", device], check=True)
    finally:
        backing.unlink()


@contextmanager
def small_file_system(directory: Path, size: str) -> Iterator[Path]:
    """A file system of this size in memory, at the directory, which is made."""
    need("root", "root, to mount a small file system")
    directory.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "iosonar-test", directory], check=True)
    try:
        yield directory
    finally:
        subprocess.run(["umount", directory], check=True)
