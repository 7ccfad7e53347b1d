"""A realistic synthetic run of any length: a device with a cache, latency spikes and a single outlier."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
from factory import RUN_SCHEMA, write_run


def made_run(rows: int, seconds: float = 60.0, seed: int = 1) -> pa.Table:
    """A table of a run with that many requests over that many seconds, in order of completion."""
    chance = np.random.default_rng(seed)
    scheduled = np.sort(chance.uniform(0, seconds * 1e9, rows)).astype(np.int64)
    write = chance.random(rows) < 0.4
    hit = chance.random(rows) < np.where(write, 0.7, 0.45)
    latency = np.where(hit, chance.lognormal(np.log(9e4), 0.3, rows), chance.lognormal(np.log(5e6), 0.6, rows))
    for at in chance.uniform(0, seconds * 1e9, 6):
        needle = (scheduled > at) & (scheduled < at + 1.5e8)
        latency[needle] *= chance.uniform(3, 60, int(needle.sum()))
    latency[rows // 3] = 1.7e9
    pushed = chance.random(rows) < 0.02
    delay = chance.lognormal(np.log(1500), 0.7, rows) + pushed * chance.lognormal(np.log(2e6), 0.5, rows)
    issued = scheduled + delay.astype(np.int64)
    completed = issued + latency.astype(np.int64)
    # Half of the requests continue the previous one, the others go to positions of unequal popularity.
    sector = (chance.zipf(1.2, rows) * 7919 * 8) % 60_000_000
    sectors = chance.choice([8, 16, 32, 64, 128, 256], rows, p=[0.55, 0.15, 0.1, 0.1, 0.05, 0.05])
    columns = {
        "request": np.arange(rows),
        "iteration": np.zeros(rows),
        "device": np.zeros(rows),
        "source_sector": sector,
        "sector": sector % 4_194_304,
        "sectors": sectors,
        "op": np.where(write, "write", "read"),
        "flags": np.zeros(rows),
        "scheduled_ns": scheduled,
        "issued_ns": issued,
        "completed_ns": completed,
        "bytes_done": sectors * 512,
        "in_flight": chance.integers(1, 64, rows),
        "waiting": chance.integers(0, 3, rows),
        "pushed_back": pushed,
        "widened": np.zeros(rows, bool),
        "delay_reason": np.full(rows, "none"),
        "outcome": np.full(rows, "ok"),
        "errno": np.zeros(rows),
    }
    order = np.argsort(completed, kind="stable")
    return pa.table({field.name: pa.array(columns[field.name][order]).cast(field.type) for field in RUN_SCHEMA})


if __name__ == "__main__":
    write_run(Path(sys.argv[1]), made_run(int(sys.argv[2])))
