"""A campaign of one leaf on loop devices, with programs that only record how they are called."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from binary import iosonar

from iosonar.campaign import confs

DEFAULTS = confs.BASE / "defaults"
PROGRAMS = Path(sys.executable).parent
SIZE = 4 << 20


@dataclass
class Ended:
    """A campaign that has ended."""

    code: int
    output: str


class Campaign:
    """A campaign of one leaf, on loop devices."""

    def __init__(self, directory: Path, devices: list[Path]):
        self.top = top = directory / "top"
        self.devices = devices
        self.programs = directory / "programs"
        self.calls = directory / "calls"
        top.mkdir()
        self.programs.mkdir()
        self.calls.touch()
        (top / "leaf").mkdir()
        for conf in DEFAULTS.glob("default-*.conf"):
            shutil.copy(conf, top)
        load = top / "a.load.gz"
        iosonar("generate", "uniform", load, "--rate", 100, "--duration", "500ms", "--span", "4M")

    def conf(self, text: str) -> None:
        """Writes the conf of the leaf."""
        devices = " ".join(map(str, self.devices))
        main = f"replay_host_list=localhost replay_device_list='{devices}' input_file_list=a.load.gz start_grace=3"
        (self.top / "leaf.conf").write_text(f"{main}\nreplay_duration=1 enable_graph=0 output_label=T\n{text}\n")

    def program(self, name: str, script: str = "") -> None:
        """Puts a program into the path that writes down its arguments."""
        path = self.programs / name
        path.write_text(f'#!/bin/bash\necho "{name} $*" >>"{self.calls}"\n{script}\n')
        path.chmod(0o755)

    def called(self, name: str) -> list[str]:
        """The arguments of each call of a program."""
        lines = self.calls.read_text().splitlines()
        return [line.removeprefix(f"{name} ") for line in lines if line.startswith(f"{name} ")]

    def run(self, *words: str) -> Ended:
        """Runs it; checks that the undo journal is empty, unless the controller was killed."""
        path = f"{self.programs}:{PROGRAMS}:{os.environ['PATH']}:/usr/sbin:/sbin"
        done = subprocess.run(
            [PROGRAMS / "iosonar", "campaign", *words],
            cwd=self.top,
            env={**os.environ, "PATH": path},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
            check=False,
        )
        if done.returncode >= 0:
            assert self.undo_entries() == [], done.stdout
        return Ended(done.returncode, done.stdout)

    def undo_entries(self) -> list[Path]:
        """The entries of the undo journal."""
        return sorted((self.top / ".campaign/undo").glob("[0-9]*"))

    def state(self) -> dict[str, object]:
        """campaign.json of the leaf."""
        state: dict[str, object] = json.loads((self.top / "leaf/campaign.json").read_text())
        return state

    def scheduler(self) -> str:
        """The active scheduler of the first device."""
        text = Path(f"/sys/block/{self.devices[0].name}/queue/scheduler").read_text()
        return text.partition("[")[2].partition("]")[0]
