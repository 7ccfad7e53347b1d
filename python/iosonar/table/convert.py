"""Makes Parquet of the classic text, by the Rust half's `iosonar convert`."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from iosonar.errors import UserError


def find_binary() -> Path:
    """The `iosonar` binary: beside the program that runs, beside its interpreter, or on the path."""
    for folder in (Path(sys.argv[0]).absolute().parent, Path(sys.executable).parent):
        binary = folder / "iosonar"
        if binary.is_file():
            return binary
    found = shutil.which("iosonar")
    if found is None:
        raise UserError(
            "the `iosonar` binary is needed to read anything but Parquet, and it is neither beside this program nor on "
            "the path; `pip install .` in the source folder installs it"
        )
    return Path(found)


def convert(given: Path, folder: Path) -> Path:
    """Converts a file that is not Parquet into `folder`; returns the new file's path."""
    parquet = folder / f"{len(list(folder.iterdir()))}.{given.name}.parquet"
    done = subprocess.run(
        [find_binary(), "convert", given, parquet],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        reason = done.stderr.strip().removeprefix("iosonar: ")
        raise UserError(reason or f"{given}: `iosonar convert` failed with exit code {done.returncode}")
    return parquet
