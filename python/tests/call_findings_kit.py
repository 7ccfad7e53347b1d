"""What tests of findings of calls to files plant, and the findings of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from call_factory import call, read, replayed, write, write_calls, write_calls_run
from findings_kit import diagnosed

from iosonar.findings.diagnosis import Diagnosis

MS, KIB = 1000.0, 1024
O_DSYNC, O_TRUNC = 0o10000, 0o1000
Rows = list[dict[str, Any]]


def found_in(path: Path, rows: Sequence[dict[str, Any]], **footer: Any) -> Diagnosis:
    """The findings of a trace."""
    in_order = sorted(rows, key=lambda row: int(row["begin_ns"]))
    return diagnosed(write_calls(path / "a.calls.parquet", in_order, **footer))


def found_in_run(path: Path, rows: Sequence[dict[str, Any]], **footer: Any) -> Diagnosis:
    """The findings of a faithful replay of a trace, with its durations."""
    in_order = sorted(rows, key=lambda row: int(row["begin_ns"]))
    of_run = []
    for number, row in enumerate(in_order):
        run = replayed(number, row["call"], row["begin_ns"] / 1000, path=row.get("file"), thread=row["thread"])
        run |= {name: row.get(name) for name in ("position", "length", "result", "errno")}
        run |= {"expected_result": row["result"], "expected_errno": row["errno"]}
        run["completed_ns"] = run["issued_ns"] + row["duration_ns"]
        of_run.append(run | {"expected_duration_ns": row["duration_ns"]})
    return diagnosed(write_calls_run(path / "a.calls-run.parquet", of_run, run={"options": {}} | footer))


def filler(count: int = 400, every_us: float = 10 * MS) -> Rows:
    """A sequential reader with pieces of 128 KiB."""
    return [
        read(every_us * n + 3, "/data/film", n << 17, 1 << 17, duration_ns=400_000, thread=9, process=9)
        for n in range(count)
    ]


def synced(count: int, size: int, writes: int = 1, sync_us: float = 3 * MS, name: str = "/db/log") -> Rows:
    """A log with `writes` writes before each sync."""
    rows: Rows = []
    for n in range(count):
        at = n * 10 * MS
        for part in range(writes):
            rows.append(write(at + part * 20, name, (n * writes + part) * size, size, duration_ns=10_000))
        rows.append(call("fdatasync", at + writes * 20 + 20, sync_us, file=name, fd=3))
    return rows


def threads(follow: bool, waited_ns: int | None = None, seed: int = 3) -> Rows:
    """A thread that writes 300 pieces of 4 ms, and three others with reads after them, or at any time."""
    draw = np.random.default_rng(seed)
    rows = [
        write(n * 5 * MS, "/db/log", n << 17, 1 << 17, duration_ns=4_000_000, process=7, thread=7) for n in range(300)
    ]
    for n in range(300):
        at = n * 5 * MS + (4 * MS + 100 if follow else float(draw.uniform(0, 5 * MS)))
        who = {"process": 7, "thread": 8 + n % 3, "duration_ns": 30_000}
        rows.append(read(at, f"/db/{n % 3}", n << 17, 1 << 17, **who))
    return rows
