"""The embedded engine that computes: DuckDB, within bounds of memory, spilling to a folder of its own."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from iosonar.errors import UserError

if TYPE_CHECKING:
    import ibis.expr.types as ir
    from ibis.backends.duckdb import Backend

ENGINE_SHARE = 0.45

MOST_IN_MEMORY = 20_000_000
"""Rows of a kept table; at some 50 bytes each."""

_NUMBERS = count()


@dataclass(frozen=True)
class EngineOptions:
    """What may be used. `memory` is that of the whole program, such as `2GiB`."""

    memory: str = "2GiB"
    threads: int | None = None


def memory_bytes(text: str) -> int:
    """From `2GiB`, `1.5G`, `800MB`."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT])(i?B)?\s*", text, re.IGNORECASE)
    if found is None:
        raise UserError(f"an amount of memory looks like 2GiB or 800MiB, not {text!r}")
    factor = 1000 if found[3] and found[3].upper() == "B" else 1024
    return int(float(found[1]) * factor ** ("KMGT".index(found[2].upper()) + 1))


def connect(spill: Path, options: EngineOptions) -> Backend:
    """Starts an engine that keeps nothing, and spills into `spill` what exceeds its memory."""
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
