"""All requests of a set of files as one Ibis table, with the same columns for loads and runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from iosonar.errors import UserError
from iosonar.table.columns import COLUMNS_OF, ROW_NUMBER
from iosonar.table.engine import Engine, EngineOptions
from iosonar.table.engines import start
from iosonar.table.input_checks import refuse_copies, refuse_mixture
from iosonar.table.source import Kind, SourceFile
from iosonar.table.temporary import temporary_directory
from iosonar.table.validation import open_validated
from iosonar.table.versions import stored_name, with_new_names
from iosonar.table.window import Window

if TYPE_CHECKING:
    import ibis.expr.types as ir

COLUMNS: dict[str, str] = {
    "source": "int32",
    "place": "int64",
    "request": "int64",
    "iteration": "int32",
    "device": "int32",
    "source_sector": "int64",
    "sector": "int64",
    "sectors": "int64",
    "op": "string",
    "flags": "int32",
    "scheduled_ns": "int64",
    "issued_ns": "int64",
    "completed_ns": "int64",
    "ready_ns": "int64",
    "submitted_ns": "int64",
    "last_empty_poll_ns": "int64",
    "bytes_done": "int64",
    "in_flight": "int32",
    "waiting": "int32",
    "pushed_back": "boolean",
    "widened": "boolean",
    "delay_reason": "string",
    "outcome": "string",
    "errno": "int32",
    "stream": "int32",
    "cause": "int64",
}
"""The columns of the table: those of a run in docs/schema.md, `source`, the index of the file, and `place`, the row's
position in it (in a run: the order of completion)."""


OWN_REASONS = ("none", "input", "completion_log")
"""Values of `delay_reason` with which a request counts as not held back: the replayer itself caused the delay."""

BACKLOG = "backlog"
"""The value of a request that waited for the depth or an overlap only because the replayer had been late before: it
counts as not held back, even if it was pushed back."""


UNKNOWN_REASON = "unknown"
"""The value of `delay_reason`, as null is, in results that do not say what delayed a request."""


@dataclass(frozen=True)
class Requests:
    """The table of all requests, the files it came from, and the engine that computes on it.

    Three columns are derived: `delay_ns` = issued − scheduled, `latency_ns` = completed − issued (null where unknown),
    and `not_held_back`.
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
        return any(file.kind is Kind.REPLAY for file in self.files)

    def kept(self, columns: ir.Table) -> ir.Table:
        """The same rows with derived columns, computed once and then kept by the engine."""
        return _derive(self.engine.keep(columns, sum(file.rows for file in self.files)))


@contextmanager
def open_files(paths: Sequence[Path]) -> Iterator[tuple[tuple[SourceFile, ...], Path]]:
    """Opens loads or runs in any format; yields them and a directory to spill to.

    Temporary files are removed at the end.
    """
    if not paths:
        raise UserError("no file given")
    with ExitStack() as stack:
        directory = stack.enter_context(temporary_directory())
        converted = directory / "converted"
        converted.mkdir()
        yield tuple(open_validated(path, converted, stack) for path in paths), directory / "spill"


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


def known_columns(file: SourceFile) -> list[str]:
    """The columns of docs/schema.md that a file has."""
    return [name for name in COLUMNS_OF[file.kind] if stored_name(name, file.kind, file.version) in file.columns]


def _columns_of(file: SourceFile, index: int, engine: Engine) -> ir.Table:
    """A file with exactly the columns of COLUMNS."""
    import ibis

    known = known_columns(file)
    stored = [stored_name(name, file.kind, file.version) for name in known]
    table = with_new_names(engine.read(file.parquet, stored), file.kind, file.version)
    columns = {"source": ibis.literal(index), "place": table[ROW_NUMBER]}
    if file.kind is Kind.LOAD:
        columns |= _load_as_run(table)
    columns |= {name: table[name] for name in COLUMNS if name in known}
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


def is_unexplained(table: ir.Table) -> ir.BooleanValue:
    """Whether a request was issued, and nothing says what delayed it: the device or the replayer."""
    return table.issued_ns.notnull() & ~table.pushed_back.fill_null(False) & (_reason(table) == UNKNOWN_REASON)


def _reason(table: ir.Table) -> ir.StringValue:
    reason: ir.StringValue = table.delay_reason.fill_null(UNKNOWN_REASON)
    return reason


def _derive(table: ir.Table) -> ir.Table:
    """Adds the derived columns; `not_held_back` only if the table has `delay_reason`, which narrowed tables lack."""
    if "delay_reason" in table.columns:
        table = table.mutate(not_held_back=not_held_back(table))
    return table.mutate(
        delay_ns=table.issued_ns - table.scheduled_ns,
        latency_ns=table.completed_ns - table.issued_ns,
    )
