"""All requests of a set of files as one Ibis table, with the same columns for loads and runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from iosonar.errors import UsageError, UserError
from iosonar.table.engine import Engine, EngineOptions
from iosonar.table.engines import start
from iosonar.table.files import open_files, read, refuse_copies
from iosonar.table.kinds.column import ROW_NUMBER
from iosonar.table.kinds.requests import BACKLOG, KINDS, LOAD, OWN_REASONS, REPLAY, UNKNOWN_REASON
from iosonar.table.source import SourceFile
from iosonar.table.window import Window

if TYPE_CHECKING:
    import ibis.expr.types as ir

SECTOR_BYTES = 512

ROWS_OF_A_PART = 20_000_000
"""Rows of several files that an engine is given at once to keep: it needs memory for each file."""

MAX_ROWS_OF_A_PART = 100_000_000
"""Rows of one file."""

OF_LOADS = ("queued_ns", "pid", "process")
"""Columns of loads that runs lack."""

COLUMNS = {
    "source": "int32",
    "place": "int64",
    **{name: column.type for name, column in REPLAY.columns.items()},
    **{name: LOAD.columns[name].type for name in OF_LOADS},
}
"""The columns of the table: those of a run in docs/schema.md, OF_LOADS, `source`, the index of the file, and `place`,
the row's position in it (in a run: the order of completion)."""


@dataclass(frozen=True)
class Requests:
    """The table of all requests, the files it came from, and the engine that computes on it.

    Four columns are derived: `delay_ns` = issued − scheduled, `latency_ns` = completed − issued (null where unknown),
    `bytes_moved`, and `not_held_back`.
    """

    table: ir.Table
    files: tuple[SourceFile, ...]
    engine: Engine
    window: Window | None = None
    """The window of time that the requests are of; None if they are all."""
    whole: ir.Table | None = None
    """If there is a window: all requests."""

    @property
    def whole_table(self) -> ir.Table:
        """All requests, also those outside of the window."""
        return self.table if self.whole is None else self.whole

    def within(self, window: Window | None) -> Requests:
        """The requests that are due in a window; all without one."""
        if window is None:
            return self
        whole = self.whole_table
        rows = whole if window.is_all else whole.filter(window.holds(whole, self.files))
        return replace(self, table=rows, window=window, whole=whole)

    @property
    def is_run(self) -> bool:
        """Whether any of the files is a run."""
        return any(file.kind.is_run for file in self.files)

    def kept(self, columns: Callable[[ir.Table], ir.Table]) -> ir.Table:
        """These columns of the same rows, computed once and then kept by the engine."""
        rows = sum(file.rows for file in self.files)
        parts = [columns(part) for part in self._parts()] if rows > ROWS_OF_A_PART else []
        return _derive(self.engine.keep(columns(self.table), rows, parts))

    def _parts(self) -> Iterator[ir.Table]:
        """The same rows in parts: some files, or some of the rows of a large one."""
        table, first, rows = self.table, 0, 0
        for number, file in enumerate(self.files):
            if rows and rows + file.rows > ROWS_OF_A_PART:
                yield table.filter(table.source.between(first, number - 1))
                rows = 0
            if file.rows > MAX_ROWS_OF_A_PART:
                of_file = table.filter(table.source == number)
                for place in range(0, file.rows, MAX_ROWS_OF_A_PART):
                    yield of_file.filter(of_file.place.between(place, place + MAX_ROWS_OF_A_PART - 1))
                continue
            first, rows = first if rows else number, rows + file.rows
        if rows:
            yield table.filter(table.source.between(first, len(self.files) - 1))


@contextmanager
def open_requests(paths: Sequence[Path], options: EngineOptions | None = None) -> Iterator[Requests]:
    """Opens loads or runs as one table. Refuses copies, and loads mixed with runs."""
    with open_files(paths) as (files, spill), requests_of(files, spill, options) as requests:
        yield requests


@contextmanager
def requests_of(files: tuple[SourceFile, ...], spill: Path, options: EngineOptions | None = None) -> Iterator[Requests]:
    """Open loads or runs as one table. Refuses copies, and loads mixed with runs."""
    refuse_mixture(files)
    refuse_copies(files)
    engine = start(spill, options or EngineOptions())
    try:
        parts = [_columns_of(file, index, engine) for index, file in enumerate(files)]
        table = parts[0].union(*parts[1:]) if len(parts) > 1 else parts[0]
        yield Requests(_derive(table), files, engine)
    finally:
        engine.close()


def beside(requests: Requests, file: SourceFile) -> Requests:
    """Another file on the same engine, so that its rows can be joined."""
    return Requests(_derive(_columns_of(file, 0, requests.engine)), (file,), requests.engine)


def with_times(table: ir.Table, **times: ir.Value) -> ir.Table:
    """A table with other times of its requests."""
    return _derive(table.mutate(**times))


def refuse_mixture(files: Sequence[SourceFile]) -> None:
    """Refuses other tables than those of requests, and a mixture of loads and runs.

    Times of loads and runs have different zeros, and a load has no results.
    """
    if other := next((file for file in files if file.kind not in KINDS), None):
        raise UsageError(f"{other.path} is {other.kind.words}, not of requests: make a separate report of it")
    first = {file.kind: file for file in reversed(files)}
    if len(first) > 1:
        load, run = first[LOAD].path, first[REPLAY].path
        raise UserError(f"{load} is a load, {run} is a run: make a separate report of each")


def _columns_of(file: SourceFile, index: int, engine: Engine) -> ir.Table:
    """A file with exactly the columns of COLUMNS."""
    import ibis

    table = read(file, engine)
    columns = {"source": ibis.literal(index), "place": table[ROW_NUMBER]}
    if not file.kind.is_run:
        columns |= _load_as_run(table)
    columns |= {name: table[name] for name in COLUMNS if name in table.columns}
    return table.select(
        **{name: columns.get(name, ibis.null()).cast(kind) for name, kind in COLUMNS.items()},
    )


def _load_as_run(table: ir.Table) -> dict[str, ir.Value]:
    """The columns of a run that a recorded load determines."""
    import ibis

    columns: dict[str, ir.Value] = {
        "request": table[ROW_NUMBER],
        "iteration": ibis.literal(0),
        "source_sector": table.sector,
        "scheduled_ns": table.at_ns,
        "pushed_back": ibis.literal(False),
        "widened": ibis.literal(False),
    }
    if "latency_ns" in table.columns:
        columns["issued_ns"] = table.latency_ns.isnull().ifelse(ibis.null(), table.at_ns)
        columns["completed_ns"] = table.at_ns + table.latency_ns
    return columns


def not_held_back(table: ir.Table) -> ir.BooleanValue:
    """Whether a request was not held back by the device or by --perturb, so that its delay is the replayer's.

    The replayer causes delays by reading the load too late, by writing the record too slowly, or by a backlog of its
    own. A request with an unknown reason does not count: see `is_unexplained`.
    """
    reason = _reason(table)
    is_own = (reason == BACKLOG) | (~table.pushed_back.fill_null(False) & reason.isin(OWN_REASONS))
    return table.issued_ns.notnull() & is_own


def bytes_moved(table: ir.Table) -> ir.NumericValue:
    """The data that a request moved, in bytes, of a load its length; flushes, discards and write-zeroes move none."""
    import ibis

    whole = table.outcome.fill_null("ok").isin(("ok", "corrupt"))
    done = ibis.coalesce(table.bytes_done, whole.ifelse(table.sectors.cast("int64") * SECTOR_BYTES, 0))
    moved: ir.NumericValue = table["op"].isin(("read", "write")).ifelse(done, 0)
    return moved


def is_unexplained(table: ir.Table) -> ir.BooleanValue:
    """Whether a request was issued, and nothing says what delayed it: the device or the replayer."""
    return table.issued_ns.notnull() & ~table.pushed_back.fill_null(False) & (_reason(table) == UNKNOWN_REASON)


def _reason(table: ir.Table) -> ir.StringValue:
    reason: ir.StringValue = table.delay_reason.fill_null(UNKNOWN_REASON)
    return reason


def _derive(table: ir.Table) -> ir.Table:
    """Adds the derived columns; those of columns that narrowed tables lack, such as `delay_reason`, only to others."""
    if "delay_reason" in table.columns:
        table = table.mutate(not_held_back=not_held_back(table))
    if "bytes_done" in table.columns:
        table = table.mutate(bytes_moved=bytes_moved(table))
    return table.mutate(
        delay_ns=table.issued_ns - table.scheduled_ns,
        latency_ns=table.completed_ns - table.issued_ns,
    )
