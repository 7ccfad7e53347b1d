"""The loads of a leaf on the controller: their durations, and what the filters make of them."""

from __future__ import annotations

import functools
import json
import shutil
import subprocess
from pathlib import Path

from iosonar.campaign.program import own_program
from iosonar.campaign.shell import Shell
from iosonar.errors import UserError


class Loads:
    """Filtered loads are kept in a directory until the leaf ends."""

    def __init__(self, directory: Path):
        self._directory = directory
        self._filtered: dict[Path, Path] = {}

    def filtered(self, shell: Shell | None, source: Path) -> Path:
        """The load after it went through `input_pipe_list`."""
        assert shell
        if source not in self._filtered:
            self._directory.mkdir(parents=True, exist_ok=True)
            target = self._directory / f"{len(self._filtered)}.load.parquet"
            if shell.call("campaign_filter", str(source), str(target)) or not target.is_file():
                raise UserError(f"the filters failed on {source}")
            self._filtered[source] = target
        return self._filtered[source]

    def duration_s(self, source: Path) -> float | None:
        """The duration of a load; None if it cannot be read."""
        return _duration_s(source)

    def remove(self) -> None:
        """Removes the filtered loads."""
        shutil.rmtree(self._directory, ignore_errors=True)
        self._filtered.clear()


@functools.cache
def _duration_s(source: Path) -> float | None:
    done = subprocess.run([own_program(), "info", "--json", source], capture_output=True, check=False)
    if done.returncode:
        return None
    try:
        duration = json.loads(done.stdout)["duration_s"]
    except (ValueError, KeyError):
        return None
    return float(duration) if duration is not None else None
