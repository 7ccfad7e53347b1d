"""A folder for temporary files. It is removed when the program ends, also by a signal."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from iosonar.cleanup import cleanup
from iosonar.errors import UserError

REMOVAL_ATTEMPTS = 50


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Creates the folder in TMPDIR, and removes it at the end."""
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
    """Removes the folder with its content, even while an engine still writes to it."""
    for _ in range(REMOVAL_ATTEMPTS):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(0.02)
