"""`iosonar sql`: SQL queries on runs and loads."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Annotated, Any

import typer

from iosonar.cli.opening import MEMORY, Memory
from iosonar.cli.parser import Command
from iosonar.cli.run import guarded, print_error, print_skipped_rows, start, write
from iosonar.cli.times import From, SkipWarmUp, To
from iosonar.errors import UsageError, UserError
from iosonar.report.outputs import destination
from iosonar.text import padded, plain, shown, width

if TYPE_CHECKING:
    import duckdb

    from iosonar.table import SourceFile

EXAMPLES = """
The table `requests` has all rows and columns of all files, and eight more columns: `source` (the number of the file),
`place` (the row in its file), `bytes` (its length), `bytes_moved`, `delay_ns` (issue - scheduled time), `latency_ns`
(completion - issue time), `not_held_back` (neither the device nor --perturb held the request back) and `stream_name`
(the name of its `stream` of a program). A load has its own columns, such as `at_ns`, and those of a run that are known.
Views: `reads`, `writes`, `per_second` (totals for each second), `streams` (of programs) and `files`; and `in_window`,
the requests or calls that --from, --to and --skip-warm-up select. Traces of calls are in `calls`, their runs in
`calls_run`; see docs/reports.md. The dialect is DuckDB's. Queries are read-only and see only these files.

\b
Examples:
  iosonar sql run.replay.parquet "SELECT op, count(*),
      avg(latency_ns) / 1e3 AS us FROM requests GROUP BY op"
  iosonar sql run.replay.parquet "SELECT * FROM per_second" --format csv
  iosonar sql a.replay.gz b.replay.gz
      "SELECT source, max(latency_ns) FROM reads GROUP BY source"
  iosonar sql run.replay.parquet --from 2m --to 10m
      "SELECT quantile_disc(latency_ns, 0.99) FROM in_window"
  iosonar sql run.replay.parquet "FROM writes WHERE latency_ns > 1e8"
      --out slow.parquet
  iosonar sql tar.calls.parquet "SELECT file, sum(bytes) FROM calls GROUP BY 1"

Exit codes: 0 done, 1 failed, 2 the command line or the SQL was wrong.
"""

SHOWN_WORDS = 40
"""Characters of the query that an error quotes."""
SHOWN_ROWS = 200
"""Rows in a printed table; other formats have all rows."""


class Format(StrEnum):
    """Formats of the result."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command(cls=Command, epilog=EXAMPLES)
def sql(
    words: Annotated[
        list[str],
        typer.Argument(metavar='FILE... "SELECT ..."', help="Runs or loads, also s3://BUCKET/KEY, then the query."),
    ],
    format_: Annotated[
        Format | None,
        typer.Option("--format", help="Output format; default: by the name of --out, else a table."),
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the result to this file.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file of --out if it exists.")] = False,
    from_: From = None,
    to: To = None,
    skip_warm_up: SkipWarmUp = False,
    memory: Memory = MEMORY,
) -> None:
    """Query runs and loads in SQL."""
    from iosonar.table import Window, open_files
    from iosonar.table.damage import damage_among
    from iosonar.table.embedded import connect
    from iosonar.table.engine import EngineOptions
    from iosonar.table.open_files import with_given_names
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
                define_views(connection, files, window(files, spill))
                check_query(connection, query)
                with _destination(out, kind, overwrite=overwrite) as target:
                    lock(connection, [*(file.parquet for file in files), *([target] if target else [])])
                    result = connection.sql(query)
                    if target is None:
                        write(_as_table(result))
                    elif kind is Format.TABLE:
                        target.write_text(_as_table(result), encoding="utf-8")
                    else:
                        _copy(result, kind, target)
            except (duckdb.IOException, duckdb.OutOfMemoryException):
                # Not caused by the query.
                raise
            except duckdb.Error as error:
                wrong = UsageError if isinstance(error, _wrong_sql()) else UserError
                if wrong is UserError and (damage := damage_among({file.given: file.local for file in files})):
                    raise damage from error
                raise wrong(in_one_line(with_given_names(str(error)), query)) from error

    def window(files: Sequence[SourceFile], spill: Path) -> Window | None:
        given = Window.of(from_, to)
        timed = [file for file in files if file.kind.due]
        if (given or skip_warm_up) and not timed:
            raise UsageError(
                f"{files[0].path} is {files[0].kind.words}: --from, --to and --skip-warm-up are not for it"
            )
        if not skip_warm_up:
            return given
        from iosonar.library.family import OpenOptions, family_of
        from iosonar.study.base import Options

        opening = OpenOptions(spill, EngineOptions(memory), Options(window=given))
        with ExitStack() as stack:
            found = family_of(timed).window(timed, opening, stack)
        print_error(found.about)
        return found

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


def in_one_line(message: str, query: str) -> str:
    """The engine's error without its drawing of the query, and without the list of all variants of a function."""
    message, _, drawn = message.partition("\n\nLINE ")
    kept: list[str] = []
    for each in map(str.strip, message.split("\n")):
        if each.startswith("Candidate functions"):
            break
        if each and not each.strip("^"):
            # A caret: the line above is a value, with the place of the error below.
            kept = kept[:-1]
        elif each:
            kept.append(each)
    place = _place(drawn, query)
    return " ".join(kept) + (f" ({place})" if place else "")


def _place(drawn: str, query: str) -> str | None:
    """The line of the query and the words at the caret, from `3: SELECT op::INT FROM …` and a line of carets.

    The engine puts the query into one of its own, so its number of the line can be too high.
    """
    number, _, rest = drawn.partition(": ")
    text, _, carets = rest.partition("\n")
    at = carets.find("^") - len(f"LINE {number}: ")
    words = text[at:].removesuffix("...").strip() if 0 <= at < len(text) else ""
    if not words:
        return None
    words = words[:SHOWN_WORDS] + "…" * (len(words) > SHOWN_WORDS)
    lines = query.split("\n")
    found = [line for line, each in enumerate(lines, 1) if text.strip(".").strip() in each]
    where = f" in line {found[0]}" if len(lines) > 1 and len(found) == 1 else ""
    return f'at "{words}"{where}'


def _is_unicode(words: str) -> bool:
    """Whether the text is valid Unicode: bytes on the command line that are not UTF-8 become lone surrogates."""
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
    """The path to write the result to; None for standard output."""
    import duckdb

    if out is not None:
        with destination(out, overwrite=overwrite) as target:
            try:
                yield target
            except duckdb.IOException as error:
                if str(target) not in str(error):
                    raise
                raise UserError(f"cannot write {shown(out)}: {_reason(str(error))}") from error
    elif kind is Format.TABLE:
        yield None
    else:
        with _pipe() as target:
            yield target


def _reason(message: str) -> str:
    """The system's reason in an error of DuckDB, which names the file by its internal path."""
    number = re.search(r'"errno":"([0-9]+)"', message)
    if number is not None:
        return os.strerror(int(number[1]))
    return next((reason for reason in ("No space left on device", "File too large") if reason in message), message)


def _copy(result: duckdb.DuckDBPyRelation, kind: Format, target: Path) -> None:
    import duckdb

    options = {Format.CSV: "FORMAT csv, HEADER", Format.JSON: "FORMAT json, ARRAY", Format.PARQUET: "FORMAT parquet"}
    source = f"({_for_json(result)})" if kind is Format.JSON else "result"
    try:
        result.query("result", f"COPY {source} TO '{target}' ({options[kind]}, USE_TMP_FILE false)")
    except duckdb.Error as error:
        # DuckDB quotes the COPY statement, which the user did not write.
        raise type(error)(str(error).split("\n\nLINE ")[0]) from error


def _for_json(result: duckdb.DuckDBPyRelation) -> str:
    """The result with nulls for NaN and infinities, which JSON lacks."""
    from iosonar.table.embedded import quoted

    counts = Counter(name.lower() for name in result.columns)
    types = zip(result.columns, result.types, strict=True)
    floats = [quoted(name) for name, kind in types if str(kind) in ("FLOAT", "DOUBLE") and counts[name.lower()] == 1]
    replaced = ", ".join(f"CASE WHEN isfinite({name}) THEN {name} END AS {name}" for name in floats)
    return f"SELECT * REPLACE ({replaced}) FROM result" if floats else "FROM result"


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
        raise UserError(f"cannot write to standard output: {trouble[0].strerror}") from trouble[0]


def _as_table(result: duckdb.DuckDBPyRelation) -> str:
    """The first rows as a table, with numbers right-aligned."""
    rows = _printable(result.limit(SHOWN_ROWS + 1)).fetchall()
    cells = [[plain(_text(value)) for value in row] for row in rows[:SHOWN_ROWS]]
    heads = [plain(name) for name in result.columns]
    widths = [max(map(width, column)) for column in zip(heads, *cells, strict=True)]
    right = [all(isinstance(row[place], int | float | None) for row in rows) for place in range(len(widths))]

    def line(texts: list[str]) -> str:
        found = (padded(text, to, right=r) for text, to, r in zip(texts, widths, right, strict=True))
        return "  ".join(found).rstrip() + "\n"

    shown = line(heads) + line(["─" * each for each in widths]) + "".join(line(row) for row in cells)
    return shown + (f"… first {SHOWN_ROWS} rows; --format csv prints all\n" if len(rows) > SHOWN_ROWS else "")


def _printable(result: duckdb.DuckDBPyRelation) -> duckdb.DuckDBPyRelation:
    """The result with times with time zone as text: their Python type would need another library."""
    if not any("TIME ZONE" in str(kind) for kind in result.types):
        return result
    columns = []
    for place, (name, kind) in enumerate(zip(result.columns, result.types, strict=True), 1):
        cast = "::VARCHAR" if "TIME ZONE" in str(kind) else ""
        quoted = name.replace('"', '""')
        columns.append(f'#{place}{cast} AS "{quoted}"')
    return result.project(", ".join(columns))


def _text(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def main() -> int:
    """Entry point of `iosonar-sql`."""
    return start(app, "sql")
