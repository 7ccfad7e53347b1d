"""The views of `iosonar sql`: `requests`, with all columns of the files, and views for common queries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from iosonar.errors import UsageError
from iosonar.table.call_views import views_of_calls
from iosonar.table.columns import ROW_NUMBER, unique_names
from iosonar.table.embedded import quoted, scan, text
from iosonar.table.requests import BACKLOG, COLUMNS, OWN_REASONS, UNKNOWN_REASON, known_columns
from iosonar.table.source import OF_REQUESTS, Kind, SourceFile
from iosonar.table.versions import stored_name, stored_sql
from iosonar.table.window import Window

if TYPE_CHECKING:
    import duckdb

VIEWS = {
    "reads": "SELECT * FROM requests WHERE op = 'read'",
    "writes": "SELECT * FROM requests WHERE op = 'write'",
    "per_second": """
        SELECT floor(coalesce(issued_ns, scheduled_ns) / 1e9)::BIGINT AS second,
               count(*) AS requests,
               count(*) FILTER (op = 'read') AS reads,
               count(*) FILTER (op = 'write') AS writes,
               sum(sectors) * 512 AS bytes,
               avg(latency_ns) / 1e9 AS latency_avg_s,
               quantile_disc(latency_ns, 0.99) / 1e9 AS latency_p99_s,
               max(latency_ns) / 1e9 AS latency_max_s,
               max(delay_ns) / 1e9 AS delay_max_s
        FROM requests GROUP BY 1 ORDER BY 1""",
}
"""The views and their definitions. The view `files` is defined from the names of the files."""

LOAD_AS_RUN = {
    "request": f"{ROW_NUMBER}",
    "iteration": "0::INTEGER",
    "source_sector": "sector",
    "scheduled_ns": "at_ns",
    "issued_ns": "CASE WHEN latency_ns IS NOT NULL THEN at_ns END",
    "completed_ns": "at_ns + latency_ns",
    "pushed_back": "false",
    "widened": "false",
}
"""The columns of a run that a recorded load determines."""

STREAM_NAME = "stream_name"
"""A column with the name of a request's stream, from the footer."""

DERIVED = {
    "bytes": "sectors * 512",
    "delay_ns": "issued_ns - scheduled_ns",
    "latency_ns": "completed_ns - issued_ns",
    "not_held_back": f"issued_ns IS NOT NULL AND (coalesce(delay_reason, {text(UNKNOWN_REASON)}) = {text(BACKLOG)} "
    "OR NOT coalesce(pushed_back, false) "
    f"AND coalesce(delay_reason, {text(UNKNOWN_REASON)}) IN ({', '.join(map(text, OWN_REASONS))}))",
}
TYPES = {"int32": "INTEGER", "int64": "BIGINT", "string": "VARCHAR", "boolean": "BOOLEAN"}
LOAD_ONLY = {"at_ns": "BIGINT", "queued_ns": "BIGINT", "pid": "BIGINT", "process": "VARCHAR"}
"""Columns of a load that a run does not have."""


def define_views(
    connection: duckdb.DuckDBPyConnection, files: Sequence[SourceFile], window: Window | None = None
) -> None:
    """Defines `requests` and its views, or `calls` and those of calls, as the files need them, and `files`.

    `in_window` has the requests of the window.
    """
    kinds = {file.kind for file in files}
    parts = [
        _select(file, index, with_loads=Kind.LOAD in kinds)
        for index, file in enumerate(files)
        if file.kind in OF_REQUESTS
    ]
    definitions = {"requests": " UNION ALL BY NAME ".join(parts)} | VIEWS if parts else {}
    rows = ", ".join(
        f"({index}, {text(file.path)}, {text(file.name)}, {text(file.kind)}, {file.rows})"
        for index, file in enumerate(files)
    )
    view_of_files = f"SELECT * FROM (VALUES {rows}) AS files(source, path, name, kind, rows)"
    if parts:
        definitions["in_window"] = _view_of_window(files, window)
        definitions["streams"] = _view_of_streams(files)
    for name, definition in (definitions | views_of_calls(files) | {"files": view_of_files}).items():
        connection.execute(f"CREATE VIEW {name} AS {definition}")


def _select(file: SourceFile, index: int, *, with_loads: bool) -> str:
    """All columns of the file, and the columns of docs/schema.md that it lacks, derived or null.

    A column of the file whose name is taken by an added column gets a number appended.
    """
    own = known_columns(file)
    stored = {stored_name(name, file.kind, file.version) for name in own}
    other_columns = [name for name in file.columns if name not in stored]
    added = [name for name in (*COLUMNS, *DERIVED, STREAM_NAME, *(LOAD_ONLY if with_loads else ())) if name not in own]
    new_names = unique_names(other_columns, [*own, *added, ROW_NUMBER])
    inner = [f"{index}::INTEGER AS source", f"{ROW_NUMBER} AS place"]
    inner += [f"{stored_sql(name, file.kind, file.version)} AS {quoted(name)}" for name in own]
    for name in added:
        if name in ("source", "place", STREAM_NAME) or (
            name in DERIVED and not (file.kind is Kind.LOAD and name == "latency_ns")
        ):
            continue
        kind = LOAD_ONLY.get(name) or TYPES.get(COLUMNS.get(name, "int64"), "BIGINT")
        expression = LOAD_AS_RUN.get(name, "NULL") if file.kind is Kind.LOAD else "NULL"
        if "latency_ns" in expression and "latency_ns" not in own:
            expression = "NULL"
        inner.append(f"({expression})::{kind} AS {quoted(name)}")
    inner += [f"{quoted(name)} AS {quoted(new)}" for name, new in zip(other_columns, new_names, strict=True)]
    derived = [f"{DERIVED[name]} AS {name}" for name in added if name in DERIVED and not _is_in(inner, name)]
    derived.append(f"{_stream_name(file)} AS {STREAM_NAME}")
    return f"SELECT *, {', '.join(derived)} FROM (SELECT {', '.join(inner)} FROM {scan(file.parquet)})"


def _view_of_window(files: Sequence[SourceFile], window: Window | None) -> str:
    if window is None:
        return "SELECT * FROM requests"
    of = [f"source = {source} AND {window.sql(file)}" for source, file in enumerate(files) if file.kind in OF_REQUESTS]
    return f"SELECT * FROM requests WHERE {' OR '.join(of)}"


def _stream_name(file: SourceFile) -> str:
    names = [f"WHEN {number} THEN {text(stream.name)}" for number, stream in enumerate(file.streams)]
    return f"CASE stream {' '.join(names)} END" if names else "NULL::VARCHAR"


def _view_of_streams(files: Sequence[SourceFile]) -> str:
    rows = [
        f"({source}::INTEGER, {number}::INTEGER, {text(file.program)}, {text(stream.name)}, "
        f"{stream.instances}::BIGINT, {stream.open})"
        for source, file in enumerate(files)
        for number, stream in enumerate(file.streams)
    ]
    # Without a row, VALUES has no types.
    none = "(NULL::INTEGER, NULL::INTEGER, NULL::VARCHAR, NULL::VARCHAR, NULL::BIGINT, NULL::BOOLEAN)"
    values = f"(VALUES {', '.join([*rows, none])}) AS streams(source, stream, program, stream_name, instances, open)"
    return f"SELECT * FROM {values} WHERE source IS NOT NULL"


def _is_in(inner: Sequence[str], name: str) -> bool:
    return any(each.endswith(f"AS {quoted(name)}") for each in inner)


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
