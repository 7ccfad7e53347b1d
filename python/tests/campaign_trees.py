"""Campaigns on this host, with regular files as devices."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from binary import iosonar, settled

from iosonar.campaign import state

PROGRAM = """
from iosonar.campaign import replays
replays.POLL_S = 0.05
from iosonar.cli.campaign import main
raise SystemExit(main())
"""

DEVICE_BYTES = 4 << 20
NO_PROXY = dict.fromkeys(("http_proxy", "https_proxy", "ftp_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "")


@functools.cache
def load_bytes(seconds: float = 2.0) -> bytes:
    """A load with 40 requests each second."""
    with tempfile.TemporaryDirectory() as directory:
        target = Path(directory) / "made.load.gz"
        iosonar("generate", "uniform", target, "--rate", 40, "--duration", seconds, "--span", "2M")
        return target.read_bytes()


class Campaign:
    """A tree with confs. `tmp` is the directory for temporary files of its runs."""

    def __init__(self, top: Path, **variables: object):
        self.top = top = top.absolute()
        self.tmp = top.with_name(f"{top.name}.tmp")
        top.mkdir(parents=True)
        self.tmp.mkdir()
        self.device = self.make_device("dev0")
        (top / "made.load.gz").write_bytes(load_bytes())
        defaults: dict[str, object] = {
            "replay_host_list": "localhost",
            "replay_device_list": self.device,
            "input_file_list": top / "made.load.gz",
            "output_label": "T",
            "output_format": "parquet",
            "replay_duration": 0.2,
            "threads": 4,
            "cmode": "with-partial",
            "vmode": "no-overhead",
            "start_grace": 0.6,
        }
        self.conf("default-main", "".join(f'{name}="{value}"\n' for name, value in {**defaults, **variables}.items()))

    def make_device(self, name: str) -> Path:
        """A regular file that is used as a device."""
        path = self.top.with_name(f"{self.top.name}.{name}")
        path.touch()
        os.truncate(path, DEVICE_BYTES)
        return path

    def conf(self, name: str, text: str = "", directory: str = ".") -> Path:
        """Writes a conf."""
        path = self.top / directory / f"{name}.conf"
        path.write_text(text)
        return path

    def leaf(self, path: str, text: str | None = None) -> Path:
        """Makes a directory, and a conf for each of its components that has none; `text` is that of the last."""
        directory = self.top / path
        directory.mkdir(parents=True)
        for name in Path(path).parts:
            if not (self.top / f"{name}.conf").exists():
                self.conf(name)
        if text is not None:
            self.conf(Path(path).name, text)
        return directory

    def environment(self, **more: str) -> dict[str, str]:
        """The environment of its programs."""
        program = str(Path(sys.executable).parent)
        return {
            **os.environ,
            **NO_PROXY,
            "PATH": f"{program}{os.pathsep}{os.environ['PATH']}",
            "TMPDIR": str(self.tmp),
            "XDG_CACHE_HOME": str(self.tmp / "cache"),
            **more,
        }

    def command(self, *words: str) -> list[str]:
        """The command line of `iosonar campaign`, which polls often."""
        return [sys.executable, "-c", PROGRAM, *words]

    def run(self, *words: str, status: int = 0, **environment: str) -> subprocess.CompletedProcess[str]:
        """Runs `iosonar campaign` in the top directory; it must end with this exit code."""
        done = subprocess.run(
            self.command(*words),
            cwd=self.top,
            env=self.environment(**environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="surrogateescape",
            timeout=500,
            check=False,
        )
        assert done.returncode == status, f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def state(self, leaf: str) -> state.LeafState:
        """The state of a leaf that was started."""
        found = state.read(self.top / leaf)
        assert found is not None, f"{leaf} was never started"
        return found

    def results(self, leaf: str = ".") -> list[str]:
        """The names of the finished results in a directory."""
        return [path.name for path in state.finished_results(self.top / leaf)]

    def left(self) -> list[str]:
        """What is left of it: temporary files, entries of the undo journal, processes."""
        journal = self.top / ".campaign/undo"
        found = [path.name for path in self.tmp.iterdir() if path.name != "cache"]
        found += [path.name for path in journal.iterdir()] if journal.exists() else []
        return found or settled(lambda: processes_of(self.tmp))


def processes_of(tmp: Path) -> list[str]:
    """The processes whose environment names a directory of temporary files."""
    mark = f"TMPDIR={tmp}".encode()
    found = []
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (directory / "environ").read_bytes().split(b"\0"):
                words = (directory / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                if words:
                    found.append(f"{directory.name}: {words}")
        except OSError:
            continue
    return found


def events(text: str, kind: str) -> list[dict[str, Any]]:
    """The events of a kind in the output of --json."""
    import json

    return [each for each in map(json.loads, text.splitlines()) if each["event"] == kind]


def leaf_order(text: str) -> Sequence[str]:
    """The leaves in the order in which they were started, from what a campaign prints."""
    return [line[5:] for line in text.splitlines() if line.startswith("leaf ") and ": " not in line]
