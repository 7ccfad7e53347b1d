"""A directory of Parquet files, as host=…/device=…, named like a file: its files are the parts of one run.

A prefix of an object store is such a directory.
"""

from __future__ import annotations

import os
import re
import resource
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from iosonar.errors import UserError
from iosonar.table.object_store import StoredObject, objects_at
from iosonar.text import address_of, shown

SUFFIX = ".parquet"

_OTHER_ADDRESS = re.compile(r"([a-z][a-z0-9+.-]+):/(.+)", re.DOTALL)
"""An address of another kind, as a path: with one slash."""

RESERVED = 200
"""Descriptors for everything but the files of a directory."""


def files_in(paths: Iterable[Path]) -> list[Path | StoredObject]:
    """The paths, with the Parquet files below it in place of each directory, in the order of their paths."""
    found = [file for path in paths for file in _files_of(path)]
    _allow_open(len(found))
    return found


def _files_of(path: Path) -> Sequence[Path | StoredObject]:
    if address_of(path):
        return _stored_parts(path)
    if (other := _OTHER_ADDRESS.match(os.fspath(path))) and not path.exists():
        raise UserError(
            f"{other[1]}://{shown(Path(other[2]))}: only s3://BUCKET/KEY is read of object stores; copy it to a file, "
            "or mount its bucket"
        )
    return _parts(path) if path.is_dir() else [path]


def _stored_parts(path: Path) -> list[StoredObject]:
    found = objects_at(path)
    if [each.given for each in found] == [path]:
        return found
    parts = [each for each in found if _is_part(each.given.relative_to(path).parts)]
    if not parts:
        raise UserError(f"{shown(path)}: no object *{SUFFIX} is below it; check the address")
    return sorted(parts, key=lambda each: each.given)


def _parts(directory: Path) -> list[Path]:
    found = sorted(_below(directory))
    if not found:
        raise UserError(f"{shown(directory)}: Is a directory, and no file *{SUFFIX} is below it")
    return found


def _below(directory: Path) -> Iterator[Path]:
    def fail(error: OSError) -> None:
        raise UserError(f"{shown(Path(error.filename))}: {error.strerror}") from error

    for parent, directories, names in os.walk(directory, onerror=fail):
        directories[:] = [name for name in directories if not _is_hidden(name)]
        for name in names:
            if _is_part([name]):
                yield Path(parent, name)


def _is_part(names: Sequence[str]) -> bool:
    """Whether a file is a part, by its name and those of its directories."""
    return names[-1].endswith(SUFFIX) and not any(map(_is_hidden, names))


def _is_hidden(name: str) -> bool:
    """Names that begin with _ or . are those of unfinished files and of logs, as for Spark."""
    return name.startswith(("_", "."))


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
