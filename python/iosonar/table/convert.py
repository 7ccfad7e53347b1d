"""Converts files in other formats, or tables in another form, by the Rust half's `iosonar convert`."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from iosonar.cleanup import cleanup
from iosonar.errors import UserError
from iosonar.text import plain, shown


def find_binary() -> Path:
    """The `iosonar` binary: beside this program, beside its interpreter, or on the path."""
    for directory in (Path(sys.argv[0]).absolute().parent, Path(sys.executable).parent):
        binary = directory / "iosonar"
        if binary.is_file():
            return binary
    found = shutil.which("iosonar")
    if found is None:
        raise UserError(
            "cannot find the `iosonar` binary, which reads all formats but Parquet: it is neither beside this program "
            "nor on the PATH; `pip install .` in the source directory installs it"
        )
    return Path(found)


def convert(source: Path, target: Path, given: Path | None = None) -> None:
    """Converts a file in any format that the Rust half reads to a table of docs/schema.md.

    Errors name it `given`, the name that the user knows.
    """
    command: list[str | Path] = [
        find_binary(),
        "convert",
        f"./{source}" if str(source).startswith("-") else source,
        target,
    ]
    with cleanup.lock:
        # In its own session, so that Ctrl-C reaches only this program; cleanup then kills the child.
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        unregister = cleanup.add(process.kill, process=True)
    try:
        errors = process.communicate()[1]
    finally:
        unregister()
    if process.returncode != 0:
        messages = errors.decode(errors="replace").strip().splitlines()
        # The reason is the last line; warnings about the file may precede it.
        reason = plain(messages[-1].removeprefix("iosonar: ").removeprefix("error: ")) if messages else ""
        known = shown(given or source)
        reason = reason.replace(shown(source), known)
        raise UserError(reason or f"{known}: `iosonar convert` failed with exit code {process.returncode}")
