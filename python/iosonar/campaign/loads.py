"""The loads of a leaf on the controller: what is known of them, and what the filters make of them."""

from __future__ import annotations

import functools
import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from iosonar.campaign.program import own_program
from iosonar.campaign.shell import Shell
from iosonar.errors import UserError


class Loads:
    """Filtered loads are kept in a directory until the leaf ends."""

    def __init__(self, directory: Path):
        self._directory = directory
        self._filtered: dict[Path, Path] = {}

    def filtered(self, shell: Shell, source: Path) -> Path:
        """The load after it went through `input_pipe_list`."""
        if source not in self._filtered:
            self._directory.mkdir(parents=True, exist_ok=True)
            target = self._directory / f"{len(self._filtered)}.load.parquet"
            if shell.call("campaign_filter", str(source), str(target)) or not target.is_file():
                raise UserError(f"the filters failed on {source}")
            self._filtered[source] = target
        return self._filtered[source]

    def remove(self) -> None:
        """Removes the filtered loads."""
        shutil.rmtree(self._directory, ignore_errors=True)
        self._filtered.clear()


@dataclass(frozen=True)
class LoadInfo:
    """What `iosonar info` says of a load."""

    first_s: float
    """When its first request is due, and its last one, in its own time."""
    last_s: float
    requests: int
    """Or calls."""
    of_calls: bool = False


@functools.cache
def info(source: Path) -> LoadInfo | None:
    """What is known of a load; None if it cannot be read."""
    done = subprocess.run([own_program(), "info", "--json", source], capture_output=True, check=False)
    if done.returncode:
        return None
    try:
        found = json.loads(done.stdout)
        span = found["span"]
        of_calls = found["kind"] == "calls"
        rows = int(found["counts"]["calls" if of_calls else "requests"])
        return LoadInfo(span["first_ns"] / 1e9, span["last_ns"] / 1e9, rows, of_calls)
    except (ValueError, KeyError, TypeError):
        return None
