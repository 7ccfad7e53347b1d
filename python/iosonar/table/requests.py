"""All requests of some files as one Ibis table, with the same columns whatever the files are."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from iosonar.errors import UserError
from iosonar.table.convert import convert
from iosonar.table.engine import ROW_NUMBER, Engine, EngineOptions, start
from iosonar.table.source import Kind, SourceFile, is_parquet, read_source
from iosonar.table.together import refuse_copies, refuse_mixture

if TYPE_CHECKING:
    import ibis.expr.types as ir

COLUMNS: dict[str, str] = {
    "source": "int32",
    "place": "int64",
    "request": "int64",
    "round": "int32",
    "device": "int32",
    "source_sector": "int64",
    "sector": "int64",
    "sectors": "int64",
    "op": "string",
    "flags": "int32",
    "intended_ns": "int64",
    "issued_ns": "int64",
    "completed_ns": "int64",
    "ready_ns": "int64",
    "submitted_ns": "int64",
    "unanswered_ns": "int64",
    "bytes_done": "int64",
    "in_flight": "int32",
    "waiting": "int32",
    "pushed_back": "boolean",
    "widened": "boolean",
    "held_by": "string",
    "outcome": "string",
    "errno": "int32",
}
"""The columns of the table, those of a run in docs/schema.md and two more: `source` is the index of the file,
`place` the row's place in it (in a run: the order of completion)."""


@dataclass(frozen=True)
class Requests:
    """The table of all requests, the files it came from, and the engine that computes on it.

    Two columns are derived: `delay_ns` = issued − intended, `latency_ns` = completed − issued; null where unknown.
    """

    table: ir.Table
    files: tuple[SourceFile, ...]
    engine: Engine

    @property
    def is_run(self) -> bool:
        """Whether any of the files is a run."""
        return any(file.kind is Kind.REPLAY for file in self.files)

    def kept(self, columns: ir.Table) -> ir.Table:
        """The same rows, read from the files once and then kept by the engine; with the derived columns."""
        return _derive(self.engine.keep(columns, sum(file.rows for file in self.files)))


@contextmanager
def open_requests(
    paths: Sequence[Path], options: EngineOptions | None = None, *, as_they_are: bool = False
) -> Iterator[Requests]:
    """Opens loads or runs, native or classic, as one table; what is temporary goes away at the end.

    Loads beside runs and copies are refused, unless the files are wanted `as_they_are`.
    """
    if not paths:
        raise UserError("no file given")
    with tempfile.TemporaryDirectory(prefix="iosonar-") as folder:
        converted, spill = Path(folder, "converted"), Path(folder, "spill")
        converted.mkdir()
        files = tuple(read_source(path, path if is_parquet(path) else convert(path, converted)) for path in paths)
        if not as_they_are:
            refuse_mixture(files)
            refuse_copies(files)
        engine = start(spill, options or EngineOptions())
        try:
            parts = [_columns_of(file, index, engine) for index, file in enumerate(files)]
            table = parts[0].union(*parts[1:]) if len(parts) > 1 else parts[0]
            yield Requests(_derive(table), files, engine)
        finally:
            engine.close()


def _columns_of(file: SourceFile, index: int, engine: Engine) -> ir.Table:
    """One file with exactly the columns of COLUMNS."""
    import ibis

    table = engine.read(file.parquet)
    given = {"source": ibis.literal(index), "place": table[ROW_NUMBER]}
    if file.kind is Kind.LOAD:
        given |= _run_of_a_load(table)
    given |= {name: table[name] for name in COLUMNS if name in table.columns}
    return table.select(
        **{name: given.get(name, ibis.null()).cast(kind) for name, kind in COLUMNS.items()},
    )


def _run_of_a_load(table: ir.Table) -> dict[str, ir.Value]:
    """A load as the run that it was when it was recorded, as far as that is known."""
    import ibis

    columns: dict[str, ir.Value] = {
        "request": table[ROW_NUMBER],
        "round": ibis.literal(0),
        "source_sector": table.sector,
        "intended_ns": table.at_ns,
        "pushed_back": ibis.literal(False),
        "widened": ibis.literal(False),
    }
    if "latency_ns" in table.columns:
        columns["issued_ns"] = table.latency_ns.isnull().ifelse(ibis.null(), table.at_ns)
        columns["completed_ns"] = table.at_ns + table.latency_ns
    return columns


def _derive(table: ir.Table) -> ir.Table:
    return table.mutate(
        delay_ns=table.issued_ns - table.intended_ns,
        latency_ns=table.completed_ns - table.issued_ns,
    )
