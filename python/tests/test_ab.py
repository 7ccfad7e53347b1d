"""`iosonar ab`: alternating rounds of two sides."""

from __future__ import annotations

import hashlib
import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from binary import iosonar

from iosonar.series.inputs import inputs_of

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


@pytest.fixture
def finished(tmp_path: Path, load: Path) -> tuple[Path, str]:
    """A series of two rounds, and the command of both sides."""
    side = f"replay {load} {SIMULATED}"
    ab(tmp_path / "x.ab", side, side, "--rounds", "2")
    return tmp_path / "x.ab", side


def test_rounds_that_exist_are_said_to_be_old(finished: tuple[Path, str]) -> None:
    output, side = finished
    again = ab(output, side, side, "--rounds", "2")
    assert again.stderr.splitlines()[0] == f"all 2 rounds exist in {output}: nothing was run"
    fewer = ab(output, side, side, "--rounds", "1", "--json")
    assert f"{output} has 2 rounds: only the first is compared" in fewer.stderr.splitlines()
    names = [[Path(each).name for each in one["files"]] for one in json.loads(fewer.stdout)["sides"]]
    assert names == [["a.1.replay.parquet"], ["b.1.replay.parquet"]]
    (output / "a.1.replay.parquet").unlink()
    (output / "a.2.replay.parquet").unlink()
    # The second round is not complete, either, but not wanted.
    missing = ab(output, side, side, "--rounds", "1")
    assert [line for line in missing.stderr.splitlines() if "a." in line] == ["a.1 (1 of 2)"]
    assert "nothing was run" not in missing.stderr


@pytest.mark.parametrize(
    ("setting", "why"),
    [
        ("load", "the content of {load} was {bytes:,} bytes, SHA-256 {sha256:.12}…, is "),
        ("the program", "the program was iosonar 0.0.0, 9 bytes, SHA-256 abc…, is iosonar "),
        ("the kernel", "the kernel was 6.0 #1, is "),
    ],
)
def test_a_series_of_another_state_is_refused(finished: tuple[Path, str], load: Path, setting: str, why: str) -> None:
    output, side = finished
    plan = json.loads((output / "series.json").read_text())
    state = plan["settings"][f"the content of {load}"]
    assert state == {"bytes": load.stat().st_size, "sha256": hashlib.sha256(load.read_bytes()).hexdigest()}
    if setting == "load":
        iosonar("generate", "uniform", load, "--rate", 100, "--duration", 2, "--span", "2M", "--overwrite")
    else:
        assert plan["settings"][setting]
        earlier = {
            "the program": {"version": "iosonar 0.0.0", "bytes": 9, "sha256": "abc"},
            "the kernel": "6.0 #1",
        }
        plan["settings"][setting] = earlier[setting]
        (output / "series.json").write_text(json.dumps(plan))
    runs = {each: each.stat().st_mtime_ns for each in output.glob("*.parquet")}
    done = ab(output, side, side, "--rounds", "2", status=1)
    assert why.format(load=load, **state) in done.stderr
    assert "use another --output, or --overwrite, which removes these runs first" in done.stderr
    assert runs == {each: each.stat().st_mtime_ns for each in output.glob("*.parquet")}
    if setting == "load":
        renewed = ab(output, side, side, "--rounds", "1", "--overwrite")
        assert [line for line in renewed.stderr.splitlines() if " of 2)" in line] == ["a.1 (1 of 2)", "b.1 (2 of 2)"]
        assert sorted(each.name for each in output.glob("*.parquet")) == ["a.1.replay.parquet", "b.1.replay.parquet"]


def test_overwrite_removes_only_the_runs_of_a_series(finished: tuple[Path, str], tmp_path: Path, load: Path) -> None:
    output, side = finished
    notes, other = output / "notes.txt", tmp_path / "other.ab"
    notes.write_text("mine")
    ab(output, f"{side} --depth 2", side, "--rounds", "1", "--overwrite")
    assert notes.read_text() == "mine"
    assert sorted(each.name[:3] for each in output.glob("*.parquet")) == ["a.1", "b.1"]
    other.mkdir()
    (other / "a.1.replay.parquet").write_bytes(load.read_bytes())
    refused = ab(other, side, side, "--overwrite", status=1)
    assert "is not the directory of a series" in refused.stderr and [each.name for each in other.iterdir()] == [
        "a.1.replay.parquet"
    ]
    (other / "series.json").write_text(json.dumps({"version": 1, "kind": "sweep", "points": []}))
    assert "another kind of series" in ab(other, side, side, "--overwrite", status=1).stderr


@pytest.mark.parametrize(
    ("of_b", "why"),
    [
        ("replay {missing} --target {target}", "--b: {missing}: no such file or directory"),
        ("replay {load} --target {missing}", "--b: {missing}: no such file or directory"),
        ("replay {load} --target {target} --dpeth 3", "--b: error: unexpected argument '--dpeth' found"),
    ],
)
def test_wrong_commands_are_refused_before_any_run(
    finished: tuple[Path, str], tmp_path: Path, load: Path, of_b: str, why: str
) -> None:
    output, side = finished
    names = {"load": load, "target": load, "missing": tmp_path / "missing"}
    runs = {each: each.stat().st_mtime_ns for each in output.glob("*.parquet")}
    words = (side, of_b.format(**names), "--rounds", "1", "--overwrite")
    done = ab(output, *words, status=2 if "dpeth" in of_b else 1)
    assert why.format(**names) in done.stderr and "a.1" not in done.stderr
    assert runs == {each: each.stat().st_mtime_ns for each in output.glob("*.parquet")}


@pytest.mark.parametrize("word", ["--target artificial=", "--target=artificial="])
def test_a_target_for_a_device_of_the_load_is_no_missing_file(tmp_path: Path, load: Path, word: str) -> None:
    target = tmp_path / "target"
    target.write_bytes(b"\1" * (2 << 20))
    side = f"replay {load} {word}{target} --engine null --asap"
    assert "a.1 (1 of 2)" in ab(tmp_path / "x.ab", side, side, "--rounds", "1").stderr


def test_a_copy_of_a_load_is_the_same_load(tmp_path: Path, load: Path) -> None:
    copy = tmp_path / "copy.load.parquet"
    copy.write_bytes(load.read_bytes())
    sides = [f"replay {each} {SIMULATED}" for each in (load, copy)]
    done = ab(tmp_path / "x.ab", *sides, "--rounds", "1", "--json")
    assert json.loads(done.stdout)["comparisons"][0]["same_load"]
    iosonar("generate", "uniform", copy, "--rate", 100, "--duration", 2, "--span", "2M", "--overwrite")
    other = ab(tmp_path / "y.ab", *sides, "--rounds", "1", status=1)
    assert "both sides must replay the same load" in other.stderr


@pytest.mark.parametrize("plan", ["{", '{"version": 0}'])
def test_a_damaged_series_can_be_overwritten(finished: tuple[Path, str], plan: str) -> None:
    output, side = finished
    (output / "series.json").write_text(plan)
    assert "use another --output" in ab(output, side, side, "--rounds", "1", status=1).stderr
    renewed = ab(output, side, side, "--rounds", "1", "--overwrite")
    assert [line for line in renewed.stderr.splitlines() if " of 2)" in line] == ["a.1 (1 of 2)", "b.1 (2 of 2)"]


def test_inputs_are_the_files_that_a_command_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("l.load.parquet", "other.gz", "disk.toml", "t.img", "calls", "r"):
        Path(name).touch()
    words = "replay l.load.parquet --edit 'adjacent with=other.gz | dense' --simulate=disk.toml -t t.img --target=t.img"
    assert inputs_of(shlex.split(words)) == ["l.load.parquet", "other.gz", "disk.toml"]
    assert inputs_of(shlex.split("files replay calls --root r --target a=t.img -tt.img")) == ["calls"]


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


def test_a_failure_before_a_run_ends_the_rounds(tmp_path: Path, load: Path) -> None:
    side = f"replay {load} {SIMULATED}"
    done = ab(tmp_path / "x.ab", side, side, "--before", "echo no space >&2; false", status=1)
    assert "a.1: --before failed: no space" in done.stderr
    done = ab(tmp_path / "y.ab", f"replay {tmp_path}/missing {SIMULATED}", side, status=1)
    assert "--a: " in done.stderr and "missing" in done.stderr
