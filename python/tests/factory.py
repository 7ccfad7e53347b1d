"""Makes files of requests for tests, to docs/schema.md, from rows that say only what matters."""

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
    "round": pa.int32(),
    "device": pa.int32(),
    "source_sector": pa.int64(),
    "sector": pa.int64(),
    "sectors": pa.int64(),
    "op": pa.string(),
    "flags": pa.int32(),
    "intended_ns": pa.int64(),
    "issued_ns": pa.int64(),
    "completed_ns": pa.int64(),
    "bytes_done": pa.int64(),
    "in_flight": pa.int32(),
    "waiting": pa.int32(),
    "pushed_back": pa.bool_(),
    "widened": pa.bool_(),
    "held_by": pa.string(),
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
    "issue_error_us": {"p50": 1.2, "p90": 2.0, "p98": 9.0, "p99": 21.0, "p999": 180.0, "max": 900.0},
}


def run_row(
    number: int = 0, *, intended: int = 0, delay: int = 0, latency: int | None = MS, **more: Any
) -> dict[str, Any]:
    """A row of a run; times in ns. `latency` None for a request that never completed."""
    issued = intended + delay
    row = {
        "request": number,
        "round": 0,
        "device": 0,
        "source_sector": 0,
        "sector": 0,
        "sectors": 8,
        "op": "read",
        "flags": 0,
        "intended_ns": intended,
        "issued_ns": issued,
        "completed_ns": None if latency is None else issued + latency,
        "bytes_done": 4096,
        "in_flight": 1,
        "waiting": 0,
        "pushed_back": False,
        "widened": False,
        "held_by": "nothing",
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
        "schema_version": 1,
        "source": {"format": "test"},
        "devices": [{"name": ""}],
        "counts": {"requests": table.num_rows},
        "span": {},
        "complete": True,
    } | footer
    with path.open("wb") as file:
        pq.write_table(table.replace_schema_metadata({"iosonar": json.dumps(whole)}), file, compression="zstd")
    return path
