"""What docs/campaign.md shows works as it is written there, only shorter."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from binary import TOP

DOCUMENT = (TOP / "docs/campaign.md").read_text()
# Short runs on small files, of one of the two loads.
SHORTER = {
    "replay_duration=5": "replay_duration=0.2",
    "start_grace=1": "start_grace=1 --override enable_graph=0",
    "fallocate -l 1G": "fallocate -l 16M",
    "cd first\n": "cd first; touch steady/skip\n",
    "cd storages\n": "cd storages; touch steady/skip\n",
}


def blocks(heading: str, language: str = "") -> list[str]:
    """The code blocks below a heading."""
    section = DOCUMENT.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    found: list[str] = re.findall(rf"(?ms)^```{language}\n(.*?)^```", section)
    return found


def shell(script: str, cwd: Path, **variables: str) -> str:
    """Runs a script; returns what it printed."""
    programs = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", **variables}
    done = subprocess.run(
        ["bash", "-ec", script], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A temporary directory of its own, in which nothing may be left."""
    directory = tmp_path / "tmp"
    directory.mkdir()
    monkeypatch.setenv("TMPDIR", str(directory))
    return directory


@pytest.mark.slow
def test_the_tutorial_works_as_written(tmp_path: Path, temporary: Path) -> None:
    commands = [block for heading in ("A first campaign", "Compare two storages") for block in blocks(heading)]
    script = "".join(block for block in commands if not block.startswith(("bursts/", "leaf ")))
    for long, short in SHORTER.items():
        assert long in script
        script = script.replace(long, short)
    shell(script, tmp_path)
    first = json.loads(shell("iosonar campaign status --json first", tmp_path))
    repeats = {"001": (1, 2), "004": (1,), "016": (1, 2), "256": (1, 2)}
    assert [row["leaf"] for row in first] == [
        f"bursts/depth-{depth}/repeat-{number}" for depth, numbers in repeats.items() for number in numbers
    ]
    storages = json.loads(shell("iosonar campaign status --json storages", tmp_path))
    assert [row["leaf"] for row in storages] == [
        f"{storage}/bursts/depth-016/repeat-{number}" for storage in ("disk", "other") for number in (1, 2, 3)
    ]
    assert {row["state"] for row in first + storages} == {"done"}
    assert not list(temporary.iterdir())


def test_the_leaves_of_the_tutorial_are_those_of_a_new_campaign(tmp_path: Path) -> None:
    shown = next(block for block in blocks("A first campaign") if block.startswith("bursts/"))
    made = shell("iosonar campaign new first --repeats 2", tmp_path)
    assert [line.removeprefix("first/") for line in made.split()] == sorted(shown.split())


def test_the_module_of_the_reference_acts_and_is_undone(tmp_path: Path, temporary: Path) -> None:
    [module] = blocks("Your own module", "bash")
    top = tmp_path / "top"
    programs = tmp_path / "programs"
    programs.mkdir()
    calls = tmp_path / "calls"
    (programs / "systemctl").write_text(f'#!/bin/sh\necho "$*" >> {calls}\n')
    (programs / "systemctl").chmod(0o755)
    shell(f"iosonar campaign new top --device {tmp_path}/disk.img; fallocate -l 16M disk.img", tmp_path)
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules/50_quiet.sh").write_text(module)
    (top / "user_modules.conf").write_text("user_module_dir=../modules\n")
    (top / "steady.conf").write_text((top / "steady.conf").read_text() + "enable_quiet=1\n")
    for leaf in ("bursts", "steady/depth-016", "steady/depth-256"):
        (top / leaf / "skip").touch()
    path = f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    words = "--override replay_duration=0.2 --override start_grace=1 --override enable_graph=0"
    shell(f"PATH={path} iosonar campaign {words}", top)
    assert calls.read_text() == "stop cron\nstart cron\n"
    assert not list((top / ".campaign/undo").iterdir())
