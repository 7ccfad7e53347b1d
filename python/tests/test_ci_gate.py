"""The action for CI: the script that GitHub and GitLab run, on loop devices with a planted slowdown and without."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from binary import settled

ACTION = Path(__file__).resolve().parents[2] / ".github/actions/compare"
BINARY = Path(sys.executable).with_name("iosonar")
MIB = 1 << 20


@pytest.fixture
def devices(tmp_path: Path) -> Iterator[list[str]]:
    """Three loop devices in memory. The kernel lets one write through to the last every 25 ms."""
    memory = Path(f"/dev/shm/iosonar-gate-{os.getpid()}")
    memory.mkdir()
    found: list[str] = []
    try:
        for name in ("base", "same", "slow"):
            file = memory / name
            file.write_bytes(os.urandom(8 * MIB))
            found.append(_attach(file))
        with throttled(found[-1], 40):
            yield found
    finally:
        for device in found:
            subprocess.run(["losetup", "--detach", device], check=True)
        for file in memory.iterdir():
            file.unlink()
        memory.rmdir()


@contextmanager
def throttled(device: str, per_second: int) -> Iterator[None]:
    """Limits the writes to a device of this process and of its children."""
    number = Path(device).stat().st_rdev
    name = f"{os.major(number)}:{os.minor(number)}"
    # The second version of control groups, else the first.
    unified = Path("/sys/fs/cgroup")
    is_unified = (unified / "cgroup.controllers").exists()
    if is_unified:
        parent = unified
        (unified / "cgroup.subtree_control").write_text("+io")
    else:
        parent = unified / "blkio"
    before = parent / own_group("" if is_unified else "blkio")
    group = parent / f"iosonar-gate-{os.getpid()}"
    group.mkdir()
    try:
        limit, words = ("io.max", "wiops=") if is_unified else ("blkio.throttle.write_iops_device", "")
        (group / limit).write_text(f"{name} {words}{per_second}")
        (group / "cgroup.procs").write_text(str(os.getpid()))
        yield
    finally:
        (before / "cgroup.procs").write_text(str(os.getpid()))
        # A killed process needs a moment to end.
        assert settled(lambda: (group / "cgroup.procs").read_text().split()) == []
        group.rmdir()


def own_group(controller: str) -> str:
    """The control group of this process, relative to the root of its hierarchy."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            return path.lstrip("/")
    raise AssertionError(f"no control group for {controller or 'all'}")


def _attach(file: Path, *options: str) -> str:
    words = ["losetup", "--show", "--find", *options, str(file)]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()


def gate(directory: Path, base: str, branch: str, **others: str) -> subprocess.CompletedProcess[str]:
    """Runs the script as the action does."""
    with start_gate(directory, base, branch, **others) as process:
        said, messages = process.communicate()
    return subprocess.CompletedProcess(process.args, process.returncode, said, messages)


def start_gate(directory: Path, base: str, branch: str, **others: str) -> subprocess.Popen[str]:
    """Starts the script."""
    load = directory / "ci.load.parquet"
    if not load.exists():
        made = "generate poisson --rate 100 --duration 1s --reads 0 --size 4k --span 8M"
        kind, *options = made.split()[1:]
        subprocess.run([BINARY, "generate", kind, load, *options], check=True)

    def side(device: str) -> str:
        return f"replay {load} --target {device} --asap --depth 1 --force"

    environment = {
        **os.environ,
        "IOSONAR": str(BINARY),
        "BASE": side(base),
        "BRANCH": side(branch),
        "ROUNDS": "4",
        "OUTPUT": str(directory / "gate.ab"),
        "GITHUB_STEP_SUMMARY": str(directory / "summary.md"),
        **others,
    }
    pipe = subprocess.PIPE
    return subprocess.Popen([ACTION / "gate.sh"], stdout=pipe, stderr=pipe, text=True, env=environment)


def verdict(judged: subprocess.CompletedProcess[str]) -> str:
    return next(line for line in judged.stdout.splitlines() if line.startswith("gate: "))


SLOWER = "throughput < -50%"


def test_a_planted_slowdown_fails_the_job(tmp_path: Path, devices: list[str]) -> None:
    base, _, slow = devices
    for _ in range(6):
        judged = gate(tmp_path, base, slow, FAIL_IF=SLOWER)
        # On a busy machine; the message advises to try again.
        if not verdict(judged).startswith("gate: undecided"):
            break
    assert verdict(judged) == "gate: failed: a condition holds", judged.stdout + judged.stderr
    assert judged.returncode == 1
    assert "<failure" in (tmp_path / "gate.xml").read_text()
    assert "p50" in (tmp_path / "summary.md").read_text()


@pytest.mark.parametrize(("branch", "rule"), [("same", SLOWER), ("slow", "errors > 0")])
def test_what_keeps_the_rule_does_not_fail_the_job(tmp_path: Path, devices: list[str], branch: str, rule: str) -> None:
    base, same, slow = devices
    judged = gate(tmp_path, base, {"same": same, "slow": slow}[branch], FAIL_IF=rule)
    assert not verdict(judged).startswith("gate: failed"), judged.stdout + judged.stderr
    assert judged.returncode == 0
    assert "<failure" not in (tmp_path / "gate.xml").read_text()
    assert rule == SLOWER or verdict(judged) == "gate: passed"


@pytest.mark.parametrize(("undecided", "code"), [("pass", 0), ("warn", 4), ("fail", 1)])
def test_runs_that_cannot_decide_end_as_chosen(tmp_path: Path, devices: list[str], undecided: str, code: int) -> None:
    # One run of each side shows no difference.
    judged = gate(tmp_path, devices[0], devices[1], FAIL_IF="p50 > +100%", ROUNDS="1", UNDECIDED=undecided)
    assert verdict(judged).startswith("gate: undecided"), judged.stdout + judged.stderr
    assert judged.returncode == code
    assert ("<error" in (tmp_path / "gate.xml").read_text()) == (undecided == "fail")


def test_a_wrong_rule_is_an_error_not_a_pass(tmp_path: Path, devices: list[str]) -> None:
    judged = gate(tmp_path, devices[0], devices[1], FAIL_IF="p50 is slow")
    assert judged.returncode == 2, judged.stdout + judged.stderr


@pytest.mark.parametrize(
    ("others", "said"), [({"FAIL_IF": "\n \n"}, "no condition"), ({"UNDECIDED": "maybe"}, "maybe")]
)
def test_wrong_settings_are_errors_before_any_run(tmp_path: Path, others: dict[str, str], said: str) -> None:
    judged = gate(tmp_path, "/nowhere", "/nowhere", **{"FAIL_IF": "p50 > +100%", **others})
    assert judged.returncode == 2 and said in judged.stderr
    assert not (tmp_path / "gate.ab").exists()


def test_a_job_judges_runs_of_its_own(tmp_path: Path, devices: list[str]) -> None:
    base, same, _ = devices
    results = tmp_path / "gate.ab"
    gate(tmp_path, base, same, FAIL_IF="errors > 0", ROUNDS="1")
    first = (results / "a.1.replay.parquet").stat().st_mtime_ns
    judged = gate(tmp_path, base, same, FAIL_IF="errors > 0", ROUNDS="1")
    assert judged.returncode == 0, judged.stdout + judged.stderr
    assert (results / "a.1.replay.parquet").stat().st_mtime_ns > first


def test_files_of_others_are_kept(tmp_path: Path, devices: list[str]) -> None:
    notes = tmp_path / "gate.md"
    notes.write_text("mine")
    judged = gate(tmp_path, *devices[:2], FAIL_IF="p50 > +100%")
    assert judged.returncode == 2 and "iosonar did not write it" in judged.stderr
    assert notes.read_text() == "mine"


def test_a_signal_ends_the_runs_as_well(tmp_path: Path, devices: list[str]) -> None:
    # The shell before a run says that it has begun.
    begun = tmp_path / "begun"
    words = {"FAIL_IF": "errors > 0", "BEFORE": f"echo $PPID >{begun}; sleep 600"}
    with start_gate(tmp_path, *devices[:2], **words) as process:
        while not (begun.exists() and begun.read_text().endswith("\n")):
            assert process.poll() is None
            time.sleep(0.05)
        process.terminate()
        assert process.wait() > 128
    assert not Path(f"/proc/{begun.read_text().strip()}").exists()


def test_both_services_run_the_same_script() -> None:
    for name in ("action.yml", "gitlab.yml"):
        assert "gate.sh" in (ACTION / name).read_text()
    script = (ACTION / "gate.sh").read_text()
    for variable in ("BASE", "BRANCH", "FAIL_IF", "ROUNDS", "BEFORE", "UNDECIDED", "OUTPUT", "IOSONAR"):
        assert f"#   {variable}" in script or f", {variable}" in script
        assert f"        {variable}: ${{{{" in (ACTION / "action.yml").read_text() or variable == "IOSONAR"
