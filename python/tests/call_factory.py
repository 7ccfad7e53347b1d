"""Makes tables of calls and of runs of calls from rows with only the relevant columns."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

_CALLS: dict[str, pa.DataType] = {
    "begin_ns": pa.int64(),
    "duration_ns": pa.int64(),
    "thread": pa.int32(),
    "process": pa.int32(),
    "call": pa.string(),
    "uring": pa.bool_(),
    **dict.fromkeys(("fd", "fd2"), pa.int32()),
    **dict.fromkeys(("fd_path", "path", "path2"), pa.string()),
    **dict.fromkeys(("offset", "length", "flags"), pa.int64()),
    "mode": pa.int32(),
    "result": pa.int64(),
    "errno": pa.int32(),
    "file": pa.string(),
    "position": pa.int64(),
}
_CALLS_RUN: dict[str, pa.DataType] = {
    "call_number": pa.int64(),
    "instance": pa.int32(),
    "thread": pa.int32(),
    "call": pa.string(),
    "path": pa.string(),
    **dict.fromkeys(("position", "length", "scheduled_ns", "issued_ns", "completed_ns"), pa.int64()),
    **dict.fromkeys(("predecessors_end_ns", "gap_ns"), pa.int64()),
    "delay_reason": pa.string(),
    "result": pa.int64(),
    "errno": pa.int32(),
    "expected_result": pa.int64(),
    "expected_errno": pa.int32(),
    "expected_duration_ns": pa.int64(),
    "outcome": pa.string(),
}
_SCALE: dict[str, pa.DataType] = {
    "instances": pa.int32(),
    "what": pa.string(),
    "instance": pa.int32(),
    "seconds": pa.float64(),
}
CALLS, CALLS_RUN, SCALE = pa.schema(_CALLS), pa.schema(_CALLS_RUN), pa.schema(_SCALE)
US = 1_000


def call(name: str, begin_us: float = 0, duration_us: float | None = 1, **more: Any) -> dict[str, Any]:
    """A call of a trace; thread 1 of process 1 makes it."""
    row = {
        "begin_ns": round(begin_us * US),
        "duration_ns": None if duration_us is None else round(duration_us * US),
        "thread": 1,
        "process": 1,
        "call": name,
        "uring": False,
        "flags": 0,
        "result": 0,
        "errno": 0,
    }
    return row | more


def read(begin_us: float, file: str, position: int, length: int, **more: Any) -> dict[str, Any]:
    """A `read` that returns all bytes."""
    found: dict[str, Any] = {"file": file, "position": position, "length": length, "result": length, "fd": 3}
    return call("read", begin_us, **(found | more))


def write(begin_us: float, file: str, position: int, length: int, **more: Any) -> dict[str, Any]:
    """A `write` of all bytes."""
    return read(begin_us, file, position, length, **more) | {"call": "write"}


def replayed(number: int, name: str, scheduled_us: float, error_us: float = 1, **more: Any) -> dict[str, Any]:
    """A call of a run that took 2 µs, and 1 µs in the original."""
    issued = round((scheduled_us + error_us) * US)
    row = {
        "call_number": number,
        "instance": 0,
        "thread": 1,
        "call": name,
        "scheduled_ns": round(scheduled_us * US),
        "issued_ns": issued,
        "completed_ns": issued + 2 * US,
        "delay_reason": "none",
        "result": 0,
        "errno": 0,
        "expected_result": 0,
        "expected_errno": 0,
        "expected_duration_ns": US,
        "outcome": "same",
    }
    return row | more


def write_calls(path: Path, rows: Sequence[dict[str, Any]], **footer: Any) -> Path:
    return _write(path, pa.Table.from_pylist(list(rows), CALLS), {"kind": "calls"} | footer)


def write_calls_run(path: Path, rows: Sequence[dict[str, Any]], **footer: Any) -> Path:
    return _write(path, pa.Table.from_pylist(list(rows), CALLS_RUN), {"kind": "calls_run"} | footer)


def write_scale(path: Path, rows: Sequence[dict[str, Any]], **footer: Any) -> Path:
    return _write(path, pa.Table.from_pylist(list(rows), SCALE), {"kind": "scale"} | footer)


def _write(path: Path, table: pa.Table, footer: dict[str, Any]) -> Path:
    whole = {
        "schema_version": 3,
        "source": {"format": "test"},
        "counts": {"calls": table.num_rows},
        "span": {},
        "complete": True,
    } | footer
    with path.open("wb") as file:
        pq.write_table(table.replace_schema_metadata({"iosonar": json.dumps(whole)}), file, compression="zstd")
    return path
