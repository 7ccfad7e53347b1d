"""The index of a table in the directory of caches: found again while the table is the same, else made."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from iosonar.cleanup import cleanup
from iosonar.errors import UserError
from iosonar.text import address_of, shown
from iosonar.view.build import ABOUT, AT_ONCE, BY_END, BY_ISSUE, VERSION, Progress, build, read_level, release
from iosonar.view.pyramid import AnyLevel, Level
from iosonar.view.requests import BLOCK, Requests
from iosonar.view.scales import KINDS, Order

if TYPE_CHECKING:
    import duckdb

    from iosonar.table import SourceFile

SAMPLED_FROM = 1 << 22
"""Requests of a table whose times are sampled."""

TABLE = "table"
"""The file with the path of the table."""

RELEASED_ABOVE = 256 << 20
"""Of a larger index, the mapped pages are given back after each window."""


@dataclass
class Index:
    """Requests of a table, sorted, with their rasters, finest first, and the most in flight in each finest bin."""

    requests: Requests
    levels: dict[str, list[AnyLevel]]
    depth: NDArray[np.int32]
    depth_ns: tuple[int, int]
    """The time axis of `depth`."""
    kinds: NDArray[np.int64]
    """How many requests each series has."""
    maps: list[Any]
    size: int = 0

    def release(self) -> None:
        """Gives memory back, if that is worth it."""
        if self.size > RELEASED_ABOVE:
            release(self.maps)


def cache_directory() -> Path:
    """Where programs keep what they can make again."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "iosonar" / "view"


def index_of(
    file: SourceFile, connection: duckdb.DuckDBPyConnection, caches: Path, progress: Progress
) -> tuple[Index, Path]:
    """The index of a table, with its directory."""
    # The table that is read may be a conversion, with other times.
    status = file.local.stat()
    address = address_of(file.given)
    key = address or f"{file.given.resolve()} {status.st_dev} {status.st_ino}"
    identity = f"{key} {status.st_size} {status.st_mtime_ns} {VERSION}"
    directory = caches / hashlib.sha256(os.fsencode(key)).hexdigest()[:24]
    found = _read(directory, identity)
    if found is None:
        _make(file, connection, directory, identity, progress)
        found = _read(directory, identity)
    if found is None:
        raise UserError(f"{shown(directory)}: the index cannot be read; remove it")
    return found, directory


def _make(
    file: SourceFile, connection: duckdb.DuckDBPyConnection, directory: Path, identity: str, progress: Progress
) -> None:
    try:
        directory.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with cleanup.lock:
            made = Path(tempfile.mkdtemp(prefix="new-", dir=directory.parent))
            remove = cleanup.add(lambda: shutil.rmtree(made, ignore_errors=True))
    except OSError as error:
        raise UserError(
            f"cannot write the index to {shown(directory.parent)}: {error.strerror or error}; use --index DIRECTORY"
        ) from error
    try:
        _remove_old(directory.parent)
        build(connection, made, is_load=not file.kind.is_run, progress=progress)
        (made / "of").write_text(identity, encoding="utf-8", errors="surrogateescape")
        table = address_of(file.given) or str(file.given.resolve())
        (made / TABLE).write_text(table, encoding="utf-8", errors="surrogateescape")
        shutil.rmtree(directory, ignore_errors=True)
        made.rename(directory)
    finally:
        remove()


def _remove_old(caches: Path) -> None:
    """Removes the indexes of tables that are gone, or are objects of a store."""
    for each in caches.iterdir():
        with suppress(OSError):
            if not Path((each / TABLE).read_text(encoding="utf-8", errors="surrogateescape")).exists():
                shutil.rmtree(each)


def _read(directory: Path, identity: str) -> Index | None:
    """The index in a directory, if it is that of the table."""
    with suppress(OSError, ValueError, KeyError):
        if (directory / "of").read_text(encoding="utf-8", errors="surrogateescape") != identity:
            return None
        about = json.loads((directory / ABOUT).read_text(encoding="utf-8"))
        columns: dict[str, Any] = {
            name: _mapped(directory / f"{name}.npy") for name in (*BY_ISSUE, *BY_END, "last_end", "depth")
        }
        depth = columns.pop("depth")
        ends = (about["low_ns"], about["high_ns"])
        levels: dict[str, list[Level]] = {
            name: [read_level(directory, name, each, ends) for each in bins] for name, bins in about["levels"].items()
        }
        requests = Requests(
            **columns,
            low_ns=about["low_ns"],
            high_ns=about["high_ns"],
            top=about["top"],
            not_issued=about["not_issued"],
            ranges={name: (low, high) for name, (low, high) in about["ranges"].items()},
        )
        if len(requests) >= SAMPLED_FROM:
            requests.samples = {Order.ISSUE: _sample(requests.begin), Order.COMPLETION: _sample(requests.end)}
        of_levels = [each for level in levels.values() for one in level for each in (one.cells, one.counts)]
        size = sum(each.stat().st_size for each in directory.iterdir())
        return Index(
            requests,
            {name: [*each] for name, each in levels.items()},
            depth,
            ends,
            _kinds(requests),
            [*columns.values(), *of_levels],
            size,
        )
    return None


def _sample(times: NDArray[np.int64]) -> NDArray[np.int64]:
    """Each BLOCK-th time."""
    found = []
    for first in range(0, len(times), BLOCK << 13):
        found.append(times[first : first + (BLOCK << 13) : BLOCK].copy())
        release([times])
    return np.concatenate(found) if found else np.empty(0, np.int64)


def _kinds(requests: Requests) -> NDArray[np.int64]:
    parts = (requests.kind[first : first + AT_ONCE] for first in range(0, len(requests), AT_ONCE))
    found: NDArray[np.int64] = np.sum([np.bincount(part, minlength=KINDS) for part in parts], axis=0, dtype=np.int64)
    return found


def _mapped(path: Path) -> NDArray[Any]:
    with suppress(ValueError):
        found: NDArray[Any] = np.load(path, mmap_mode="r")
        return found
    # An empty array cannot be mapped.
    return np.load(path)  # type: ignore[no-any-return]
