"""All calls of a trace, or of a run of calls, as one Ibis table with the same columns for both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

from iosonar.errors import UsageError
from iosonar.table.call_kinds import MOVES_DATA, family_of
from iosonar.table.engine import Engine, EngineOptions
from iosonar.table.engines import start
from iosonar.table.files import open_files, read
from iosonar.table.kinds.calls import KINDS, MISMATCHES
from iosonar.table.kinds.column import ROW_NUMBER
from iosonar.table.source import SourceFile
from iosonar.table.window import Window

if TYPE_CHECKING:
    import ibis.expr.types as ir

COLUMNS: dict[str, str] = {
    "number": "int64",
    "instance": "int32",
    "thread": "int64",
    "process": "int64",
    "call": "string",
    "path": "string",
    "offset": "int64",
    "length": "int64",
    "begin_ns": "int64",
    "end_ns": "int64",
    "duration_ns": "int64",
    "result": "int64",
    "errno": "int32",
    "scheduled_ns": "int64",
    "gap_ns": "int64",
    "delay_reason": "string",
    "outcome": "string",
    "expected_duration_ns": "int64",
    "flags": "int64",
    "waited_ns": "int64",
}
"""The columns of the table. `begin_ns` of a run is the time of issue, null for calls that were not issued."""


@dataclass(frozen=True)
class Calls:
    """The table of all calls, the file it came from, and the engine that computes on it.

    `table` has COLUMNS and these: `family`, `bytes` (moved; null for calls that move none), `has_failed` and
    `is_mismatch`.
    """

    table: ir.Table
    file: SourceFile
    engine: Engine
    window: Window | None = None
    """The window of time that the calls are of; None if they are all."""
    whole: ir.Table | None = None
    """If there is a window: all calls."""

    @property
    def is_run(self) -> bool:
        """Whether it is a run."""
        return self.file.kind.is_run

    @property
    def is_part(self) -> bool:
        """Whether a window leaves calls out."""
        return self.window is not None and not self.window.is_all

    def within(self, window: Window | None) -> Calls:
        """The calls that are due in a window, of a trace those that began in it; all without one."""
        if window is None:
            return self
        whole = self.table if self.whole is None else self.whole
        rows = whole if window.is_all else whole.filter(window.holds_calls(whole, self.file))
        return replace(self, table=rows, window=window, whole=whole)

    def made_by(self, runs: Sequence[Calls]) -> Calls:
        """The calls of a trace that at least one of these runs of it made, each in its window."""
        made = [_columns_of(run.file, self.engine) for run in runs]
        within = [
            table.filter(run.window.holds_calls(table, run.file)) if run.window else table
            for run, table in zip(runs, made, strict=True)
        ]
        numbers = [table.filter(table.begin_ns.notnull()).select("number") for table in within]
        every = reduce(lambda all_, more: all_.union(more), numbers)
        whole = self.table if self.whole is None else self.whole
        window = next((run.window for run in runs if run.window), None)
        return replace(self, table=whole.semi_join(every, "number"), window=window, whole=whole)

    def kept(self, columns: ir.Table) -> ir.Table:
        """A table with as many rows, computed once and then kept by the engine."""
        return self.engine.keep(columns, self.file.rows)


@contextmanager
def open_calls(path: Path, options: EngineOptions | None = None) -> Iterator[Calls]:
    """Opens a trace of calls, or a run of calls."""
    with open_files([path]) as (files, spill), calls_of(files[0], spill, options) as calls:
        yield calls


@contextmanager
def calls_of(file: SourceFile, spill: Path, options: EngineOptions | None = None) -> Iterator[Calls]:
    """The calls of an open file."""
    if file.kind not in KINDS:
        raise UsageError(f"{file.path} is {file.kind.words}, not a trace or run of calls")
    engine = start(spill, options or EngineOptions())
    try:
        yield Calls(_columns_of(file, engine), file, engine)
    finally:
        engine.close()


def _columns_of(file: SourceFile, engine: Engine) -> ir.Table:
    import ibis

    table = read(file, engine)
    found = _of_run(table) if file.kind.is_run else _of_trace(table)
    found |= {name: table[name] for name in COLUMNS if name not in found and name in table.columns}
    columns = {name: found.get(name, ibis.null()).cast(kind) for name, kind in COLUMNS.items()}
    whole = table.select(**columns)
    whole = whole.mutate(family=family_of(whole.call))
    moves = whole.family.isin(MOVES_DATA) & (whole.result > 0)
    return whole.mutate(
        bytes=moves.ifelse(whole.result, ibis.null().cast("int64")),
        has_failed=whole.errno.fill_null(0) != 0,
        is_mismatch=whole.outcome.isin(MISMATCHES),
    )


def _of_trace(table: ir.Table) -> dict[str, ir.Value]:
    import ibis

    def first(*names: str) -> ir.Value:
        present = [table[name] for name in names if name in table.columns]
        return ibis.coalesce(*present) if present else ibis.null()

    return {
        "number": table[ROW_NUMBER],
        "instance": ibis.literal(0),
        # As iosonar resolved it: null if it is no file, as of a socket. In tables of other programs, as it is named.
        "path": table.file if "file" in table.columns else first("fd_path", "path"),
        "offset": first("position", "offset"),
        "end_ns": table.begin_ns + table.duration_ns if "duration_ns" in table.columns else ibis.null(),
        "scheduled_ns": table.begin_ns,
    }


DEFAULTS = {"delay_reason": "none", "outcome": "same"}
"""Values of columns that a run may lack."""


def _of_run(table: ir.Table) -> dict[str, ir.Value]:
    import ibis

    found: dict[str, ir.Value] = {
        "number": table.call_number,
        "begin_ns": table.issued_ns,
        "end_ns": table.completed_ns,
        "duration_ns": table.completed_ns - table.issued_ns,
    }
    if "position" in table.columns:
        found["offset"] = table.position
    # What columns that are missing mean.
    found |= {name: ibis.literal(text) for name, text in DEFAULTS.items() if name not in table.columns}
    return found
