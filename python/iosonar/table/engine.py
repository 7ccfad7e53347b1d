"""The embedded engine that computes: DuckDB, within bounds of memory, spilling to a folder of its own."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ibis.expr.types as ir
    from ibis.backends.duckdb import Backend

MOST_IN_MEMORY = 20_000_000
"""Rows of a kept table; at some 50 bytes each."""

_NUMBERS = count()


@dataclass(frozen=True)
class EngineOptions:
    """What the engine may use. `memory` is a size as DuckDB reads it (`2GiB`)."""

    memory: str = "2GiB"
    threads: int | None = None


def connect(spill: Path, options: EngineOptions) -> Backend:
    """Starts an engine that keeps nothing, and spills into `spill` what exceeds its memory."""
    import ibis

    settings: dict[str, object] = {
        "temp_directory": str(spill),
        "memory_limit": options.memory,
        # Rows need no order: what needs one asks for it. Without this the engine buffers whole results.
        "preserve_insertion_order": False,
    }
    if options.threads is not None:
        settings["threads"] = options.threads
    return ibis.duckdb.connect(**settings)


def keep(engine: Backend, columns: ir.Table, rows: int) -> ir.Table:
    """Works out a table of that many rows once; what asks it later does not go back to the files.

    In memory up to MOST_IN_MEMORY rows. Of more, in a database in the folder to spill into, which packs each column:
    looking at it costs a little more, and next to no memory.
    """
    import ibis

    name = f"kept_{next(_NUMBERS)}"
    where = "memory.main"
    if rows > MOST_IN_MEMORY:
        folder = engine.raw_sql("SELECT current_setting('temp_directory')").fetchone()[0]
        Path(folder).mkdir(exist_ok=True)
        engine.raw_sql(f"ATTACH '{_escaped(folder)}/{name}.duckdb' AS {name}")
        where = f"{name}.main"
    # Ibis' own way, create_table, fails with DuckDB 2.0.
    engine.raw_sql(f"CREATE TABLE {where}.{name} AS {ibis.to_sql(columns, dialect='duckdb')}")
    return engine.table(name, database=tuple(where.split(".")))


def _escaped(text: str) -> str:
    return text.replace("'", "''")
