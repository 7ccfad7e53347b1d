"""Calls to files: traces, and their runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from iosonar.table.call_kinds import FAMILIES, MOVES_DATA
from iosonar.table.kinds.column import I64, SIGNED, TEXT, U32, Column, Presence, Renamed, time, whole
from iosonar.table.kinds.kind import Kind, rename

LIBRARY = "iosonar.library.of_calls"

MISMATCHES = ("failed", "succeeded", "other_errno", "fewer", "more", "other_result")
"""Values of `outcome` of calls whose result differs from the original's."""

_TRACE: Mapping[str, Column] = {
    "begin_ns": time(Presence.REQUIRED),
    "duration_ns": time(Presence.OPTIONAL_NULLABLE),
    "thread": whole(U32, Presence.REQUIRED),
    "process": whole(U32, Presence.OPTIONAL_NULLABLE),
    "call": Column(is_text=True, presence=Presence.REQUIRED),
    "uring": Column(presence=Presence.OPTIONAL_NULLABLE),
    "fd": SIGNED,
    "fd2": SIGNED,
    "fd_path": TEXT,
    "path": TEXT,
    "path2": TEXT,
    "offset": SIGNED,
    "length": SIGNED,
    "flags": SIGNED,
    "mode": SIGNED,
    "result": SIGNED,
    "errno": SIGNED,
    "offset2": SIGNED,
    "container": TEXT,
    "waited_ns": time(Presence.OPTIONAL_NULLABLE),
    "file": TEXT,
    "position": SIGNED,
}

_RUN: Mapping[str, Column] = {
    "call_number": whole(I64, Presence.REQUIRED),
    "instance": whole(U32, Presence.OPTIONAL_NULLABLE),
    "thread": whole(U32, Presence.REQUIRED),
    "call": Column(is_text=True, presence=Presence.REQUIRED),
    "path": TEXT,
    "position": SIGNED,
    "length": SIGNED,
    "scheduled_ns": time(Presence.REQUIRED),
    "issued_ns": time(Presence.REQUIRED_NULLABLE),
    "completed_ns": time(Presence.REQUIRED_NULLABLE),
    "predecessors_end_ns": time(Presence.OPTIONAL_NULLABLE),
    "gap_ns": time(Presence.OPTIONAL_NULLABLE),
    "delay_reason": Column(is_text=True),
    "result": SIGNED,
    "errno": SIGNED,
    "expected_result": SIGNED,
    "expected_errno": SIGNED,
    "expected_duration_ns": time(Presence.OPTIONAL_NULLABLE),
    "outcome": Column(is_text=True),
}

_REASONS_OF_VERSION_2 = {"pool": "depth", "replayer": "backlog"}


def _rename_run(run: dict[str, Any], version: int) -> None:
    if version < 3:
        statistics = run.get("statistics")
        old = {
            "issue_error_us": "delay_not_held_back_us",
            "within_pct": "within_not_held_back_pct",
            "response_us": "latency_us",
            "original_response_us": "original_latency_us",
            "held": "delay_reasons",
        }
        rename(statistics, old)
        if isinstance(statistics, dict):
            rename(statistics.get("delay_reasons"), _REASONS_OF_VERSION_2)


_FAMILY = " ".join(
    f"WHEN call IN ({', '.join(map(repr, names))}) THEN '{family}'" for family, names in FAMILIES.items()
)
_SHARED = {
    "family": f"CASE {_FAMILY} END",
    "bytes": f"CASE WHEN family IN {MOVES_DATA} AND result > 0 THEN result END",
}


def _due(file: Any) -> str:
    """When a call of a run was due; if calls had no times to keep, when it was issued."""
    return "coalesce(issued_ns, scheduled_ns)" if file.option("timing") == "asap" else "scheduled_ns"


CALLS = Kind(
    "calls",
    "a trace of calls",
    _TRACE,
    LIBRARY,
    converted_to=".calls.parquet",
    view="calls",
    derived={"call_number": "place", "end_ns": "begin_ns + duration_ns", **_SHARED},
    views={
        "calls_per_second": """
    SELECT floor(begin_ns / 1e9)::BIGINT AS second,
           count(*) AS calls,
           count(*) FILTER (errno <> 0) AS failed,
           sum(bytes) FILTER (family = 'read') AS bytes_read,
           sum(bytes) FILTER (family IN ('write', 'copy')) AS bytes_written,
           avg(duration_ns) / 1e9 AS duration_avg_s,
           max(duration_ns) / 1e9 AS duration_max_s
    FROM calls GROUP BY 1 ORDER BY 1""",
    },
    due=lambda file: "begin_ns",
)

CALLS_RUN = Kind(
    "calls_run",
    "a run of calls",
    _RUN,
    LIBRARY,
    is_run=True,
    renamed={"delay_reason": Renamed("held_by", 2, _REASONS_OF_VERSION_2)},
    rename_run=_rename_run,
    view="calls_run",
    derived={
        "duration_ns": "completed_ns - issued_ns",
        "latency_ns": "completed_ns - issued_ns",
        "delay_ns": "issued_ns - scheduled_ns",
        "not_held_back": "issued_ns IS NOT NULL AND coalesce(delay_reason, 'none') IN ('none', 'input', 'backlog')",
        "mismatch": f"coalesce(outcome, 'same') IN {MISMATCHES}",
        **_SHARED,
    },
    due=_due,
)

KINDS = (CALLS, CALLS_RUN)
