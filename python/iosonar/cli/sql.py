"""`iosonar sql`: SQL queries on runs and loads."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Annotated, Any

import typer

from iosonar.cli.run import Command, guarded, print_skipped_rows, write
from iosonar.errors import UsageError, UserError
from iosonar.report.outputs import destination
from iosonar.text import plain, shown

if TYPE_CHECKING:
    import duckdb

EXAMPLES = """
The table `requests` has all rows and columns of all files, and five more columns: `source` (the number of the file),
`place` (the row in its file), `delay_ns` (issue time - scheduled time), `latency_ns` (completion - issue time) and
`not_held_back` (neither the device nor --perturb held the request back). A load has its own columns, such as `at_ns`,
and the known ones of a run. The views are `reads`, `writes`, `per_second` (totals for each second) and `files`. The
dialect is DuckDB's. Queries are read-only and see only these files.

\b
Examples:
  iosonar sql run.replay.parquet "SELECT op, count(*),
      avg(latency_ns) / 1e3 AS us FROM requests GROUP BY op"
  iosonar sql run.replay.parquet "SELECT * FROM per_second" --format csv
  iosonar sql a.replay.gz b.replay.gz
      "SELECT source, max(latency_ns) FROM reads GROUP BY source"
  iosonar sql run.replay.parquet "FROM writes WHERE latency_ns > 1e8"
      --out slow.parquet

Exit codes: 0 done, 1 failed, 2 the command line or the SQL was wrong.
"""

SHOWN_ROWS = 200
"""Rows of a table for people; other formats have all."""


class Format(StrEnum):
    """How answers are written."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command(cls=Command, epilog=EXAMPLES)
def sql(
    words: Annotated[list[str], typer.Argument(metavar='FILE... "SELECT ..."', help="Runs or loads, then the query.")],
    format_: Annotated[
        Format | None,
        typer.Option("--format", help="Output format; default: by the name of --out, else a table."),
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the result to this file.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file of --out if it exists.")] = False,
    memory: Annotated[
        str, typer.Option(metavar="SIZE", help="Memory limit; what exceeds it spills to TMPDIR.")
    ] = "2GiB",
) -> None:
    """Query runs and loads in SQL."""
    from iosonar.table import open_files
    from iosonar.table.embedded import connect
    from iosonar.table.engine import EngineOptions
    from iosonar.table.opened import with_given_names
    from iosonar.table.views import check_query, define_views, lock

    def work() -> None:
        import duckdb

        *names, query = words
        if not names:
            raise UsageError('sql needs a file and a query: iosonar sql FILE... "SELECT ..."')
        if not _is_unicode(query):
            raise UsageError(f"the query is not UTF-8: {shown(query)}")
        kind = format_ or _format_of(out)
        paths = [Path(name) for name in names]
        if out is None and kind is Format.PARQUET:
            raise UsageError("Parquet needs a file: --out FILE")
        # Without Ibis: importing it takes longer than most queries.
        with open_files(paths) as (files, spill), connect(spill, EngineOptions(memory)) as connection:
            print_skipped_rows(files)
            try:
                define_views(connection, files)
                check_query(connection, query)
                with _destination(out, kind, overwrite=overwrite) as target:
                    lock(connection, [*(file.parquet for file in files), *([target] if target else [])])
                    answer = connection.sql(query)
                    if target is None:
                        write(_as_table(answer))
                    elif kind is Format.TABLE:
                        target.write_text(_as_table(answer), encoding="utf-8")
                    else:
                        _copy(answer, kind, target)
            except (duckdb.IOException, duckdb.OutOfMemoryException):
                # Not the fault of the query.
                raise
            except duckdb.Error as error:
                wrong = UsageError if isinstance(error, _wrong_sql()) else UserError
                raise wrong(with_given_names(str(error))) from error

    guarded("sql", work)


def _wrong_sql() -> tuple[type[Exception], ...]:
    """Errors of the query itself; all others depend on values in the files."""
    import duckdb

    return (
        duckdb.ParserException,
        duckdb.SyntaxException,
        duckdb.BinderException,
        duckdb.CatalogException,
        duckdb.PermissionException,
    )


def _is_unicode(words: str) -> bool:
    """Whether the engine takes them: bytes of the command line that are no UTF-8 are halves of pairs."""
    return not any("\ud800" <= each <= "\udfff" for each in words)


def _format_of(out: Path | None) -> Format:
    if out is None:
        return Format.TABLE
    suffix = out.suffix.lstrip(".").lower()
    if suffix in set(Format):
        return Format(suffix)
    if suffix in ("", "txt"):
        return Format.TABLE
    known = ", ".join(f".{kind}" for kind in Format)
    raise UsageError(f"unknown format of {shown(out)}: end the name in {known} or .txt, or use --format")


@contextmanager
def _destination(out: Path | None, kind: Format, *, overwrite: bool) -> Iterator[Path | None]:
    """What to write the answer to; None for standard output as it is."""
    import duckdb

    if out is not None:
        with destination(out, overwrite=overwrite) as target:
            try:
                yield target
            except duckdb.IOException as error:
                if str(target) not in str(error):
                    raise
                raise UserError(f"can't write {shown(out)}: {_why(str(error))}") from error
    elif kind is Format.TABLE:
        yield None
    else:
        with _pipe() as target:
            yield target


def _why(said: str) -> str:
    """The system's reason in what the engine says, which names the file as the engine knows it."""
    number = re.search(r'"errno":"([0-9]+)"', said)
    if number is not None:
        return os.strerror(int(number[1]))
    return next((reason for reason in ("No space left on device", "File too large") if reason in said), said)


def _copy(answer: duckdb.DuckDBPyRelation, kind: Format, target: Path) -> None:
    import duckdb

    options = {Format.CSV: "FORMAT csv, HEADER", Format.JSON: "FORMAT json, ARRAY", Format.PARQUET: "FORMAT parquet"}
    source = f"({_in_json(answer)})" if kind is Format.JSON else "answer"
    try:
        answer.query("answer", f"COPY {source} TO '{target}' ({options[kind]}, USE_TMP_FILE false)")
    except duckdb.Error as error:
        # DuckDB quotes the COPY statement, which the user did not write.
        raise type(error)(str(error).split("\n\nLINE ")[0]) from error


def _in_json(answer: duckdb.DuckDBPyRelation) -> str:
    """The answer with null for what is no number in JSON: NaN and infinities."""
    from iosonar.table.embedded import quoted

    counts = Counter(name.lower() for name in answer.columns)
    types = zip(answer.columns, answer.types, strict=True)
    floats = [quoted(name) for name, kind in types if str(kind) in ("FLOAT", "DOUBLE") and counts[name.lower()] == 1]
    replaced = ", ".join(f"CASE WHEN isfinite({name}) THEN {name} END AS {name}" for name in floats)
    return f"SELECT * REPLACE ({replaced}) FROM answer" if floats else "FROM answer"


@contextmanager
def _pipe() -> Iterator[Path]:
    """A pipe to standard output: DuckDB would reopen stdout and truncate a file opened for appending."""
    read, write_end = os.pipe()
    trouble: list[OSError] = []

    def pump() -> None:
        # Closing this end gives the engine EPIPE.
        with os.fdopen(read, "rb") as source:
            try:
                if sys.stdout is not None:
                    shutil.copyfileobj(source, sys.stdout.buffer)
                    sys.stdout.buffer.flush()
            except OSError as error:
                trouble.append(error)

    pumping = Thread(target=pump, daemon=True)
    pumping.start()
    try:
        yield Path(f"/proc/self/fd/{write_end}")
    except Exception:
        if not trouble:
            raise
    finally:
        os.close(write_end)
        pumping.join()
    if trouble:
        if isinstance(trouble[0], BrokenPipeError):
            raise trouble[0]
        raise UserError(f"can't write to standard output: {trouble[0].strerror}") from trouble[0]


def _as_table(answer: duckdb.DuckDBPyRelation) -> str:
    """The first rows in columns, numbers to the right."""
    rows = _printable(answer.limit(SHOWN_ROWS + 1)).fetchall()
    cells = [[plain(_text(value)) for value in row] for row in rows[:SHOWN_ROWS]]
    heads = [plain(name) for name in answer.columns]
    widths = [max(len(text) for text in column) for column in zip(heads, *cells, strict=True)]
    right = [all(isinstance(row[place], int | float | None) for row in rows) for place in range(len(widths))]

    def line(texts: list[str]) -> str:
        aligned = zip(texts, widths, right, strict=True)
        return "  ".join(text.rjust(width) if r else text.ljust(width) for text, width, r in aligned).rstrip() + "\n"

    shown = line(heads) + line(["─" * width for width in widths]) + "".join(line(row) for row in cells)
    return shown + (f"… first {SHOWN_ROWS} rows; --format csv prints all\n" if len(rows) > SHOWN_ROWS else "")


def _printable(answer: duckdb.DuckDBPyRelation) -> duckdb.DuckDBPyRelation:
    """The same with text for what Python has no type for by itself: times with a zone would need another library."""
    if not any("TIME ZONE" in str(kind) for kind in answer.types):
        return answer
    columns = []
    for place, (name, kind) in enumerate(zip(answer.columns, answer.types, strict=True), 1):
        cast = "::VARCHAR" if "TIME ZONE" in str(kind) else ""
        quoted = name.replace('"', '""')
        columns.append(f'#{place}{cast} AS "{quoted}"')
    return answer.project(", ".join(columns))


def _text(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def main() -> int:
    """Entry point of `iosonar-sql`."""
    app(prog_name="iosonar sql")
    return 0
