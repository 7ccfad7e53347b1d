"""Makes tables of files in other formats, and of tables in another form, by the Rust half's `iosonar convert`."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from iosonar.cleanup import cleanup
from iosonar.errors import UserError
from iosonar.text import plain, shown


def find_binary() -> Path:
    """The `iosonar` binary: beside the program that runs, beside its interpreter, or on the path."""
    for folder in (Path(sys.argv[0]).absolute().parent, Path(sys.executable).parent):
        binary = folder / "iosonar"
        if binary.is_file():
            return binary
    found = shutil.which("iosonar")
    if found is None:
        raise UserError(
            "cannot find the `iosonar` binary, which reads all formats but Parquet: it is neither beside this program "
            "nor on the PATH; `pip install .` in the source directory installs it"
        )
    return Path(found)


def convert(source: Path, target: Path) -> None:
    """Makes a table in the form of docs/schema.md of a file in any format that the Rust half reads."""
    words: list[str | Path] = [
        find_binary(),
        "convert",
        f"./{source}" if str(source).startswith("-") else source,
        target,
    ]
    with cleanup.lock:
        # In its own session, so that Ctrl-C reaches this program alone; cleanup then kills the child.
        process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        ended = cleanup.add(process.kill, process=True)
    try:
        errors = process.communicate()[1]
    finally:
        ended()
    if process.returncode != 0:
        said = errors.decode(errors="replace").strip().splitlines()
        # The reason is the last line; notices about the file may precede it.
        reason = plain(said[-1].removeprefix("iosonar: ").removeprefix("error: ")) if said else ""
        raise UserError(reason or f"{shown(source)}: `iosonar convert` failed with exit code {process.returncode}")
