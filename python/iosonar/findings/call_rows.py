"""Shared by findings of calls: rows, their names in `iosonar sql`, and times that say something."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from iosonar import units
from iosonar.findings.finding import Evidence
from iosonar.quantities.calls.series import CallSeries
from iosonar.study.base import cached
from iosonar.study.calls import PLACEHOLDERS, CallStudy
from iosonar.study.of_calls import judgement_of_calls
from iosonar.text import plain

if TYPE_CHECKING:
    import ibis.expr.types as ir

NAMED = 5
"""Files in a filter, the most telling first."""

SHOWN = 60
"""Characters of a path in a sentence."""


@dataclass(frozen=True)
class Work:
    """The calls of a series that are on files: how many, and their time in seconds."""

    calls: int
    seconds: float


def rows_of(study: CallStudy) -> ir.Table:
    """The calls that were made, with `owner`: the process, or the thread if that is not known."""
    import ibis

    table = study.first.table
    return table.mutate(owner=ibis.coalesce(table.process, table.thread))


@cached
def work_of(study: CallStudy) -> Mapping[CallSeries, Work]:
    """The work on files, by series; waits for pipes, sockets and other processes are not on files."""
    table = study.first.table
    named = table.filter(table.path.notnull())
    rows = (
        named.group_by("series")
        .aggregate(calls=named.count(), ns=named.duration_ns.cast("float64").sum())
        .to_pyarrow()
        .to_pylist()
    )
    found = {CallSeries(row["series"]): Work(int(row["calls"]), (row["ns"] or 0.0) / 1e9) for row in rows}
    return {series: found.get(series, Work(0, 0.0)) for series in CallSeries}


def seconds_of(study: CallStudy) -> float:
    """The time in all calls on files."""
    return sum(each.seconds for each in work_of(study).values())


def total(table: ir.Table, **sums: ir.Scalar) -> dict[str, Any]:
    """One row of sums; a sum of nothing is zero."""
    row: dict[str, Any] = table.aggregate(**sums).to_pyarrow().to_pylist()[0]
    return {name: 0 if value is None else value for name, value in row.items()}


def largest(table: ir.Table, column: str, limit: int = NAMED) -> list[dict[str, Any]]:
    """The rows with the largest values, in an order that does not change."""
    rows: list[dict[str, Any]] = (
        table.order_by([table[column].desc(), table.path]).limit(limit).to_pyarrow().to_pylist()
    )
    return rows


def path_column(study: CallStudy) -> str:
    """What `iosonar sql` calls the file that a call is on."""
    file = study.first.calls.file
    if file.kind.is_run:
        return "path"
    return "file" if "file" in file.columns else "coalesce(fd_path, path)"


def on_files(study: CallStudy, paths: Sequence[str]) -> str:
    """A condition: the call is on one of these files."""
    return f"{path_column(study)} IN ({', '.join(map(literal, paths))})"


def diagram_of(study: CallStudy, path: str) -> str:
    """The diagram that shows a file: of its offsets, or of the bytes of all files if it has none of its own."""
    drawn = study.first.drawn_files
    return f"offset.{drawn.index(path) + 1}" if path in drawn else "files.bytes"


def literal(text: str) -> str:
    """A text in SQL; characters that cannot be printed are written by their numbers."""
    parts: list[str] = []
    run = ""
    for each in text:
        if each.isprintable() and plain(each) == each:
            run += each.replace("'", "''")
            continue
        parts += [f"'{run}'"] * bool(run) + [f"chr({ord(each)})"]
        run = ""
    parts += [f"'{run}'"] * bool(run or not parts)
    return " || ".join(parts)


def shown(path: str) -> str:
    """A path in a sentence: its end, if it is long."""
    name = plain(path)
    if len(name) <= SHOWN:
        return name
    tail = name[-(SHOWN - 1) :]
    slash = tail.find("/")
    return f"…{tail[slash:] if 0 <= slash < SHOWN // 2 else tail}"


def place(
    study: CallStudy, condition: str, diagram: str, first_ns: float | None = None, last_ns: float | None = None
) -> Evidence:
    """Evidence over the time from the first to the last of the calls."""
    origin = study.first.origin_ns
    ends = [None if at is None else max((at - origin) / 1e9, 0.0) for at in (first_ns, last_ns)]
    return Evidence(condition, diagram, *ends)


def without_calls(study: CallStudy) -> str:
    """Why nothing can be found; empty if there are calls."""
    return "" if study.first.extent.calls else "no calls in the file"


def without_times(study: CallStudy) -> str:
    """The same of what needs the times that calls take."""
    side = study.first
    if not side.is_run and side.calls.file.is_generated:
        return f"the trace {PLACEHOLDERS}"
    if doubt := judgement_of_calls(side).doubt:
        return doubt
    return without_calls(study) or ("" if side.pooled_response.count else "no call has a duration")


def times_say_something(study: CallStudy) -> bool:
    """Whether the calls took the time that they take without a tracer that slows them down."""
    return not without_times(study) and not study.first.calls.file.is_by_strace


def strace_doubt(study: CallStudy) -> str:
    """What to say of times that strace took; empty for others."""
    is_slowed = not study.first.is_run and study.first.calls.file.is_by_strace
    return " strace slows down each call by a similar time, so short calls look too long." if is_slowed else ""


def of_time(study: CallStudy, seconds: float) -> str:
    """How much of the time in calls on files that is, as a clause; empty if times say nothing."""
    whole = seconds_of(study)
    if without_times(study) or not whole > 0:
        return ""
    return f"{units.span(seconds)}, {units.percent(min(seconds / whole, 1.0))} of the time in calls on files"
