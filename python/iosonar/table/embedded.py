"""DuckDB, embedded: within bounds of memory, spilling to a folder of its own."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from iosonar.table.engine import EngineOptions, memory_bytes

if TYPE_CHECKING:
    import ibis.expr.types as ir

ENGINE_SHARE = 0.45

MOST_IN_MEMORY = 20_000_000
"""Rows of a kept table; at some 50 bytes each."""


class Embedded:
    """An engine on this machine, in this process."""

    def __init__(self, spill: Path, options: EngineOptions) -> None:
        import ibis

        settings: dict[str, object] = {
            "temp_directory": str(spill),
            # The rest is for what the engine hands out, and for what is made of that.
            "memory_limit": f"{int(memory_bytes(options.memory) * ENGINE_SHARE)}B",
            # Rows need no order: what needs one asks for it. Without this the engine buffers whole results.
            "preserve_insertion_order": False,
        }
        if options.threads is not None:
            settings["threads"] = options.threads
        self.backend = ibis.duckdb.connect(**settings)
        self._spill = spill
        self._numbers = count()

    def read(self, parquet: Path) -> ir.Table:
        """A file as a table, with the place of each row."""
        return self.backend.read_parquet(parquet, file_row_number=True)

    def keep(self, columns: ir.Table, rows: int) -> ir.Table:
        """In memory up to MOST_IN_MEMORY rows.

        Of more, in a database in the folder to spill into, which packs each column: looking at it costs a little more,
        and next to no memory.
        """
        import ibis

        name = f"kept_{next(self._numbers)}"
        where = "memory.main"
        if rows > MOST_IN_MEMORY:
            self._spill.mkdir(exist_ok=True)
            self.backend.raw_sql(f"ATTACH '{_escaped(str(self._spill))}/{name}.duckdb' AS {name}")
            where = f"{name}.main"
        # Ibis' own way, create_table, fails with DuckDB 2.0.
        self.backend.raw_sql(f"CREATE TABLE {where}.{name} AS {ibis.to_sql(columns, dialect='duckdb')}")
        return self.backend.table(name, database=tuple(where.split(".")))

    def close(self) -> None:
        """Ends it, with all that it keeps."""
        self.backend.disconnect()


def _escaped(text: str) -> str:
    return text.replace("'", "''")
