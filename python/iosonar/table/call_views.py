"""The views of `iosonar sql` for calls: `calls`, `calls_run`, `tree`, `scale`, and views for common queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from iosonar.table.call_kinds import FAMILIES, MOVES_DATA
from iosonar.table.calls import MISMATCHES
from iosonar.table.columns import COLUMNS_OF, ROW_NUMBER, unique_names
from iosonar.table.embedded import quoted, scan, text
from iosonar.table.requests import known_columns
from iosonar.table.source import Kind, SourceFile
from iosonar.table.versions import stored_name, stored_sql

NAMES = {Kind.CALLS: "calls", Kind.CALLS_RUN: "calls_run", Kind.TREE: "tree", Kind.SCALE: "scale"}
"""The view of each kind of file."""

_FAMILY = " ".join(
    f"WHEN call IN ({', '.join(map(text, names))}) THEN {text(family)}" for family, names in FAMILIES.items()
)
_SHARED = {
    "family": f"CASE {_FAMILY} END",
    "bytes": f"CASE WHEN family IN ({', '.join(map(text, MOVES_DATA))}) AND result > 0 THEN result END",
}
DERIVED: Mapping[Kind, Mapping[str, str]] = {
    Kind.CALLS: {"call_number": ROW_NUMBER, "end_ns": "begin_ns + duration_ns", **_SHARED},
    Kind.CALLS_RUN: {
        "duration_ns": "completed_ns - issued_ns",
        "latency_ns": "completed_ns - issued_ns",
        "delay_ns": "issued_ns - scheduled_ns",
        "not_held_back": "issued_ns IS NOT NULL AND coalesce(delay_reason, 'none') IN ('none', 'input', 'backlog')",
        "mismatch": f"coalesce(outcome, 'same') IN ({', '.join(map(text, MISMATCHES))})",
        **_SHARED,
    },
    Kind.TREE: {},
    Kind.SCALE: {},
}
"""Columns of the views that files do not have, with their definitions; later ones may use earlier ones."""

CALLS_PER_SECOND = """
    SELECT floor(begin_ns / 1e9)::BIGINT AS second,
           count(*) AS calls,
           count(*) FILTER (errno <> 0) AS failed,
           sum(bytes) FILTER (family = 'read') AS bytes_read,
           sum(bytes) FILTER (family IN ('write', 'copy')) AS bytes_written,
           avg(duration_ns) / 1e9 AS duration_avg_s,
           max(duration_ns) / 1e9 AS duration_max_s
    FROM calls GROUP BY 1 ORDER BY 1"""


def views_of_calls(files: Sequence[SourceFile]) -> dict[str, str]:
    """The views of files that do not hold requests, by name, with their definitions."""
    found = {}
    for kind, name in NAMES.items():
        parts = [_select(file, index) for index, file in enumerate(files) if file.kind is kind]
        if parts:
            found[name] = " UNION ALL BY NAME ".join(parts)
    if "calls" in found:
        found["calls_per_second"] = CALLS_PER_SECOND
    return found


def _select(file: SourceFile, index: int) -> str:
    """All columns of the file, those of docs/schema.md that it lacks as nulls, and derived ones.

    A column of the file whose name is taken by an added column gets a number appended.
    """
    known = known_columns(file)
    lacking = [name for name in COLUMNS_OF[file.kind] if name not in known]
    derived = DERIVED[file.kind]
    stored = {stored_name(name, file.kind, file.version) for name in known}
    others = [name for name in file.columns if name not in stored]
    new_names = unique_names(others, [*known, *lacking, *derived, "source", "place", ROW_NUMBER])
    columns = [f"{index}::INTEGER AS source", f"{ROW_NUMBER} AS place"]
    columns += [f"{stored_sql(name, file.kind, file.version)} AS {quoted(name)}" for name in known]
    columns += [f"NULL::{_type_of(file.kind, name)} AS {quoted(name)}" for name in lacking]
    columns += [f"{definition} AS {quoted(name)}" for name, definition in derived.items()]
    columns += [f"{quoted(name)} AS {quoted(new)}" for name, new in zip(others, new_names, strict=True)]
    return f"SELECT {', '.join(columns)} FROM {scan(file.parquet)}"


def _type_of(kind: Kind, name: str) -> str:
    column = COLUMNS_OF[kind][name]
    if column.is_number:
        return "BIGINT"
    return "VARCHAR" if column.is_text else "BOOLEAN"
