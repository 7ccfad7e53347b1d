"""Keeps what was measured on results in `TOP/.campaign/measured.json`: a second report reads no result again."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from iosonar import SCHEMA_VERSION
from iosonar.text import plain

FILE_NAME = Path(".campaign") / "measured.json"

VERSION = 7
"""To be raised when a metric changes its meaning, or is new."""

Entry = dict[str, Any]


@dataclass
class Cache:
    """Measured values by the signature of the files they were measured on."""

    path: Path
    entries: dict[str, Entry]
    changed: bool = False

    @classmethod
    def open(cls, top: Path) -> Cache:
        """The cache of a campaign; empty if there is none, or if it is damaged or of another version."""
        path = top / FILE_NAME
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            if found["version"] == [VERSION, SCHEMA_VERSION] and isinstance(found["leaves"], dict):
                return cls(path, found["leaves"])
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            pass
        return cls(path, {})

    def get(self, leaf: str, files: Sequence[Path]) -> Entry | None:
        """What was measured on these files, if none has changed."""
        entry = self.entries.get(plain(leaf))
        if not isinstance(entry, dict) or entry.get("files") != _signature(files):
            return None
        values = entry.get("values")
        return values if isinstance(values, dict) else None

    def put(self, leaf: str, files: Sequence[Path], values: Mapping[str, Any]) -> None:
        """Keeps what was measured on these files."""
        self.entries[plain(leaf)] = {"files": _signature(files), "values": _finite(values)}
        self.changed = True

    def save(self, leaves: Sequence[str]) -> None:
        """Writes the cache without leaves that are gone. A directory that cannot be written to is no error."""
        kept = {plain(leaf) for leaf in leaves}
        if not self.changed:
            return
        content = {
            "version": [VERSION, SCHEMA_VERSION],
            "leaves": {leaf: entry for leaf, entry in self.entries.items() if leaf in kept},
        }
        unfinished = self.path.with_name(f".{self.path.name}.{os.getpid()}.unfinished")
        with suppress(OSError):
            self.path.parent.mkdir(exist_ok=True)
            try:
                unfinished.write_text(json.dumps(content), encoding="utf-8")
                unfinished.replace(self.path)
            except OSError:
                unfinished.unlink(missing_ok=True)


def _signature(files: Sequence[Path]) -> list[list[Any]]:
    found = []
    for path in files:
        status = path.stat()
        found.append([plain(path.name), status.st_size, status.st_mtime_ns, status.st_ino])
    return found


def _finite(value: Any) -> Any:
    """NaN as null, which JSON has."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict | Mapping):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return value
