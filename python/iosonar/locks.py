"""Locks of files. A lock ends with the last process that has the file open."""

from __future__ import annotations

import fcntl
import time
from pathlib import Path
from typing import IO, Any

TRIES, EACH_S = 20, 0.05


def is_held(path: Path) -> bool:
    """Whether a process holds the lock of the file."""
    try:
        with path.open() as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        pass
    return False


def becomes_free(file: int | IO[Any]) -> bool:
    """Takes the lock of the file. Tries for a second, as a killed process needs a moment to end."""
    for number in range(TRIES):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if number < TRIES - 1:
                time.sleep(EACH_S)
    return False
