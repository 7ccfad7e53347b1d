"""What `iosonar sql` defines beside the table `requests`, so that common questions are short."""

from __future__ import annotations

from typing import TYPE_CHECKING

from iosonar.table.requests import Requests

if TYPE_CHECKING:
    from ibis.backends.duckdb import Backend

VIEWS = {
    "reads": "SELECT * FROM requests WHERE op = 'read'",
    "writes": "SELECT * FROM requests WHERE op = 'write'",
    "per_second": """
        SELECT floor(coalesce(issued_ns, intended_ns) / 1e9)::BIGINT AS second,
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
"""The views and their definitions. One more, `files`, is made of the files' own names."""


def define_views(requests: Requests) -> Backend:
    """Defines `requests` and the views in the engine, and returns it."""
    engine: Backend = requests.engine.backend
    engine.create_view("requests", requests.table)
    rows = ", ".join(
        f"({index}, {_quoted(str(file.given))}, {_quoted(file.name)}, {_quoted(file.kind)}, {file.rows})"
        for index, file in enumerate(requests.files)
    )
    files = f"SELECT * FROM (VALUES {rows}) AS files(source, path, name, kind, rows)"
    for name, definition in (VIEWS | {"files": files}).items():
        engine.raw_sql(f"CREATE VIEW {name} AS {definition}")
    return engine


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
