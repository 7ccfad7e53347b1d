"""`iosonar sql`: any question about runs and loads, in SQL."""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Annotated, Any

import typer

from iosonar.cli.run import guarded
from iosonar.errors import UsageError, UserError

if TYPE_CHECKING:
    import duckdb

EXAMPLES = """
The table `requests` has all rows of all files, with the columns of docs/schema.md and four more: `source` (the number
of the file), `place` (of the row in its file), `delay_ns` and `latency_ns`. The views `reads` and `writes` hold those
alone, `per_second` counts by second, `files` names the files. The SQL is DuckDB's.

Examples:

  iosonar sql run.replay.parquet "SELECT op, count(*), avg(latency_ns) / 1e3 AS us FROM requests GROUP BY op"

  iosonar sql run.replay.parquet "SELECT * FROM per_second" --format csv

  iosonar sql a.replay.gz b.replay.gz "SELECT source, max(latency_ns) FROM reads GROUP BY source"

  iosonar sql run.replay.parquet "FROM writes WHERE latency_ns > 1e8" --out slow.parquet
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


@app.command(epilog=EXAMPLES)
def sql(
    words: Annotated[list[str], typer.Argument(metavar='FILE... "SELECT ..."', help="Runs or loads, then the query.")],
    format_: Annotated[
        Format | None,
        typer.Option("--format", help="Of the answer; by default that of --out's name, else a table."),
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the answer there.")] = None,
    memory: Annotated[str, typer.Option(metavar="SIZE", help="Memory to compute in; more goes to TMPDIR.")] = "2GiB",
) -> None:
    """Answers a question about runs and loads in SQL."""
    from iosonar.table import open_requests
    from iosonar.table.engine import EngineOptions
    from iosonar.table.views import define_views

    def work() -> None:
        import duckdb

        *files, query = words
        if not files:
            raise UsageError('a file and a query are needed: iosonar sql FILE... "SELECT ..."')
        kind = format_ or _format_of(out)
        paths = [Path(file) for file in files]
        if out is None and kind is Format.PARQUET:
            raise UsageError("Parquet needs a file: --out FILE")
        with open_requests(paths, EngineOptions(memory), as_they_are=True) as requests:
            connection = define_views(requests).con
            try:
                kinds = [statement.type for statement in connection.extract_statements(query)]
                if kinds != [duckdb.StatementType.SELECT]:
                    raise UserError("one question at a time, a SELECT or FROM: the files are not changed")
                answer = connection.sql(query)
                _write(answer, kind, out)
            except (duckdb.IOException, duckdb.OutOfMemoryException):
                # Not the question's fault.
                raise
            except duckdb.Error as error:
                raise UserError(str(error)) from error

    guarded("sql", work)


def _format_of(out: Path | None) -> Format:
    suffix = out.suffix.lstrip(".").lower() if out else ""
    if suffix in set(Format):
        return Format(suffix)
    if suffix in ("", "txt"):
        return Format.TABLE
    known = ", ".join(f".{kind}" for kind in Format)
    raise UsageError(f"{out}: which format is that? The name may end in {known} or .txt, or --format says it")


def _write(answer: duckdb.DuckDBPyRelation, kind: Format, out: Path | None) -> None:
    """Writes the answer to a file or to standard output; a file is whole or not there."""
    if out is None:
        if kind is Format.TABLE:
            print(_as_table(answer), end="")
        else:
            _stream(answer, kind)
        return
    unfinished = out.with_name(f".{out.name}.unfinished")
    try:
        # The engine would not tell whether it can't read or can't write.
        unfinished.touch()
        if kind is Format.TABLE:
            unfinished.write_text(_as_table(answer))
        else:
            _copy(answer, kind, str(unfinished))
        unfinished.rename(out)
    except OSError as error:
        raise UserError(f"can't write {out}: {error.strerror}") from error
    finally:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)


def _copy(answer: duckdb.DuckDBPyRelation, kind: Format, target: str) -> None:
    options = {Format.CSV: "FORMAT csv, HEADER", Format.JSON: "FORMAT json, ARRAY", Format.PARQUET: "FORMAT parquet"}
    quoted = target.replace("'", "''")
    answer.query("answer", f"COPY answer TO '{quoted}' ({options[kind]}, USE_TMP_FILE false)")


def _stream(answer: duckdb.DuckDBPyRelation, kind: Format) -> None:
    """Through a pipe to standard output: the engine would open that anew, and empty a file that is appended to."""
    sys.stdout.flush()
    read, write = os.pipe()
    trouble: list[OSError] = []

    def pump() -> None:
        # Closing this end tells the engine that nobody reads any more.
        with os.fdopen(read, "rb") as source:
            try:
                shutil.copyfileobj(source, sys.stdout.buffer)
                sys.stdout.buffer.flush()
            except OSError as error:
                trouble.append(error)

    pumping = Thread(target=pump)
    pumping.start()
    try:
        _copy(answer, kind, f"/dev/fd/{write}")
    except Exception:
        if not trouble:
            raise
    finally:
        os.close(write)
        pumping.join()
    if trouble:
        if isinstance(trouble[0], BrokenPipeError):
            raise trouble[0]
        raise UserError(f"can't write the answer: {trouble[0].strerror}") from trouble[0]


def _as_table(answer: duckdb.DuckDBPyRelation) -> str:
    """The first rows in columns, numbers to the right."""
    rows = answer.limit(SHOWN_ROWS + 1).fetchall()
    cells = [[_text(value) for value in row] for row in rows[:SHOWN_ROWS]]
    widths = [max(len(text) for text in column) for column in zip(answer.columns, *cells, strict=True)]
    right = [all(isinstance(row[place], int | float | None) for row in rows) for place in range(len(widths))]

    def line(texts: list[str]) -> str:
        aligned = zip(texts, widths, right, strict=True)
        return "  ".join(text.rjust(width) if r else text.ljust(width) for text, width, r in aligned).rstrip() + "\n"

    shown = line(answer.columns) + line(["─" * width for width in widths]) + "".join(line(row) for row in cells)
    return shown + (
        f"… more rows: only {SHOWN_ROWS} are shown; --format csv has all\n" if len(rows) > SHOWN_ROWS else ""
    )


def _text(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def main() -> int:
    """Entry point of `iosonar-sql`."""
    app(prog_name="iosonar sql")
    return 0
