"""Requests of block devices: loads, and their runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from iosonar.table.kinds.column import I32, I64, MAX_SECTORS, ROW_NUMBER, Column, Presence, Renamed, time, whole
from iosonar.table.kinds.kind import Definition, Kind

LIBRARY = "iosonar.library.of_requests"

OWN_REASONS = ("none", "input", "completion_log")
"""Values of `delay_reason` with which a request counts as not held back: the replayer itself caused the delay."""

BACKLOG = "backlog"
"""The value of a request that waited for the depth or an overlap only because the replayer had been late before: it
counts as not held back, even if it was pushed back."""

UNKNOWN_REASON = "unknown"
"""The value of `delay_reason`, as null is, in results that do not say what delayed a request."""

_OPS = ("read", "write", "flush", "discard", "write_zeroes")
_DELAY_REASONS = (*OWN_REASONS, "depth", "order", "perturbed", UNKNOWN_REASON, BACKLOG)
_OUTCOMES = (
    *("ok", "short", "error", "unfinished", "corrupt"),
    *("dropped", "beyond_end", "unaligned", "too_large", "unsupported", "excluded"),
)

_LOAD: Mapping[str, Column] = {
    "at_ns": time(Presence.REQUIRED),
    "device": whole(2**16 - 1),
    "sector": whole(MAX_SECTORS, Presence.REQUIRED),
    "sectors": whole(MAX_SECTORS, Presence.REQUIRED),
    "op": Column(names=_OPS, presence=Presence.REQUIRED),
    "flags": whole(I32, low=-I32 - 1),
    "latency_ns": time(Presence.OPTIONAL_NULLABLE),
    "queued_ns": time(Presence.OPTIONAL_NULLABLE),
    "pid": whole(2**32 - 1, Presence.OPTIONAL_NULLABLE, low=-I32 - 1),
    "process": Column(is_text=True, presence=Presence.OPTIONAL_NULLABLE),
}

_RUN: Mapping[str, Column] = {
    "request": whole(I64),
    "iteration": whole(I32),
    "device": whole(2**16 - 1),
    "source_sector": whole(MAX_SECTORS),
    "sector": whole(MAX_SECTORS, Presence.REQUIRED),
    "sectors": whole(MAX_SECTORS, Presence.REQUIRED),
    "op": Column(names=_OPS, presence=Presence.REQUIRED),
    "flags": whole(I32, low=-I32 - 1),
    "scheduled_ns": time(Presence.REQUIRED),
    "issued_ns": time(Presence.REQUIRED_NULLABLE),
    "completed_ns": time(Presence.REQUIRED_NULLABLE),
    "ready_ns": time(Presence.OPTIONAL_NULLABLE),
    "submitted_ns": time(Presence.OPTIONAL_NULLABLE),
    "last_empty_poll_ns": time(Presence.OPTIONAL_NULLABLE),
    "bytes_done": whole(I64),
    "in_flight": whole(I32, Presence.OPTIONAL_NULLABLE),
    "waiting": whole(I32, Presence.OPTIONAL_NULLABLE),
    "pushed_back": Column(),
    "widened": Column(),
    "delay_reason": Column(names=_DELAY_REASONS),
    "outcome": Column(names=_OUTCOMES),
    "errno": whole(I32, low=-I32 - 1),
    "stream": whole(2**16 - 1, Presence.OPTIONAL_NULLABLE),
    "cause": whole(I64, Presence.OPTIONAL_NULLABLE),
}


def _lacking(footer: Mapping[str, Any]) -> Sequence[str]:
    """What footers of requests have, and those of calls may lack."""
    missing = [name for name in ("source", "devices", "counts", "span", "complete") if name not in footer]
    if not missing and "format" not in footer["source"]:
        missing.append("source.format")
    verdict = footer.get("run", {}).get("statistics", {}).get("verdict", {"own": None})
    return missing if "own" in verdict else [*missing, "run.statistics.verdict.own"]


def _stream_name(file: Any) -> str:
    """The name of a request's stream, from the footer."""
    names = [f"WHEN {number} THEN {_text(stream.name)}" for number, stream in enumerate(file.streams)]
    return f"CASE stream {' '.join(names)} END" if names else "NULL::VARCHAR"


def _streams(files: Sequence[Any]) -> str:
    """The streams of the programs that made requests of runs."""

    def rows() -> Iterator[str]:
        for source, file in enumerate(files):
            for number, stream in enumerate(file.streams):
                names = f"{_text(file.program)}, {_text(stream.name)}"
                yield f"({source}::INTEGER, {number}::INTEGER, {names}, {stream.instances}::BIGINT, {stream.open})"

    # Without a row, VALUES has no types.
    none = "(NULL::INTEGER, NULL::INTEGER, NULL::VARCHAR, NULL::VARCHAR, NULL::BIGINT, NULL::BOOLEAN)"
    values = f"(VALUES {', '.join([*rows(), none])}) AS streams(source, stream, program, stream_name, instances, open)"
    return f"SELECT * FROM {values} WHERE source IS NOT NULL"


def _due(file: Any) -> str:
    """When a request was due; with --asap, when it was issued."""
    return "coalesce(issued_ns, scheduled_ns)" if file.option("asap") else "scheduled_ns"


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


_REASON = f"coalesce(delay_reason, '{UNKNOWN_REASON}')"
_DERIVED: Mapping[str, Definition] = {
    "bytes": "sectors * 512",
    # In the Rust half `IoResult::bytes_moved`, and for a missing `bytes_done` the reader of tables.
    "bytes_moved": "CASE WHEN op NOT IN ('read', 'write') THEN 0 WHEN bytes_done IS NOT NULL THEN bytes_done "
    "WHEN coalesce(outcome, 'ok') IN ('ok', 'corrupt') THEN sectors * 512 ELSE 0 END",
    "delay_ns": "issued_ns - scheduled_ns",
    "latency_ns": "completed_ns - issued_ns",
    "not_held_back": f"issued_ns IS NOT NULL AND ({_REASON} = '{BACKLOG}' "
    f"OR NOT coalesce(pushed_back, false) AND {_REASON} IN {OWN_REASONS})",
    "stream_name": _stream_name,
}
_VIEWS: Mapping[str, Definition] = {
    "reads": "SELECT * FROM requests WHERE op = 'read'",
    "writes": "SELECT * FROM requests WHERE op = 'write'",
    "per_second": """
        SELECT floor(coalesce(issued_ns, scheduled_ns) / 1e9)::BIGINT AS second,
               count(*) AS requests,
               count(*) FILTER (op = 'read') AS reads,
               count(*) FILTER (op = 'write') AS writes,
               sum(bytes_moved) AS bytes,
               avg(latency_ns) / 1e9 AS latency_avg_s,
               quantile_disc(latency_ns, 0.99) / 1e9 AS latency_p99_s,
               max(latency_ns) / 1e9 AS latency_max_s,
               max(delay_ns) / 1e9 AS delay_max_s
        FROM requests GROUP BY 1 ORDER BY 1""",
    "streams": _streams,
}

LOAD = Kind(
    "load",
    "a load",
    _LOAD,
    LIBRARY,
    known_by=("at_ns",),
    converted_to=".parquet",
    lacking=_lacking,
    view="requests",
    added=_RUN,
    # What a recording determines of a run.
    computed={
        "request": ROW_NUMBER,
        "iteration": "0",
        "source_sector": "sector",
        "scheduled_ns": "at_ns",
        "issued_ns": "CASE WHEN latency_ns IS NOT NULL THEN at_ns END",
        "completed_ns": "at_ns + latency_ns",
        "pushed_back": "false",
        "widened": "false",
    },
    derived=_DERIVED,
    views=_VIEWS,
    due=_due,
)

REPLAY = Kind(
    "replay",
    "a run",
    _RUN,
    LIBRARY,
    is_run=True,
    own_ending="",
    known_by=("scheduled_ns", "intended_ns"),
    converted_to=".parquet",
    renamed={
        "iteration": Renamed("round", 1),
        "scheduled_ns": Renamed("intended_ns", 1),
        "last_empty_poll_ns": Renamed("unanswered_ns", 1),
        "delay_reason": Renamed("held_by", 1, {"nothing": "none", "recorder": "completion_log"}),
    },
    lacking=_lacking,
    view="requests",
    derived=_DERIVED,
    views=_VIEWS,
    due=_due,
)

KINDS = (LOAD, REPLAY)
