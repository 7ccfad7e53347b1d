"""Opens files and names them by descriptor (/proc/self/fd/N), so that no engine interprets their names.

Engines take `*` as a glob, a directory `op=read` as a partition column, and `a:b` as a URL.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

from iosonar.errors import UserError
from iosonar.text import shown

_DIRECTORY = "/proc/self/fd"
_USER_PATHS: dict[str, Path] = {}
"""The paths as the user named them, by path in _DIRECTORY."""
_OPEN_INPUTS: Counter[tuple[int, int]] = Counter()
"""Open files, and pipes that were copied, by device and inode."""


def open_file(given: Path, stack: ExitStack) -> Path:
    """Opens a regular file until the stack unwinds; returns its path in /proc/self/fd.

    The path stays valid if the file is renamed or deleted.
    """
    try:
        # Without O_NONBLOCK, opening a pipe without a writer blocks.
        number = os.open(given, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        stack.callback(os.close, number)
        status = os.fstat(number)
    except (OSError, ValueError) as error:
        raise UserError(f"{shown(given)}: {getattr(error, 'strerror', None) or error}") from error
    if stat.S_ISDIR(status.st_mode):
        raise UserError(f"{shown(given)}: Is a directory")
    if not stat.S_ISREG(status.st_mode):
        raise UserError(f"{shown(given)}: not a regular file; copy it to one")
    identity = (status.st_dev, status.st_ino)
    _OPEN_INPUTS[identity] += 1
    stack.callback(_OPEN_INPUTS.subtract, [identity])
    path = f"{_DIRECTORY}/{number}"
    _USER_PATHS[path] = given
    return Path(path)


def copy_of_pipe(given: Path, directory: Path) -> Path | None:
    """Copies a pipe to a file in the directory; returns None if the path is not a pipe."""
    try:
        status = given.stat()
        if not stat.S_ISFIFO(status.st_mode):
            return None
        # Never removed: a writer of this pipe would wait for another reader.
        _OPEN_INPUTS[(status.st_dev, status.st_ino)] += 1
        copy = directory / f"piped-{status.st_ino}"
        with given.open("rb") as source, copy.open("wb") as target:
            shutil.copyfileobj(source, target)
    except (OSError, ValueError) as error:
        raise UserError(f"{shown(given)}: {getattr(error, 'strerror', None) or error}") from error
    return copy


def is_input(path: Path) -> bool:
    """Whether the path is an open input file or a copied pipe, under any name."""
    try:
        status = path.stat()
    except OSError:
        return False
    return _OPEN_INPUTS[(status.st_dev, status.st_ino)] > 0


def with_given_names(text: str) -> str:
    """Replaces descriptor paths in a message by the paths that the user named."""
    return re.sub(
        rf"(?:file://)?{_DIRECTORY}/\d+",
        lambda found: shown(_USER_PATHS.get(found[0].removeprefix("file://"), found[0])),
        text,
    )


def set_display_name(path: Path, name: Path) -> None:
    """Makes messages about the open file `path` name it `name`."""
    _USER_PATHS[str(path)] = name


def given_paths() -> list[Path]:
    """The paths of all inputs so far, as the user named them."""
    return list(dict.fromkeys(_USER_PATHS.values()))
