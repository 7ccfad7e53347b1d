#!/usr/bin/env python3
"""Makes a synthetic run of any length, to measure the cost of reports; its columns are those of docs/schema.md.

    bench/make_result.py OUT.replay.parquet ROWS [--rate 10000] [--seed 1]

A device with a cache and latency spikes, a load with sequential streams, hot spots and long jumps. It is made in
chunks, so that a hundred million requests need a few hundred MB; rows are in order of completion, as in every run.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

CHUNK = 1_000_000
DEVICE = 1_048_576_000  # sectors: 500 GiB
TYPES = {
    "request": pa.int64(), "iteration": pa.int32(), "device": pa.int32(), "source_sector": pa.int64(),
    "sector": pa.int64(), "sectors": pa.int64(), "op": pa.string(), "flags": pa.int32(),
    "scheduled_ns": pa.int64(), "issued_ns": pa.int64(), "completed_ns": pa.int64(), "bytes_done": pa.int64(),
    "in_flight": pa.int32(), "waiting": pa.int32(), "pushed_back": pa.bool_(), "widened": pa.bool_(),
    "delay_reason": pa.string(), "outcome": pa.string(), "errno": pa.int32(),
}  # fmt: skip
SCHEMA = pa.schema(TYPES)
Columns = dict[str, Any]


def chunks(rows: int, rate: float, seed: int) -> Iterator[Columns]:
    """Requests in order of issue; chunks are independent except for their start."""
    for number, first in enumerate(range(0, rows, CHUNK)):
        yield chunk(np.random.default_rng([seed, number]), first, min(CHUNK, rows - first), rate)


def chunk(rng: np.random.Generator, first: int, n: int, rate: float) -> Columns:
    start, length = first / rate * 1e9, n / rate * 1e9
    # The rate of the load varies by half.
    even = np.sort(rng.random(n))
    scheduled = (start + length * (even + 0.5 / (8 * np.pi) * np.sin(8 * np.pi * even))).astype(np.int64)
    scheduled.sort()
    write = rng.random(n) < 0.4
    hit = rng.random(n) < np.where(write, 0.7, 0.45)
    latency = np.where(hit, rng.lognormal(np.log(9e4), 0.3, n), rng.lognormal(np.log(4e6), 0.6, n))
    for at in rng.uniform(start, start + length, 4):
        spike = slice(*np.searchsorted(scheduled, [at, at + 1.5e8]))
        latency[spike] *= rng.uniform(3, 40)
    pushed = rng.random(n) < 0.02
    delay = rng.lognormal(np.log(1500), 0.7, n) + pushed * rng.lognormal(np.log(2e6), 0.5, n)
    issued = scheduled + delay.astype(np.int64)
    kind = rng.random(n)
    number = first + np.arange(n)
    stream = (number % 8) * (DEVICE // 9) + (number // 8 * 16) % (DEVICE // 10)
    hot = (rng.zipf(1.2, n) % 4_000_000 * 7919 % 4_000_000) * 8
    far = rng.integers(0, DEVICE // 8 - 64, n) * 8
    sector = np.where(kind < 0.3, stream, np.where(kind < 0.8, hot, far))
    sectors = np.where(kind < 0.3, 16, rng.choice([8, 16, 32, 64, 128, 256], n, p=[0.6, 0.15, 0.1, 0.08, 0.05, 0.02]))
    return {
        "request": number, "source_sector": sector, "sector": sector, "sectors": sectors, "write": write,
        "scheduled_ns": scheduled, "issued_ns": issued, "completed_ns": issued + latency.astype(np.int64),
        "pushed_back": pushed, "horizon": int(start + length),
    }  # fmt: skip


def completed(issued: Iterator[Columns]) -> Iterator[Columns]:
    """The same rows in order of completion, with the number of requests in flight at the issue of each."""
    held: Columns = {}
    ends = np.empty(0, np.int64)
    issues_before = ends_before = 0
    for each in issued:
        horizon = each.pop("horizon")
        order = np.argsort(each["issued_ns"], kind="stable")
        each = {name: values[order] for name, values in each.items()}
        ends = np.sort(np.concatenate([ends, each["completed_ns"]]))
        begins = each["issued_ns"]
        level = issues_before + np.arange(1, len(begins) + 1) - ends_before - np.searchsorted(ends, begins, side="left")
        each["in_flight"] = np.maximum(level, 1)
        issues_before += len(begins)
        # Requests may complete after the end of the chunk: those near it wait for the next chunk.
        done = int(np.searchsorted(ends, horizon))
        ends, ends_before = ends[done:], ends_before + done
        merged = {name: np.concatenate([held[name], each[name]]) if held else each[name] for name in each}
        order = np.argsort(merged["completed_ns"], kind="stable")
        cut = int(np.searchsorted(merged["completed_ns"][order], horizon))
        yield {name: values[order[:cut]] for name, values in merged.items()}
        held = {name: values[order[cut:]] for name, values in merged.items()}
    yield held


def as_table(columns: Columns) -> pa.Table:
    n = len(columns["request"])
    write = columns.pop("write")
    words = {
        "op": (write.astype(np.int8), ["read", "write"]),
        "delay_reason": (np.zeros(n, np.int8), ["none"]),
        "outcome": (np.zeros(n, np.int8), ["ok"]),
    }
    columns["bytes_done"] = columns["sectors"] * 512
    arrays = []
    for name, kind in TYPES.items():
        if name in words:
            index, values = words[name]
            arrays.append(pa.DictionaryArray.from_arrays(index, values).cast(kind))
        else:
            arrays.append(pa.array(columns.get(name, np.zeros(n, np.int8))).cast(kind))
    return pa.table(arrays, schema=SCHEMA)


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("out", type=Path), p.add_argument("rows", type=int)
    p.add_argument("--rate", type=float, default=10_000), p.add_argument("--seed", type=int, default=1)
    args = p.parse_args()
    footer = {
        "schema_version": 3, "kind": "replay", "source": {"format": "made"}, "devices": [{"name": ""}],
        "counts": {"requests": args.rows}, "span": {}, "complete": True,
        "run": {
            "target": {"path": "/dev/made", "kind": "block", "sectors": DEVICE}, "fake": None, "warnings": [],
            "statistics": {
                "wrap_factor": 1.0, "requests": args.rows, "within_pct": {"10": 97.5, "100": 99.7},
                "delay_us": {"p99": 21.0},
            },
        },
    }  # fmt: skip
    schema = SCHEMA.with_metadata({"iosonar": json.dumps(footer)})
    with pq.ParquetWriter(args.out, schema, compression="zstd") as writer:
        for rows in completed(chunks(args.rows, args.rate, args.seed)):
            writer.write_table(as_table(rows).replace_schema_metadata(schema.metadata), row_group_size=500_000)


if __name__ == "__main__":
    main()
