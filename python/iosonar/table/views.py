"""The views of `iosonar sql`: the rows of each kind, with all columns of their files, and views for common queries."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from iosonar.errors import UsageError
from iosonar.table.columns import unique_names
from iosonar.table.embedded import quoted, scan, text
from iosonar.table.kinds import KINDS, Kind
from iosonar.table.kinds.column import ROW_NUMBER
from iosonar.table.source import SourceFile
from iosonar.table.versions import stored_name, stored_sql
from iosonar.table.window import Window

if TYPE_CHECKING:
    import duckdb

TYPES = {"int32": "INTEGER", "int64": "BIGINT", "string": "VARCHAR", "boolean": "BOOLEAN", "float64": "DOUBLE"}


def define_views(
    connection: duckdb.DuckDBPyConnection, files: Sequence[SourceFile], window: Window | None = None
) -> None:
    """Defines the views of all kinds that the files have, `files`, and with the rows of the window `in_window`.

    Of several kinds that have windows, it is that of requests; those of the others are `calls_in_window` and the like.
    """
    kinds = {file.kind for file in files}
    definitions: dict[str, str] = {}
    timed = {kind.view for kind in kinds if kind.due}
    for kind in (kind for kind in KINDS.values() if kind in kinds):
        beside = [other for other in kinds if other.view == kind.view]
        parts = [_select(file, index, beside) for index, file in enumerate(files) if file.kind in beside]
        definitions[kind.view] = " UNION ALL BY NAME ".join(parts)
        for name, view in kind.views.items():
            definitions[name] = view if isinstance(view, str) else view(files)
        if kind.due:
            name = "in_window" if kind.view == "requests" or len(timed) == 1 else f"{kind.view}_in_window"
            definitions[name] = _view_of_window(kind.view, files, window)
    rows = ", ".join(
        f"({index}, {text(file.path)}, {text(file.name)}, {text(file.kind.name)}, {file.rows})"
        for index, file in enumerate(files)
    )
    definitions["files"] = f"SELECT * FROM (VALUES {rows}) AS files(source, path, name, kind, rows)"
    for name, definition in definitions.items():
        connection.execute(f"CREATE VIEW {name} AS {definition}")


def _select(file: SourceFile, index: int, beside: Iterable[Kind]) -> str:
    """All columns of the file, and those that it lacks of the view, which has the rows of all kinds in `beside`.

    A column of the file whose name is taken by an added column gets a number appended.
    """
    kind, own = file.kind, file.known_columns
    stored = {stored_name(name, kind, file.version) for name in own}
    others = [name for name in file.columns if name not in stored]
    columns = {**kind.added, **kind.columns}
    for each in beside:
        columns |= {name: column for name, column in each.columns.items() if name not in columns}
    lacking = [name for name in columns if name not in own and (name in kind.columns or name not in kind.derived)]
    derived = [name for name in kind.derived if name not in own and name not in lacking]
    new_names = unique_names(others, [*own, *lacking, *derived, "source", "place", ROW_NUMBER])
    inner = [f"{index}::INTEGER AS source", f"{ROW_NUMBER} AS place"]
    inner += [f"{stored_sql(name, kind, file.version)} AS {quoted(name)}" for name in own]
    unknown = re.compile(rf"\b({'|'.join(name for name in kind.columns if name not in own) or '^$'})\b")
    for name in lacking:
        found = kind.computed.get(name, "NULL")
        # What is computed from a column that the file lacks is not known.
        inner.append(f"({'NULL' if unknown.search(found) else found})::{TYPES[columns[name].type]} AS {quoted(name)}")
    inner += [f"{quoted(name)} AS {quoted(new)}" for name, new in zip(others, new_names, strict=True)]
    outer = ["*"]
    for name in derived:
        definition = kind.derived[name]
        outer.append(f"{definition if isinstance(definition, str) else definition(file)} AS {quoted(name)}")
    return f"SELECT {', '.join(outer)} FROM (SELECT {', '.join(inner)} FROM {scan(file.parquet)})"


def _view_of_window(view: str, files: Sequence[SourceFile], window: Window | None) -> str:
    if window is None:
        return f"SELECT * FROM {view}"
    of = [f"source = {source} AND {window.sql(file)}" for source, file in enumerate(files) if file.kind.view == view]
    return f"SELECT * FROM {view} WHERE {' OR '.join(of)}"


_NODES = {"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"}
"""Nodes of a query's syntax tree that only read."""

_TABLE_FUNCTIONS = {
    *("range", "generate_series", "unnest", "repeat", "repeat_row", "json_each", "json_tree", "summary"),
    *("duckdb_columns", "duckdb_functions", "duckdb_keywords", "duckdb_settings", "duckdb_tables", "duckdb_types"),
    *("duckdb_views", "pragma_show", "pragma_table_info", "pragma_version"),
}
"""Table functions that a query may use. Others read files, or run SQL from an unchecked string."""


def check_query(connection: duckdb.DuckDBPyConnection, query: str) -> None:
    """Raises UsageError unless the text is a single read-only query."""
    import json

    import duckdb

    refusal = UsageError("expected one read-only query, a SELECT or FROM")
    try:
        kinds = [statement.type for statement in connection.extract_statements(query)]
    except ValueError as error:
        # DuckDB has statement types that its Python module lacks.
        raise refusal from error
    if kinds != [duckdb.StatementType.SELECT]:
        raise refusal
    row = connection.execute("SELECT json_serialize_sql(?)", [query]).fetchone()
    tree = json.loads(row[0]) if row else {"error": True}
    if tree["error"]:
        raise UsageError(str(tree.get("error_message") or refusal))
    for node in _nodes(tree["statements"]):
        kind = str(node.get("type"))
        if kind.endswith("_NODE") and kind not in _NODES:
            raise refusal
        if kind == "TABLE_FUNCTION":
            function = node.get("function")
            name = str(function.get("function_name") if isinstance(function, dict) else "").lower()
            if name not in _TABLE_FUNCTIONS:
                raise UsageError(f"function {name} is not available: a query reads only the files on the command line")


def _nodes(tree: object) -> Iterable[dict[str, object]]:
    pending = [tree]
    while pending:
        each = pending.pop()
        if isinstance(each, dict):
            yield each
            pending += each.values()
        elif isinstance(each, list):
            pending += each


def lock(connection: duckdb.DuckDBPyConnection, files: Iterable[Path]) -> None:
    """Restricts the engine to these files and its own temporary ones, and disables extensions."""
    allowed = ", ".join(text(str(path)) for path in files)
    for setting in (
        f"allowed_paths = [{allowed}]",
        "autoinstall_known_extensions = false",
        "autoload_known_extensions = false",
        "allow_community_extensions = false",
        "python_enable_replacements = false",
        "enable_external_access = false",
        "lock_configuration = true",
    ):
        connection.execute(f"SET {setting}")
