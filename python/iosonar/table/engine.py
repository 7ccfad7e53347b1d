"""The interface of engines: an engine reads files, keeps tables, and runs Ibis expressions on them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from iosonar.errors import UsageError
from iosonar.text import plain

if TYPE_CHECKING:
    import ibis.expr.types as ir

MAX_MEMORY = 2**50
"""Limit of `--memory`, in bytes: more than any machine has, and fits into 64 bits."""

MIN_MEMORY = 1 << 20
"""Its other limit: a smaller one is a wrong unit."""

_SIZE = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*(?:([kmgt])(?:i?b)?|([bs]))?", re.IGNORECASE)

LOCAL = "local[*]"
"""The URL of Spark on this machine."""


class EngineKind(Enum):
    """The available engines."""

    DUCKDB = "duckdb"
    """Embedded, on this machine."""
    SPARK = "spark"
    """On this machine or on a cluster."""


@dataclass(frozen=True)
class EngineOptions:
    """Resources for an engine. `memory` is the limit of the whole program on this machine, such as `2GiB`."""

    memory: str = "2GiB"
    threads: int | None = None
    kind: EngineKind = EngineKind.DUCKDB
    url: str = LOCAL
    """The URL of Spark's master, such as `spark://host:7077`."""


class Engine(Protocol):
    """An engine."""

    @property
    def backend(self) -> Any:
        """Ibis's backend object, which runs expressions."""

    def read(self, parquet: Path, columns: Sequence[str]) -> ir.Table:
        """The columns of a file, and ROW_NUMBER."""

    def keep(self, columns: ir.Table, rows: int, parts: Sequence[ir.Table] = ()) -> ir.Table:
        """Computes a table of that many rows once, so that later expressions on it do not read the files again.

        `parts`, if any, are the same rows in several tables.
        """

    def close(self) -> None:
        """Disconnects, and drops all kept tables."""


def parse_engine(text: str) -> tuple[EngineKind, str]:
    """Parses `duckdb`, `spark`, or `spark=URL`."""
    name, equals, url = text.partition("=")
    if name == EngineKind.SPARK.value and (url or not equals):
        return EngineKind.SPARK, url or LOCAL
    if text == EngineKind.DUCKDB.value:
        return EngineKind.DUCKDB, LOCAL
    raise UsageError(f"unknown engine {text!r}: use duckdb, spark, or spark=URL such as spark=spark://host:7077")


def memory_bytes(text: str) -> int:
    """Parses `2GiB`, `1.5G`, `800MB`, or bytes, by the rules of the Rust half: all units are powers of 1024."""
    found = _SIZE.fullmatch(text.strip().replace("_", ""))
    if found is None:
        raise UsageError(f"--memory {plain(text)}: write it like 2GiB, 800M, or as bytes: 2147483648")
    unit = (found[2] or found[3] or "").lower()
    size = float(found[1]) * (512 if unit == "s" else 1024 ** "bkmgt".index(unit or "b"))
    if size > MAX_MEMORY:
        raise UsageError(f"--memory {plain(text)}: the maximum is {MAX_MEMORY >> 40} TiB")
    if size < MIN_MEMORY:
        meant = f"; a number without a unit is bytes, write {plain(text)}M for MiB" if not unit else ""
        raise UsageError(f"--memory {plain(text)}: the minimum is {MIN_MEMORY >> 20} MiB{meant}")
    return int(size)
