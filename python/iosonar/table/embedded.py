"""DuckDB, embedded: within bounds of memory, spilling to a folder of its own."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from iosonar.table.columns import ROW_NUMBER
from iosonar.table.engine import EngineOptions, memory_bytes

if TYPE_CHECKING:
    import duckdb
    import ibis.expr.types as ir

ENGINE_SHARE = 0.45

MOST_IN_MEMORY = 20_000_000
"""Rows of a kept table; at some 50 bytes each."""


class Embedded:
    """An engine on this machine, in this process."""

    def __init__(self, spill: Path, options: EngineOptions) -> None:
        import ibis

        self.backend = ibis.duckdb.from_connection(connect(spill, options))
        self._spill = in_utf8(spill)
        self._numbers = count()

    def read(self, parquet: Path, columns: Sequence[str]) -> ir.Table:
        """These columns of a file, with the place of each row."""
        name = f"file_{next(self._numbers)}"
        chosen = ", ".join(quoted(column) for column in (ROW_NUMBER, *columns))
        self.backend.raw_sql(f"CREATE VIEW {name} AS SELECT {chosen} FROM {scan(parquet)}")
        return self.backend.table(name)

    def keep(self, columns: ir.Table, rows: int) -> ir.Table:
        """In memory up to MOST_IN_MEMORY rows.

        Of more, in a database in the folder to spill into, which packs each column: looking at it costs a little more,
        and next to no memory.
        """
        import ibis

        name = f"kept_{next(self._numbers)}"
        where = "memory.main"
        if rows > MOST_IN_MEMORY:
            Path(self._spill).mkdir(exist_ok=True)
            self.backend.raw_sql(f"ATTACH {text(f'{self._spill}/{name}.duckdb')} AS {name}")
            where = f"{name}.main"
        # Ibis' own way, create_table, fails with DuckDB 2.0.
        self.backend.raw_sql(f"CREATE TABLE {where}.{name} AS {ibis.to_sql(columns, dialect='duckdb')}")
        return self.backend.table(name, database=tuple(where.split(".")))

    def close(self) -> None:
        """Ends it, with all that it keeps."""
        self.backend.disconnect()


def connect(spill: Path, options: EngineOptions) -> duckdb.DuckDBPyConnection:
    """Connects to an empty database in memory, within the bounds of the options."""
    import duckdb

    settings: dict[str, str | bool | int | float | list[str]] = {
        "temp_directory": in_utf8(spill),
        # The rest is for what the engine hands out, and for what is made of that.
        "memory_limit": f"{int(memory_bytes(options.memory) * ENGINE_SHARE)}B",
        # Rows need no order: what needs one asks for it. Without this the engine buffers whole results.
        "preserve_insertion_order": False,
    }
    if options.threads is not None:
        settings["threads"] = options.threads
    connection = duckdb.connect(config=settings)
    connection.execute("SET TimeZone = 'UTC'")
    return connection


@cache
def in_utf8(folder: Path) -> str:
    """A path to the folder that DuckDB takes: it refuses those that are not UTF-8.

    Such a folder is made, and reached by a descriptor that stays open until the program ends.
    """
    try:
        str(folder).encode()
    except UnicodeEncodeError:
        folder.mkdir(exist_ok=True)
        return f"/proc/self/fd/{os.open(folder, os.O_PATH | os.O_DIRECTORY)}"
    return str(folder)


def scan(parquet: Path) -> str:
    """SQL that reads a file, whose path must have no odd characters, with the column ROW_NUMBER.

    Folders called `NAME=VALUE` are no columns.
    """
    return f"read_parquet('{parquet}', hive_partitioning=false, {ROW_NUMBER}=true)"


def quoted(name: str) -> str:
    """A name in SQL."""
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """A text in SQL."""
    return "'" + value.replace("'", "''") + "'"
