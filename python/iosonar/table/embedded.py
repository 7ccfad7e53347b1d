"""DuckDB, embedded, with a memory limit; it spills to a directory."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache, cached_property
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iosonar.table.embedded_sql import TYPES, UnknownOperationError, sql_of
from iosonar.table.engine import EngineOptions, memory_bytes
from iosonar.table.kinds.column import ROW_NUMBER

if TYPE_CHECKING:
    import duckdb
    import ibis.expr.types as ir
    import pyarrow as pa

ENGINE_SHARE = 0.45
"""DuckDB's share of the memory limit; the rest is for results and what is computed from them."""

MAX_ROWS_IN_MEMORY = 20_000_000
"""Rows of a table kept in memory, at some 50 bytes each."""

OF_TYPES = {kind: of_ibis for of_ibis, kind in TYPES.items()}


class Embedded:
    """An engine in this process."""

    def __init__(self, spill: Path, options: EngineOptions) -> None:
        self.backend = Backend(connect(spill, options))
        self._spill = in_utf8(spill)
        self._numbers = count()

    def read(self, parquet: Path, columns: Sequence[str]) -> ir.Table:
        """The columns of a file, and ROW_NUMBER."""
        name = f"file_{next(self._numbers)}"
        chosen = ", ".join(quoted(column) for column in (ROW_NUMBER, *columns))
        self.backend.con.execute(f"CREATE VIEW {name} AS SELECT {chosen} FROM {scan(parquet)}")
        return self.backend.table(name)

    def keep(self, columns: ir.Table, rows: int, parts: Sequence[ir.Table] = ()) -> ir.Table:
        """Keeps a table in memory up to MAX_ROWS_IN_MEMORY rows.

        A larger one is kept in a database in the spill directory, which compresses each column: a query costs a little
        more time, and almost no memory. It is written part by part, as a query needs memory for each of its files.
        """
        name = f"kept_{next(self._numbers)}"
        where = "memory.main"
        if rows > MAX_ROWS_IN_MEMORY:
            Path(self._spill).mkdir(exist_ok=True)
            self.backend.con.execute(f"ATTACH {text(f'{self._spill}/{name}.duckdb')} AS {name}")
            where = f"{name}.main"
        first, *others = parts or (columns,)
        self.backend.con.execute(f"CREATE TABLE {where}.{name} AS {self.backend.compile(first)}")
        for part in others:
            self.backend.con.execute(f"INSERT INTO {where}.{name} {self.backend.compile(part)}")
        return self.backend.table(name, database=(where.split(".")[0], "main"))

    def keep_rows(self, rows: pa.Table) -> ir.Table:
        """Keeps rows that are in memory."""
        name = f"kept_{next(self._numbers)}"
        self.backend.con.register(f"{name}_rows", rows)
        self.backend.con.execute(f"CREATE TABLE memory.main.{name} AS FROM {name}_rows")
        self.backend.con.unregister(f"{name}_rows")
        return self.backend.table(name)

    def close(self) -> None:
        """Disconnects, and drops all kept tables."""
        self.backend.con.close()


class Backend:
    """What runs the expressions on tables of the engine, in place of Ibis's backend, to which it leaves the rest.

    That one loads the dialects of all engines, and pandas to fetch a result: longer than the queries of a small run.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.con = connection

    @cached_property
    def of_ibis(self) -> Any:
        """Ibis's backend on the same connection."""
        from ibis.backends.duckdb import Backend

        return Backend.from_connection(self.con)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.of_ibis, name)

    def compile(self, expr: Any, /, **options: Any) -> str:
        """The SQL of an expression."""
        if not options:
            with suppress(UnknownOperationError):
                return sql_of(expr.as_table().op())
        found: str = self.of_ibis.compile(expr, **options)
        return found

    def to_pyarrow(self, expr: Any, /, **options: Any) -> Any:
        """The result of an expression."""
        from ibis.formats.pyarrow import PyArrowData

        options = {name: value for name, value in options.items() if value is not None}
        found = self.con.sql(self.compile(expr.as_table(), **options)).to_arrow_table()
        return expr.__pyarrow_result__(found, data_mapper=PyArrowData)

    def batches(self, rows: ir.Table, at_once: int) -> Iterator[pa.RecordBatch]:
        """Rows in any order, while the engine computes the next ones. Until they end, it must run no other query."""
        relation = self.con.sql(self.compile(rows))
        # Older versions of DuckDB have only the other name.
        reader = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
        # Closed also if the generator is: the connection has one open result.
        with reader(at_once) as found:
            yield from found

    def table(self, name: str, /, *, database: tuple[str, str] | None = None) -> ir.Table:
        """A table or view by name."""
        import ibis
        import ibis.expr.operations as ops

        path = ".".join(quoted(part) for part in (*(database or ()), name))
        columns = self.con.execute(f"DESCRIBE {path}").fetchall()
        known = {column: OF_TYPES.get(kind) for column, kind, *_ in columns}
        if None in known.values():
            found: ir.Table = self.of_ibis.table(name, database=database)
            return found
        where = ops.Namespace(*database) if database else ops.Namespace()
        return ops.DatabaseTable(name, schema=ibis.schema(known), source=self, namespace=where).to_expr()


def connect(spill: Path, options: EngineOptions) -> duckdb.DuckDBPyConnection:
    """Connects to an empty in-memory database with the limits in the options."""
    import duckdb

    settings: dict[str, str | bool | int | float | list[str]] = {
        "temp_directory": in_utf8(spill),
        "memory_limit": f"{int(memory_bytes(options.memory) * ENGINE_SHARE)}B",
        # Queries that need an order say so. With this set, DuckDB would buffer whole results.
        "preserve_insertion_order": False,
        # Names in queries are never those of variables of Python.
        "python_enable_replacements": False,
    }
    if options.threads is not None:
        settings["threads"] = options.threads
    connection = duckdb.connect(config=settings)
    connection.execute("SET TimeZone = 'UTC'")
    # DuckDB takes `python -c` for a person at a terminal, and would print a bar among our output.
    connection.execute("SET enable_progress_bar = false")
    return connection


@cache
def in_utf8(directory: Path) -> str:
    """A path of the directory in UTF-8, as DuckDB requires.

    A directory with another name is created and addressed by a descriptor that stays open until the program ends.
    """
    try:
        str(directory).encode()
    except UnicodeEncodeError:
        directory.mkdir(exist_ok=True)
        return f"/proc/self/fd/{os.open(directory, os.O_PATH | os.O_DIRECTORY)}"
    return str(directory)


def scan(parquet: Path) -> str:
    """SQL that reads a file, with the column ROW_NUMBER. The path must not need quoting.

    Directories named `NAME=VALUE` do not become columns.
    """
    return f"read_parquet('{parquet}', hive_partitioning=false, {ROW_NUMBER}=true)"


def quoted(name: str) -> str:
    """Quotes an identifier for SQL."""
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """Quotes a string for SQL."""
    return "'" + value.replace("'", "''") + "'"
