"""Reads the journal of a replay that goes on: an entry for each request, appended when it completed.

Its format is that of crates/trace/src/io/journal. A test compares what is read with what `iosonar recover` makes of it.
"""

from __future__ import annotations

import fcntl
import json
import os
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from iosonar.errors import UserError
from iosonar.text import shown

MAGIC = b"iosonar"
START_BYTES = 16
NEVER = np.iinfo(np.int64).min
MAX_AT_ONCE = 1 << 18
"""Entries that are read at a time."""

_FIELDS = [
    ("request", "<u8"),
    ("scheduled_ns", "<i8"),
    ("issued_ns", "<i8"),
    ("completed_ns", "<i8"),
    ("source_sector", "<u8"),
    ("sector", "<u8"),
    ("bytes_done", "<u8"),
    ("sectors", "<u4"),
    ("sectors_high", "<u2"),
    ("device", "<u2"),
    ("iteration", "<u4"),
    ("in_flight", "<u4"),
    ("waiting", "<u4"),
    ("submitted_after", "<u4"),
    ("last_empty_poll_before", "<u4"),
    ("ready_us", "<i4"),
    ("errno", "<i2"),
    ("flags", "<u2"),
    ("op", "u1"),
    ("outcome", "u1"),
    ("delay_reason", "u1"),
    ("is_pushed", "u1"),
]
_OF_PROGRAM = [("stream", "<u2"), ("before_cause", "<u4")]
LAYOUTS = {2: np.dtype([*_FIELDS, ("crc", "<u4")]), 3: np.dtype([*_FIELDS, *_OF_PROGRAM, ("crc", "<u4")])}


OPS = ("read", "write", "flush", "discard", "write_zeroes")
REASONS = ("none", "depth", "order", "input", "completion_log", "perturbed", "unknown", "backlog")
OUTCOMES = (
    *("ok", "short", "error", "unfinished", "dropped", "beyond_end", "unaligned", "too_large", "unsupported"),
    *("excluded", "corrupt"),
)
"""Names by the numbers in entries."""


class Journal:
    """A journal, read as it grows."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.file = path.open("rb", buffering=0)
        except OSError as error:
            raise UserError(f"{shown(path)}: {error.strerror or error}") from error
        try:
            self._begin()
        except BaseException:
            self.file.close()
            raise

    def _begin(self) -> None:
        """Reads what is before the entries."""
        path, start = self.path, self.file.read(START_BYTES)
        layout = start[len(MAGIC)] if len(start) == START_BYTES and start.startswith(MAGIC) else None
        if layout is None:
            raise UserError(f"{shown(path)} is no journal of a replay")
        if layout not in LAYOUTS:
            raise UserError(f"{shown(path)} is no journal of requests that this version reads; the view shows requests")
        self.entry = LAYOUTS[layout]
        length = int.from_bytes(start[8:12], "little")
        header = self.file.read(length)
        if len(header) != length or zlib.crc32(header) != int.from_bytes(start[12:16], "little"):
            raise UserError(f"{shown(path)}: its header is damaged")
        self.header: dict[str, Any] = json.loads(header)
        self.at = START_BYTES + length
        self.damaged = 0

    def read(self) -> tuple[NDArray[np.void], NDArray[np.int64]]:
        """The next whole entries, at most MAX_AT_ONCE, and where each is in the file."""
        size = self.entry.itemsize
        content = os.pread(self.file.fileno(), size * MAX_AT_ONCE, self.at)
        whole = len(content) // size * size
        found = np.frombuffer(content[:whole], self.entry)
        places = self.at + size * np.arange(len(found))
        self.at += whole
        view, body = memoryview(content), size - 4
        sums = np.fromiter((zlib.crc32(view[at : at + body]) for at in range(0, whole, size)), np.uint32, len(found))
        right = sums == found["crc"]
        self.damaged += int(np.count_nonzero(~right))
        return found[right], places[right]

    def entry_at(self, place: int) -> dict[str, int]:
        """An entry that was read."""
        content = os.pread(self.file.fileno(), self.entry.itemsize, place)
        if len(content) < self.entry.itemsize:
            return {}
        [found] = np.frombuffer(content, self.entry)
        return {name: int(found[name]) for name in self.entry.names or ()}

    def is_written(self) -> bool:
        """Whether a replay still writes it, or its result: it holds a lock, a shared one in the end."""
        if not self.path.exists():
            return False
        # Of a file that is open for reading only, NFS gives a shared lock, and some file systems none.
        for kind in (fcntl.LOCK_EX, fcntl.LOCK_SH):
            try:
                fcntl.flock(self.file, kind | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
            except OSError:
                continue
            fcntl.flock(self.file, fcntl.LOCK_UN)
            return False
        return True

    def close(self) -> None:
        """Closes it."""
        self.file.close()
