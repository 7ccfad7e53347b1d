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

    def keep(self, columns: ir.Table, rows: int) -> ir.Table:
        """Computes a table of that many rows once, so that later expressions on it do not read the files again."""

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
    """Parses `2GiB`, `1.5G`, `800MB`."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT])(i?B)?\s*", text, re.IGNORECASE)
    if found is None:
        raise UsageError(f"invalid amount of memory {text!r}: write it like 2GiB or 800MiB")
    factor = 1000 if found[3] and found[3].upper() == "B" else 1024
    size = float(found[1]) * factor ** ("KMGT".index(found[2].upper()) + 1)
    if size > MAX_MEMORY:
        raise UsageError(f"--memory {plain(text)}: the maximum is {MAX_MEMORY >> 40} TiB")
    return int(size)
