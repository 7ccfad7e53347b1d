"""The folder for what is temporary. It goes away with the program, also if that is ended by a signal."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from iosonar.cleanup import cleanup
from iosonar.errors import UserError

TRIES = 50


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Makes it in TMPDIR."""
    with cleanup.lock:
        try:
            folder = Path(tempfile.mkdtemp(prefix="iosonar-"))
        except OSError as error:
            raise UserError(
                f"cannot create a temporary directory: {error.strerror or error}; set TMPDIR to one with enough space"
            ) from error
        remove = cleanup.add(lambda: _remove(folder))
    try:
        yield folder
    finally:
        remove()


def _remove(folder: Path) -> None:
    """With all that it holds, also while an engine still writes to it."""
    for _ in range(TRIES):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(0.02)
