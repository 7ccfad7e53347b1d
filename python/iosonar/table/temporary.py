"""A directory for temporary files. It is removed when the program ends, also by a signal."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from iosonar.cleanup import cleanup
from iosonar.errors import UserError

REMOVAL_ATTEMPTS = 50
RESERVED = 3
"""File descriptors that removing a directory with its subdirectories needs."""


@contextmanager
def temporary_directory() -> Iterator[Path]:
    """Creates the directory in TMPDIR, and removes it at the end."""
    with cleanup.lock:
        try:
            directory = Path(tempfile.mkdtemp(prefix="iosonar-"))
        except OSError as error:
            raise UserError(
                f"cannot create a temporary directory: {error.strerror or error}; set TMPDIR to one with enough space"
            ) from error
        reserve: list[int] = []
        remove = cleanup.add(lambda: _remove(directory, reserve))
        try:
            for _ in range(RESERVED):
                reserve.append(os.open(directory, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY))  # noqa: PERF401
        except OSError as error:
            remove()
            raise UserError(f"cannot open a temporary directory: {error.strerror or error}") from error
    try:
        yield directory
    finally:
        remove()


def _remove(directory: Path, reserve: list[int]) -> None:
    """Removes the directory with its content, even while an engine still writes to it or no file descriptor is left."""
    while reserve:
        os.close(reserve.pop())
    for _ in range(REMOVAL_ATTEMPTS):
        with suppress(OSError):
            # Needs no descriptor.
            directory.rmdir()
        shutil.rmtree(directory, ignore_errors=True)
        if not directory.exists():
            return
        time.sleep(0.02)
