"""Opens input files and validates them: a file that passes conforms to docs/schema.md in every cell.

Other formats, and tables with invalid rows, go through `iosonar convert`, so that both halves accept the same files,
skip the same rows and print the same messages.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from iosonar import SCHEMA_VERSION
from iosonar.errors import UserError
from iosonar.table.columns import columns_in, have_plain_types, missing, unique_names
from iosonar.table.convert import convert
from iosonar.table.damage import COPY_AGAIN, damaged
from iosonar.table.footer import Footer, parse_footer
from iosonar.table.kinds import KINDS, Kind
from iosonar.table.kinds.column import Column
from iosonar.table.open_files import copy_of_pipe, open_file, set_display_name
from iosonar.table.source import SourceFile
from iosonar.table.values import invalid_values
from iosonar.text import shown

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

MAGIC = b"PAR1"
FOOTER_KEY = b"iosonar"
MAX_LISTED_ROWS = 3
"""The most skipped rows that are listed one by one."""


class _NeedsConversionError(Exception):
    """The file needs `iosonar convert`; the text is the reason. `kind` is that of its footer."""

    kind: Kind | None = None


def open_validated(given: Path, directory: Path, stack: ExitStack, copy: Path | None = None) -> SourceFile:
    """Opens a file, or the copy of an object, until the stack unwinds; conversions go to `directory`.

    Raises UserError if it is neither a load nor a run.
    """
    copy = copy or copy_of_pipe(given, directory)
    return replace(_opened(given, copy or given, directory, stack), copy=copy)


def _opened(given: Path, source: Path, directory: Path, stack: ExitStack) -> SourceFile:
    opened = open_file(source, stack)
    set_display_name(opened, given)
    is_parquet, kind = _is_parquet(opened, given), None
    if is_parquet:
        try:
            return _with_skipped_rows(_table(given, opened, directory, stack), ())
        except _NeedsConversionError as why:
            kind = why.kind
            if kind is not None and not kind.converted_to:
                raise UserError(f"{shown(given)}: {why}; {COPY_AGAIN}") from None
    converted = _new_path(directory, kind)
    convert(source, converted, given)
    opened = open_file(converted, stack)
    set_display_name(opened, given)
    try:
        file = _table(given, opened, directory, stack)
    except _NeedsConversionError as why:
        raise UserError(f"{shown(given)}: {why}; docs/schema.md lists the columns") from None
    rows = [warning for warning in file.footer.warnings if warning.startswith("row ")] if is_parquet else ()
    return _with_skipped_rows(file, rows)


def _is_parquet(opened: Path, given: Path) -> bool:
    try:
        with opened.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError as error:
        raise UserError(f"{shown(given)}: {error.strerror}") from error


def _table(given: Path, opened: Path, directory: Path, stack: ExitStack) -> SourceFile:
    import pyarrow as pa

    try:
        metadata = _read_metadata(opened)
        schema = metadata.schema.to_arrow_schema()
        footer_text = (metadata.metadata or {}).get(FOOTER_KEY)
    except UserError as error:
        raise UserError(f"{shown(given)}: {error}") from error
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        raise damaged(given, "its footer, without which no row can be found,") from error
    names = schema.names
    if footer_text is None:
        known = [kind for kind in KINDS.values() if kind.known_by]
        if all(set(kind.known_by).isdisjoint(names) for kind in known):
            expected = " nor ".join(f"{kind.words} (column {kind.known_by[0]})" for kind in known)
            raise UserError(f"{shown(given)}: a Parquet file, but neither {expected}; docs/schema.md lists the columns")
        raise _NeedsConversionError("no `iosonar` key in the footer")
    try:
        footer = parse_footer(footer_text, SCHEMA_VERSION)
    except UserError as error:
        raise UserError(f"{shown(given)}: {error}") from error
    try:
        return _conforming(given, opened, directory, stack, (metadata, schema, footer))
    except _NeedsConversionError as why:
        why.kind = KINDS[footer.kind]
        raise


def _conforming(
    given: Path, opened: Path, directory: Path, stack: ExitStack, read: tuple[pq.FileMetaData, pa.Schema, Footer]
) -> SourceFile:
    """The table if all its columns and cells conform to docs/schema.md."""
    metadata, schema, footer = read
    names = schema.names
    kind = KINDS[footer.kind]
    known = columns_in(kind, footer.schema_version)
    if absent := missing(known, names):
        problems = ", ".join(f"its column {name} is missing" for name in absent)
        raise UserError(f"{shown(given)}: {problems}; docs/schema.md lists the columns")
    if not have_plain_types(known, schema):
        raise _NeedsConversionError("columns have other types")
    if unique_names(names) != names:
        return _table(given, _with_unique_names(opened, given, directory, stack), directory, stack)
    if problem := _find_invalid_values(known, metadata, opened):
        raise _NeedsConversionError(problem)
    return SourceFile(given, opened, kind, footer, metadata.num_rows, tuple(names))


def _read_metadata(opened: Path) -> pq.FileMetaData:
    """The Parquet footer, checked for impossible row counts."""
    import pyarrow.parquet as pq

    with opened.open("rb") as file:
        file.seek(max(os.fstat(file.fileno()).st_size - len(MAGIC), 0))
        if file.read() != MAGIC:
            raise UserError(
                "truncated: the Parquet footer is missing, so nothing in the file can be read. If a replay or a "
                "recording was killed, repair its file with `iosonar recover`; otherwise copy or convert it again"
            )
        file.seek(0)
        metadata = pq.read_metadata(file)
    groups = [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]
    if any(rows < 0 for rows in groups) or sum(groups) != metadata.num_rows:
        raise UserError(f"damaged Parquet: the row counts in its footer do not match; {COPY_AGAIN}")
    return metadata


def _find_invalid_values(known: Mapping[str, Column], metadata: pq.FileMetaData, opened: Path) -> str | None:
    import duckdb

    try:
        return invalid_values(known, metadata, opened)
    except UnicodeDecodeError as error:
        raise _NeedsConversionError("a row group names a column in bytes that are not UTF-8") from error
    except duckdb.Error as error:
        raise _NeedsConversionError("damaged Parquet: its rows cannot be read") from error


def _with_unique_names(opened: Path, given: Path, directory: Path, stack: ExitStack) -> Path:
    """A copy whose column names differ in more than case, which DuckDB ignores."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    copy = _new_path(directory)
    try:
        with opened.open("rb") as source:
            table = pq.ParquetFile(source)
            fields = list(table.schema_arrow)
            names = unique_names([field.name for field in fields])
            metadata: dict[bytes | str, bytes | str] = {FOOTER_KEY: (table.metadata.metadata or {})[FOOTER_KEY]}
            schema = pa.schema([field.with_name(name) for field, name in zip(fields, names, strict=True)], metadata)
            with pq.ParquetWriter(copy, schema) as writer:
                for batch in table.iter_batches():
                    writer.write_batch(pa.RecordBatch.from_arrays(batch.columns, schema=schema))
    except pa.ArrowException as error:
        raise damaged(given, "its rows") from error
    opened_copy = open_file(copy, stack)
    set_display_name(opened_copy, given)
    return opened_copy


def _with_skipped_rows(file: SourceFile, rows: Sequence[str]) -> SourceFile:
    """With messages about unreadable rows: about the first of these, and how many there are."""
    total, messages = file.unreadable_rows, list(rows[:MAX_LISTED_ROWS])
    if total > len(messages):
        messages.append(f"skipped {total:,} unreadable row{'s' if total > 1 else ''} in all")
    return replace(file, skipped_rows=tuple(messages))


_numbers = count()


def _new_path(directory: Path, kind: Kind | None = None) -> Path:
    return directory / f"table-{next(_numbers)}{kind.converted_to if kind else '.parquet'}"
