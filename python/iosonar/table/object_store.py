"""Runs in object stores: `s3://bucket/key` is an object, or a prefix, which is read like a directory.

Objects are copied to the temporary directory, once: all their cells are validated, and then read several times.
"""

from __future__ import annotations

import errno
import math
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from iosonar import units
from iosonar.errors import UserError
from iosonar.progress import step
from iosonar.text import address_of, plain, shown

if TYPE_CHECKING:
    from pyarrow.fs import FileInfo, FileSystem

ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
"""Variables with the address of another server than Amazon's, which the library of Arrow does not read."""
REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")

CONNECT_TIMEOUT_S = 5
ATTEMPTS = 3
"""An unreachable server fails within 20 s."""

PIECE = 8 << 20
"""Bytes of a request."""
REQUESTS = 8
"""Requests at once: a single one does not use a fast network. So many pieces are in memory."""
WAITING = 64
"""Pieces that wait for their request."""

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@dataclass(frozen=True)
class StoredObject:
    """An object: the path that names it, and its bucket and key in the store."""

    given: Path
    store: FileSystem
    key: str
    size: int
    modified_s: int
    """A list of objects may have fractions of seconds, which the answer about one object lacks."""


@dataclass(frozen=True)
class _Piece:
    """A part of an object, and the file that it is copied to."""

    of: StoredObject
    target: Path
    offset: int

    @property
    def length(self) -> int:
        return min(PIECE, self.of.size - self.offset)


def objects_at(path: Path) -> list[StoredObject]:
    """The object of this address, or all objects below it. Raises UserError if there is none, or no access."""
    from pyarrow.fs import FileSelector, FileType

    key = _key(path)
    bucket = key.partition("/")[0]
    try:
        store = _store(path, bucket)
        info = store.get_file_info(key)
        if info.type == FileType.File:
            return [_object(path, store, info)]
        if info.type == FileType.NotFound:
            known = "/" not in key or store.get_file_info(bucket).type != FileType.NotFound
            what = f"no such object, and none below {shown(path)}/" if known and "/" in key else "no such bucket"
            raise UserError(f"{shown(path)}: {what}; check the address")
        infos = store.get_file_info(FileSelector(key, recursive=True))
    except OSError as error:
        raise _refused(path, error) from error
    found = [info for info in infos if info.type == FileType.File]
    return [_object(Path(f"{path}/{info.path[len(key) :]}"), store, info) for info in found]


def fetch(objects: Sequence[StoredObject], directory: Path) -> dict[Path, Path]:
    """Copies objects to the directory; returns the copies, by the paths that name the objects."""
    _refuse_without_space(objects, directory)
    copies = {each.given: directory / f"fetched-{number}" for number, each in enumerate(objects)}
    pieces = _pieces(objects, copies)
    total, done = sum(each.size for each in objects), 0
    with ThreadPoolExecutor(REQUESTS) as pool:
        while some := list(islice(pieces, WAITING)):
            for piece in pool.map(_copy, some):
                step(f"MiB of {shown(piece.of.given)}", (done >> 20) + 1, math.ceil(total / (1 << 20)))
                done += piece.length
        for each in pool.map(_unchanged, objects):
            # What a view keeps of an object is known by this time.
            os.utime(copies[each.given], (each.modified_s, each.modified_s))
    return copies


def _key(path: Path) -> str:
    """Bucket and key of an address."""
    return (address_of(path) or "").partition("://")[2]


def _store(path: Path, bucket: str) -> FileSystem:
    from pyarrow import fs

    endpoint = _endpoint()
    return fs.S3FileSystem(
        region=None if endpoint or any(map(os.environ.get, REGIONS)) else _region(bucket),
        endpoint_override=endpoint,
        connect_timeout=CONNECT_TIMEOUT_S,
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=ATTEMPTS),
    )


def _endpoint() -> str | None:
    return next(filter(None, map(os.environ.get, ENDPOINTS)), None)


def _region(bucket: str) -> str | None:
    """The region of a bucket of Amazon; None if it is not known: then that of the profile is used."""
    from pyarrow.fs import resolve_s3_region

    try:
        return str(resolve_s3_region(bucket))
    except OSError:
        return None


def _object(given: Path, store: FileSystem, info: FileInfo) -> StoredObject:
    return StoredObject(given, store, info.path, info.size or 0, (info.mtime_ns or 0) // 10**9)


def _pieces(objects: Sequence[StoredObject], copies: dict[Path, Path]) -> Iterator[_Piece]:
    for each in objects:
        target = copies[each.given]
        target.touch()
        for offset in range(0, each.size, PIECE):
            yield _Piece(each, target, offset)


def _copy(piece: _Piece) -> _Piece:
    given = piece.of.given
    try:
        with piece.of.store.open_input_file(piece.of.key) as source:
            source.seek(piece.offset)
            data = source.read(piece.length)
    except OSError as error:
        raise _refused(given, error) from error
    try:
        with piece.target.open("r+b") as target:
            target.seek(piece.offset)
            target.write(data)
    except OSError as error:
        if error.errno in FULL:
            raise _no_space(given, piece.of.size, piece.target.parent) from error
        raise UserError(f"cannot copy {shown(given)} to {shown(piece.target.parent)}: {error.strerror}") from error
    return piece


def _unchanged(fetched: StoredObject) -> StoredObject:
    """Refuses an object that was replaced: the library fills up what a shorter one lacks."""
    try:
        info = fetched.store.get_file_info(fetched.key)
    except OSError as error:
        raise _refused(fetched.given, error) from error
    if _object(fetched.given, fetched.store, info) != fetched:
        raise UserError(f"{shown(fetched.given)} was replaced while it was fetched; try again")
    return fetched


def _refuse_without_space(objects: Sequence[StoredObject], directory: Path) -> None:
    needed = sum(each.size for each in objects)
    if objects and needed > shutil.disk_usage(directory).free:
        raise _no_space(objects[0].given, needed, directory)


def _no_space(given: Path, needed: int, directory: Path) -> UserError:
    # The directory is one of this program, in that of the user.
    return UserError(
        f"{shown(given)}: its copy needs {units.binary_bytes(needed)}, which {shown(directory.parent)} does not have; "
        "set TMPDIR to a directory with enough space"
    )


def _refused(path: Path, error: OSError) -> UserError:
    """Why the store did not answer as it should, and what to do."""
    text = plain(str(error).strip().split("\n")[0])
    if isinstance(error, FileNotFoundError):
        why = "no such object any more; check the address"
    elif re.search(r"ACCESS_DENIED|FORBIDDEN|INVALID_ACCESS_KEY|SIGNATURE|EXPIRED|TOKEN|HTTP status 40[13]\b", text):
        why = (
            "access denied; set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, to those of an account "
            "that may read it"
        )
    elif re.search(r"HTTP status 301\b|REDIRECT", text):
        why = "the bucket is in another region; set AWS_REGION to it"
    elif "curlCode" in text:
        why = (
            f"cannot reach {plain(_endpoint() or 'the server')} ({text.rpartition('Details: ')[2]}); check the "
            "network, and AWS_ENDPOINT_URL for a server that is not Amazon's"
        )
    else:
        why = f"the object store refused it: {text}"
    return UserError(f"{shown(path)}: {why}")
