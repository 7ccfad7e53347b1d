"""Makes files of requests as in docs/schema.md from rows with only the relevant columns."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

S = 1_000_000_000
MS = 1_000_000
US = 1_000

RUN_TYPES: dict[str, pa.DataType] = {
    "request": pa.int64(),
    "iteration": pa.int32(),
    "device": pa.int32(),
    "source_sector": pa.int64(),
    "sector": pa.int64(),
    "sectors": pa.int64(),
    "op": pa.string(),
    "flags": pa.int32(),
    "scheduled_ns": pa.int64(),
    "issued_ns": pa.int64(),
    "completed_ns": pa.int64(),
    "bytes_done": pa.int64(),
    "in_flight": pa.int32(),
    "waiting": pa.int32(),
    "pushed_back": pa.bool_(),
    "widened": pa.bool_(),
    "delay_reason": pa.string(),
    "outcome": pa.string(),
    "errno": pa.int32(),
}
RUN_SCHEMA = pa.schema(RUN_TYPES)

LOAD_TYPES: dict[str, pa.DataType] = {
    "at_ns": pa.int64(),
    "device": pa.int32(),
    "sector": pa.int64(),
    "sectors": pa.int64(),
    "op": pa.string(),
    "flags": pa.int32(),
}
LOAD_SCHEMA = pa.schema(LOAD_TYPES)

STATISTICS: dict[str, Any] = {
    "wrap_factor": 0.9,
    "within_pct": {"10": 97.5, "25": 98.8, "50": 99.4, "100": 99.7},
    "delay_us": {"p50": 1.2, "p90": 2.0, "p98": 9.0, "p99": 21.0, "p999": 180.0, "max": 900.0},
}


def run_row(
    number: int = 0, *, scheduled: int = 0, delay: int = 0, latency: int | None = MS, **more: Any
) -> dict[str, Any]:
    """A row of a run; times in ns. `latency` is None for a request that never completed."""
    issued = scheduled + delay
    row = {
        "request": number,
        "iteration": 0,
        "device": 0,
        "source_sector": 0,
        "sector": 0,
        "sectors": 8,
        "op": "read",
        "flags": 0,
        "scheduled_ns": scheduled,
        "issued_ns": issued,
        "completed_ns": None if latency is None else issued + latency,
        "bytes_done": 4096,
        "in_flight": 1,
        "waiting": 0,
        "pushed_back": False,
        "widened": False,
        "delay_reason": "none",
        "outcome": "ok",
        "errno": 0,
    }
    return row | more


def load_row(at: int = 0, *, sector: int = 0, sectors: int = 8, op: str = "read") -> dict[str, Any]:
    """A row of a load; `at` in ns."""
    return {"at_ns": at, "device": 0, "sector": sector, "sectors": sectors, "op": op, "flags": 0}


def write_run(path: Path, rows: Sequence[dict[str, Any]] | pa.Table, **footer: Any) -> Path:
    """Writes a run; `footer` overrides keys of the footer, `run` those within its `run`."""
    table = rows if isinstance(rows, pa.Table) else pa.Table.from_pylist(list(rows), schema=RUN_SCHEMA)
    run = {
        "target": {"path": "/dev/loop9", "kind": "block", "sectors": 4194304},
        "statistics": STATISTICS,
        "fake": None,
        "warnings": [],
    } | footer.pop("run", {})
    return _write(path, table, {"kind": "replay", "run": run} | footer)


def write_load(path: Path, rows: Sequence[dict[str, Any]] | pa.Table, **footer: Any) -> Path:
    """Writes a load."""
    table = rows if isinstance(rows, pa.Table) else pa.Table.from_pylist(list(rows), schema=LOAD_SCHEMA)
    return _write(path, table, {"kind": "load"} | footer)


def _write(path: Path, table: pa.Table, footer: dict[str, Any]) -> Path:
    whole = {
        "schema_version": 3,
        "source": {"format": "test"},
        "devices": [{"name": ""}],
        "counts": {"requests": table.num_rows},
        "span": {},
        "complete": True,
    } | footer
    with path.open("wb") as file:
        pq.write_table(table.replace_schema_metadata({"iosonar": json.dumps(whole)}), file, compression="zstd")
    return path


OLD_COLUMNS = {
    "iteration": "round",
    "scheduled_ns": "intended_ns",
    "last_empty_poll_ns": "unanswered_ns",
    "delay_reason": "held_by",
}
OLD_REASONS = {"none": "nothing", "completion_log": "recorder"}
OLD_STATISTICS = {
    "delay_us": "issue_error_us",
    "delay_not_held_back_us": "issue_error_free_us",
    "within_not_held_back_pct": "within_free_pct",
}


def as_version_1(path: Path) -> Path:
    """Converts a run to version 1: the same with the old names."""
    table = pq.ParquetFile(path).read()
    footer = json.loads(table.schema.metadata[b"iosonar"])
    statistics = footer["run"]["statistics"]
    footer["schema_version"] = 1
    footer["run"]["statistics"] = {OLD_STATISTICS.get(name, name): value for name, value in statistics.items()}
    place = table.schema.get_field_index("delay_reason")
    reasons = [OLD_REASONS.get(str(name), name) for name in table["delay_reason"].to_pylist()]
    table = table.set_column(place, "delay_reason", pa.array(reasons, pa.string()))
    table = table.rename_columns([OLD_COLUMNS.get(name, name) for name in table.column_names])
    with path.open("wb") as file:
        pq.write_table(table.replace_schema_metadata({"iosonar": json.dumps(footer)}), file, compression="zstd")
    return path
