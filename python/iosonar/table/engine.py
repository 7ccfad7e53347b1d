"""What computes: an engine reads files, keeps tables, and runs Ibis expressions over them."""

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

MOST_MEMORY = 2**50
"""More than any machine has. What engines are told has to fit into 64 bits."""

HERE = "local[*]"
"""Spark's name for this machine alone."""


class EngineKind(Enum):
    """Which engine."""

    DUCKDB = "duckdb"
    """Embedded, on this machine."""
    SPARK = "spark"
    """On this machine or on many."""


@dataclass(frozen=True)
class EngineOptions:
    """What may be used. `memory` is that of the whole program on this machine, such as `2GiB`."""

    memory: str = "2GiB"
    threads: int | None = None
    kind: EngineKind = EngineKind.DUCKDB
    url: str = HERE
    """Of Spark's master, such as `spark://host:7077`."""


class Engine(Protocol):
    """An engine. `backend` is Ibis' own object for it."""

    @property
    def backend(self) -> Any:
        """What Ibis expressions run on."""

    def read(self, parquet: Path, columns: Sequence[str]) -> ir.Table:
        """These columns of a file, and ROW_NUMBER."""

    def keep(self, columns: ir.Table, rows: int) -> ir.Table:
        """Works out a table of that many rows once; what asks it later does not go back to the files."""

    def close(self) -> None:
        """Ends it, with all that it keeps."""


def parse_engine(text: str) -> tuple[EngineKind, str]:
    """Which engine and where: from `duckdb`, `spark`, or `spark=URL`."""
    name, equals, url = text.partition("=")
    if name == EngineKind.SPARK.value and (url or not equals):
        return EngineKind.SPARK, url or HERE
    if text == EngineKind.DUCKDB.value:
        return EngineKind.DUCKDB, HERE
    raise UsageError(f"unknown engine {text!r}: use duckdb, spark, or spark=URL such as spark=spark://host:7077")


def memory_bytes(text: str) -> int:
    """From `2GiB`, `1.5G`, `800MB`."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT])(i?B)?\s*", text, re.IGNORECASE)
    if found is None:
        raise UsageError(f"invalid amount of memory {text!r}: write it like 2GiB or 800MiB")
    factor = 1000 if found[3] and found[3].upper() == "B" else 1024
    size = float(found[1]) * factor ** ("KMGT".index(found[2].upper()) + 1)
    if size > MOST_MEMORY:
        raise UsageError(f"--memory {plain(text)}: the maximum is {MOST_MEMORY >> 40} TiB")
    return int(size)
