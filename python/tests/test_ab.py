"""`iosonar ab`: alternating rounds of two sides."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from binary import iosonar

PROGRAM = Path(sys.executable).with_name("iosonar-ab")
SIMULATED = "--simulate constant=1ms --virtual-time"


@pytest.fixture
def load(tmp_path: Path) -> Path:
    path = tmp_path / "made.load.parquet"
    iosonar("generate", "uniform", path, "--rate", 100, "--duration", 1, "--span", "2M")
    return path


def ab(output: Path, a: str, b: str, *words: str, status: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [PROGRAM, "--a", a, "--b", b, "--output", output, *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == status, done.stderr
    return done


def test_rounds_alternate_and_finished_runs_are_kept(tmp_path: Path, load: Path) -> None:
    output = tmp_path / "x.ab"
    sides = (f"replay {load} {SIMULATED} --depth 1", f"iosonar replay {load} {SIMULATED} --depth 2")
    done = ab(output, *sides, "--rounds", "2", "--before", f"echo x >> {tmp_path}/before")
    started = [line.split(" ")[0] for line in done.stderr.splitlines() if " of 4)" in line]
    assert started == ["a.1", "b.1", "b.2", "a.2"]
    assert (tmp_path / "before").read_text() == "x\n" * 4
    assert len(list(output.glob("*.replay.parquet"))) == 4
    assert list(output.glob("*.html"))
    again = ab(output, *sides, "--rounds", "3", "--before", f"echo x >> {tmp_path}/before", "--json")
    assert (tmp_path / "before").read_text() == "x\n" * 6
    found = json.loads(again.stdout)
    assert [len(side["files"]) for side in found["sides"]] == [3, 3]
    assert len(list(output.glob("*.html"))) == 1


def test_sides_may_replay_calls(tmp_path: Path) -> None:
    trace = tmp_path / "t.calls.parquet"
    iosonar("files", "generate", "cms-analysis", trace, "--scale", "0.0001", "--rate", "2k")
    for side in "ab":
        (tmp_path / side).mkdir()
        iosonar("files", "prepare", trace, "--root", tmp_path / side)
    sides = [f"files replay {trace} --root {tmp_path / side} --asap" for side in "ab"]
    done = ab(tmp_path / "x.ab", *sides, "--rounds", "3", "--json", "--fail-if", "mismatches > 0")
    found = json.loads(done.stdout)
    assert [len(side["files"]) for side in found["sides"]] == [3, 3]
    assert [each["outcome"] for each in found["conditions"]] == ["does not hold"]


@pytest.mark.parametrize(
    ("a", "b", "why"),
    [
        ("info {load}", "replay {load}", "--a: begin it with one of replay, workload run, files replay"),
        ("replay {load}", "files replay t --root r", "one replays requests, the other calls"),
        ("replay {load} --output x", "replay {load}", "--a: --output: each round has its own"),
        ("replay {load}", "replay {load} --repeat=3", "--b: --repeat=3: each round has its own"),
        ("replay '{load}", "replay {load}", "--a: No closing quotation"),
    ],
)
def test_a_side_that_is_no_run_is_refused(tmp_path: Path, load: Path, a: str, b: str, why: str) -> None:
    done = ab(tmp_path / "x.ab", a.format(load=load), b.format(load=load), status=2)
    assert why in done.stderr
    assert not (tmp_path / "x.ab").exists()


def test_sides_with_other_loads_are_refused(tmp_path: Path, load: Path) -> None:
    other = tmp_path / "other.load.parquet"
    other.write_bytes(load.read_bytes())
    done = ab(tmp_path / "x.ab", f"replay {load} {SIMULATED}", f"replay {other} {SIMULATED}", status=1)
    assert "both sides must replay the same load" in done.stderr


def test_a_failure_before_a_run_ends_the_rounds(tmp_path: Path, load: Path) -> None:
    side = f"replay {load} {SIMULATED}"
    done = ab(tmp_path / "x.ab", side, side, "--before", "echo no space >&2; false", status=1)
    assert "a.1: --before failed: no space" in done.stderr
    done = ab(tmp_path / "y.ab", f"replay {tmp_path}/missing {SIMULATED}", side, status=1)
    assert "a.1: " in done.stderr and "missing" in done.stderr
