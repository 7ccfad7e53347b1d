"""The action for CI: the script that GitHub and GitLab run, on loop devices with a planted slowdown and without."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ACTION = Path(__file__).resolve().parents[2] / ".github/actions/compare"
BINARY = Path(sys.executable).with_name("iosonar")
MIB = 1 << 20


@pytest.fixture
def devices(tmp_path: Path) -> Iterator[list[str]]:
    """Two loop devices in memory, and one on a file that is synchronised with the disk."""
    memory = Path(f"/dev/shm/iosonar-gate-{os.getpid()}")
    memory.mkdir()
    found: list[str] = []
    try:
        for name in ("base", "same"):
            file = memory / name
            file.write_bytes(os.urandom(8 * MIB))
            found.append(_attach(file))
        slow = tmp_path / "slow"
        slow.write_bytes(os.urandom(8 * MIB))
        found.append(_attach(slow, "--direct-io=on"))
        yield found
    finally:
        for device in found:
            subprocess.run(["losetup", "--detach", device], check=True)
        for file in memory.iterdir():
            file.unlink()
        memory.rmdir()


def _attach(file: Path, *options: str) -> str:
    words = ["losetup", "--show", "--find", *options, str(file)]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()


def gate(directory: Path, base: str, branch: str, **others: str) -> subprocess.CompletedProcess[str]:
    """Runs the script as the action does."""
    load = directory / "ci.load.parquet"
    if not load.exists():
        made = "generate poisson --rate 100 --duration 3s --reads 0 --size 4k --span 8M"
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
    return subprocess.run([ACTION / "gate.sh"], capture_output=True, text=True, env=environment, check=False)


@pytest.mark.parametrize("rule", ["p50 > +100%", "errors > 0"])
def test_the_job_ends_as_the_gate_says(tmp_path: Path, devices: list[str], rule: str) -> None:
    base, _, slow = devices
    judged = gate(tmp_path, base, slow, FAIL_IF=rule)
    said = next(line for line in judged.stdout.splitlines() if line.startswith("gate: "))
    assert (judged.returncode == 1) == said.startswith("gate: failed"), judged.stdout + judged.stderr
    assert ("<failure" in (tmp_path / "gate.xml").read_text()) == (judged.returncode == 1)
    assert "p50" in (tmp_path / "summary.md").read_text()
    assert rule.startswith("p50") or said == "gate: passed"


def test_a_wrong_rule_is_an_error_not_a_pass(tmp_path: Path, devices: list[str]) -> None:
    judged = gate(tmp_path, devices[0], devices[1], FAIL_IF="p50 is slow")
    assert judged.returncode == 2, judged.stdout + judged.stderr


def test_both_services_run_the_same_script() -> None:
    for name in ("action.yml", "gitlab.yml"):
        assert "gate.sh" in (ACTION / name).read_text()
    script = (ACTION / "gate.sh").read_text()
    for variable in ("BASE", "BRANCH", "FAIL_IF", "ROUNDS", "BEFORE", "UNDECIDED", "OUTPUT", "IOSONAR"):
        assert f"#   {variable}" in script or f", {variable}" in script
        assert f"        {variable}: ${{{{" in (ACTION / "action.yml").read_text() or variable == "IOSONAR"
