from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import extremes
import pytest
from extremes import LAST, LONGEST, YEAR, check
from factory import MS, US, S, run_row, write_load, write_run
from hypothesis import given, settings
from hypothesis import strategies as st

GIB = 1 << 30
TIMES = [0, 1, US, MS, S, 18 * 3600 * S, 7 * 86_400 * S, YEAR, 30 * YEAR]
NEAR = st.one_of(st.integers(0, 5), st.sampled_from(TIMES), st.integers(0, 30 * YEAR))
"""Three of them after the latest origin stay below the limit of 146 years."""
SECTORS = st.one_of(st.integers(0, 100), st.sampled_from([2**31, 2**40, 2**53, LAST - LONGEST]), st.integers(0, 2**53))
LENGTHS = st.one_of(st.integers(0, 64), st.sampled_from([2**20, LONGEST]), st.integers(1, LONGEST))
REQUESTS = st.lists(
    st.tuples(NEAR, NEAR, NEAR, SECTORS, LENGTHS, st.integers(0, 2), st.sampled_from(["read", "write", "flush"])),
    max_size=12,
)
"""Time, delay, latency, sector, sectors, device, operation."""


@contextmanager
def memory(more: int) -> Iterator[None]:
    """Limits further memory of the process to `more` bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + more, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@settings(max_examples=6)
@given(
    requests=REQUESTS,
    origin=st.sampled_from([0, -S, -40 * YEAR, 1_700_000_000 * S, 40 * YEAR]),
    early=st.booleans(),
    device=st.sampled_from([None, 8, 2**21, LAST]),
    counted=st.booleans(),
)
def test_every_diagram_of_odd_tables(
    tmp_path: Path,
    requests: list[tuple[int, int, int, int, int, int, str]],
    origin: int,
    early: bool,
    device: int | None,
    counted: bool,
) -> None:
    rows = [
        run_row(
            number,
            scheduled=origin + at,
            # Some issued before their scheduled time, at the limits of times.
            delay=-(delay // 10) if early else delay,
            latency=latency,
            sector=sector,
            sectors=0 if op == "flush" else sectors,
            device=which,
            op=op,
            in_flight=number + 1 if counted else None,
        )
        for number, (at, delay, latency, sector, sectors, which, op) in enumerate(requests)
    ]
    target = {"run": {"target": {"path": "/dev/x", "kind": "block", "sectors": device}}} if device else {}
    run = write_run(tmp_path / "a.replay.parquet", rows, **target)
    load = write_load(tmp_path / "a.load.parquet", extremes.load_of(rows))
    with memory(2 * GIB):
        check([run])
        check([load])


def test_every_diagram_at_the_limits_of_tables(tmp_path: Path) -> None:
    # In a separate process with limited memory. Each row of RUNS is drawn as a run and as a load.
    done = subprocess.run(
        [sys.executable, extremes.__file__, tmp_path, str(4 * GIB)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONWARNINGS": "ignore"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line.split(maxsplit=1) for line in done.stdout.splitlines()]
    assert len(lines) == len(extremes.RUNS)
    assert max(int(mib) for mib, _ in lines) < 1024, done.stdout


@pytest.mark.parametrize("seconds", ["1e-10", "1e300"])
def test_windows_below_a_nanosecond_are_refused_or_rounded_up(tmp_path: Path, seconds: str) -> None:
    run = write_run(tmp_path / "a.replay.parquet", [run_row(0), run_row(1, scheduled=S)])
    words: list[str | Path] = [
        run,
        "--out",
        tmp_path,
        "--window",
        seconds,
        "--bad-latency",
        "1e300",
        "--only",
        "overview.thrp",
    ]
    done = subprocess.run(
        [sys.executable, "-c", "from iosonar.cli.report import main; main()", *words, "--format", "png"],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr
    assert done.returncode == (2 if seconds == "1e-10" else 0), done.stderr
