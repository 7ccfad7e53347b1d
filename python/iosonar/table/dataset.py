"""A directory of Parquet files, as host=…/device=…, named like a file: its files are the parts of one run."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterable, Iterator
from pathlib import Path

from iosonar.errors import UserError
from iosonar.text import shown

SUFFIX = ".parquet"

RESERVED = 200
"""Descriptors for everything but the files of a directory."""


def files_in(paths: Iterable[Path]) -> list[Path]:
    """The paths, with the Parquet files below it in place of each directory, in the order of their paths."""
    found = [file for path in paths for file in (_parts(path) if path.is_dir() else [path])]
    _allow_open(len(found))
    return found


def _parts(directory: Path) -> list[Path]:
    found = sorted(_below(directory))
    if not found:
        raise UserError(f"{shown(directory)}: Is a directory, and no file *{SUFFIX} is below it")
    return found


def _below(directory: Path) -> Iterator[Path]:
    """All parts; names that begin with _ or . are those of unfinished files and of logs, as for Spark."""

    def fail(error: OSError) -> None:
        raise UserError(f"{shown(Path(error.filename))}: {error.strerror}") from error

    for parent, directories, names in os.walk(directory, onerror=fail):
        directories[:] = [name for name in directories if not name.startswith(("_", "."))]
        for name in names:
            if name.endswith(SUFFIX) and not name.startswith(("_", ".")):
                yield Path(parent, name)


def _allow_open(count: int) -> None:
    """Raises the limit of open files, as each part stays open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count + RESERVED
    if soft != resource.RLIM_INFINITY and soft < wanted:
        if hard != resource.RLIM_INFINITY and hard < wanted:
            raise UserError(
                f"{count} files, and only {hard} may be open: raise the limit, as `ulimit -n {wanted}` does"
            )
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
