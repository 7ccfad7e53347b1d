"""The table that a view shows: all columns of a request, and the rows of a box as CSV or as a load."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from iosonar.table.convert import convert
from iosonar.table.embedded import quoted, scan, text
from iosonar.table.kinds.column import ROW_NUMBER
from iosonar.text import plain

if TYPE_CHECKING:
    import duckdb

    from iosonar.table import SourceFile

LEFT_OUT = ("source", "place", "bytes_moved", "not_held_back", ROW_NUMBER)
"""Columns of the view that say nothing of a request that others do not."""


class Table:
    """A table and its view `requests`; one query at a time."""

    def __init__(self, file: SourceFile, connection: duckdb.DuckDBPyConnection, spill: Path) -> None:
        self.file, self._connection, self._spill, self._lock = file, connection, spill, Lock()

    @property
    def is_run(self) -> bool:
        """Whether it is the result of a replay."""
        return self.file.kind.is_run

    def request(self, place: int, issued_ns: int) -> list[tuple[str, str]]:
        """The columns of a request that have a value, as texts."""
        time = "issued_ns" if self.is_run else "at_ns"
        query = f"SELECT * FROM requests WHERE {time} = {issued_ns} AND place = {place}"
        with self._lock:
            result = self._connection.sql(query)
            names, rows = result.columns, result.fetchall()
        found = zip(names, rows[0] if rows else (), strict=False)
        return [(name, plain(str(value))) for name, value in found if value is not None and name not in LEFT_OUT]

    def count(self, condition: str) -> int:
        """How many requests meet a condition."""
        with self._lock:
            [(found,)] = self._connection.sql(f"SELECT count(*) FROM requests WHERE {condition}").fetchall()
        return int(found)

    @contextmanager
    def rows(self, condition: str) -> Iterator[Path]:
        """A temporary CSV file of the rows that meet a condition."""
        with self._directory() as directory:
            path = directory / "rows.csv"
            self._copy(f"SELECT * EXCLUDE source FROM requests WHERE {condition} ORDER BY place", path, "csv, HEADER")
            yield path

    @contextmanager
    def load(self, condition: str) -> Iterator[Path]:
        """A temporary load of the requests that meet a condition: the same kind of table, which the binary converts."""
        with self._directory() as directory:
            part, path = directory / "part.parquet", directory / "selected.load.parquet"
            columns, row = ", ".join(map(quoted, self.file.columns)), ROW_NUMBER
            chosen = f"SELECT place FROM requests WHERE {condition}"
            query = f"SELECT {columns} FROM {scan(self.file.parquet)} WHERE {row} IN ({chosen}) ORDER BY {row}"
            footer = text(json.dumps(self._footer(condition)))
            self._copy(query, part, f"parquet, COMPRESSION zstd, KV_METADATA {{iosonar: {footer}}}")
            convert(part, path)
            yield path

    def _footer(self, condition: str) -> dict[str, Any]:
        """That of the table, with counts and extent of the requests that meet a condition."""
        numbers = ["count(*)", *(f"count(*) FILTER (op = '{op}')" for op in ("read", "write"))]
        numbers += ["min(scheduled_ns)", "max(scheduled_ns)", "max(source_sector + sectors)", "max(sectors)"]
        with self._lock:
            query = f"SELECT {', '.join(numbers)} FROM requests WHERE {condition}"
            [(requests, reads, writes, *extent)] = self._connection.sql(query).fetchall()
        footer: dict[str, Any] = json.loads(pq.ParquetFile(self.file.parquet).schema_arrow.metadata[b"iosonar"])
        counts = {"requests": requests, "reads": reads, "writes": writes, "others": requests - reads - writes}
        span = dict(zip(("first_ns", "last_ns", "max_end_sector", "max_sectors"), extent, strict=True))
        return footer | {"counts": footer.get("counts", {}) | counts, "span": footer.get("span", {}) | span}

    def _copy(self, query: str, path: Path, options: str) -> None:
        with self._lock:
            self._connection.execute(f"COPY ({query}) TO {text(str(path))} (FORMAT {options})").fetchall()

    @contextmanager
    def _directory(self) -> Iterator[Path]:
        self._spill.mkdir(exist_ok=True)
        with TemporaryDirectory(dir=self._spill) as name:
            yield Path(name)
