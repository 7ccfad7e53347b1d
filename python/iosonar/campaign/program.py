"""The iosonar programs of the controller: its own, and those for hosts of other architectures."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from pathlib import Path

from iosonar.errors import UserError


def own_program() -> Path:
    """The `iosonar` binary that belongs to this Python half, else the first in PATH."""
    for directory in (Path(sys.argv[0]).resolve().parent, Path(sys.prefix) / "bin"):
        if os.access(directory / "iosonar", os.X_OK) and (directory / "iosonar").is_file():
            return directory / "iosonar"
    if found := shutil.which("iosonar"):
        return Path(found).resolve()
    raise UserError("cannot find the program iosonar; install it beside iosonar-campaign or in PATH")


def program_for(architecture: str) -> Path:
    """The binary for an architecture as `uname -m` names it."""
    if architecture == platform.machine():
        return own_program()
    directory = os.environ.get("IOSONAR_BINARIES")
    if directory:
        binary = Path(directory) / f"iosonar.{architecture}"
        if binary.is_file():
            return binary
        raise UserError(f"no iosonar for {architecture}: {binary} is missing; build it there or copy it")
    raise UserError(
        f"no iosonar for {architecture}: name a directory with iosonar.{architecture} in the environment variable"
        " IOSONAR_BINARIES, or install the same version of iosonar on that host"
    )
