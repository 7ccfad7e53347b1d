"""A synthetic trace: a database with its log, a sequential job, a walk over many small files; and replays of it."""

from __future__ import annotations

from typing import Any

import numpy as np
from call_factory import US, call, read, replayed, write

DATABASE, LOG = "/srv/db/base/16384/2619", "/srv/db/pg_wal/000000010000000000000001"
TABLE = "/data/events/2026/part-0001.bin"


def made_calls(seconds: float = 60, rate: float = 200, seed: int = 1) -> list[dict[str, Any]]:
    """About `seconds` × `rate` calls of six threads, sorted by begin."""
    draw = np.random.default_rng(seed)
    rows: list[dict[str, Any]] = []
    total = seconds * 1e6

    def took(median: float) -> float:
        return float(draw.lognormal(np.log(median), 0.7))

    # Four threads of a database: random reads, appended log, syncs; bursts.
    log = 0
    for thread in range(4):
        at = 0.0
        while at < total:
            at += float(draw.exponential(1e6 / rate * 6))
            if draw.random() < 0.002:
                at += 3e6
            who = {"thread": 4100 + thread, "process": 4100 + thread, "fd_path": DATABASE}
            block = int(draw.pareto(0.6) * 40) % 40_000
            rows.append(read(at, DATABASE, 8192 * block, 8192, duration_ns=round(took(9) * US), **who))
            if draw.random() < 0.35:
                rows.append(
                    write(at + 60, LOG, log, 8192, duration_ns=round(took(14) * US), **(who | {"fd_path": LOG}))
                )
                log += 8192
                rows.append(call("fdatasync", at + 120, took(900), fd=9, file=LOG, **(who | {"fd_path": LOG})))
            if draw.random() < 0.2:
                rows.append(call("lseek", at + 30, took(0.4), fd=3, file=DATABASE, offset=0, **who))
    # A job that reads a file with gaps.
    at, offset = 0.08 * total, 0
    while at < 0.8 * total:
        rows.append(read(at, TABLE, offset, 262_144, duration_ns=round(took(80) * US), thread=5200, process=5200))
        offset += 262_144 + int(draw.integers(0, 4)) * 131_072
        at += float(draw.exponential(1e6 / rate * 5))
    # A walk over many small files.
    at = 0.3 * total
    for number in range(int(seconds * rate / 30)):
        path = f"/home/u/project/src/module_{number // 40:03}/file_{number:05}.c"
        who = {"thread": 6001, "process": 6001, "file": path, "path": path}
        rows.append(call("newfstatat", at, took(1.5), **who))
        if draw.random() < 0.6:
            rows.append(call("openat", at + 4, took(4), **(who | {"result": 5})))
            size = int(draw.lognormal(8, 1.2)) + 1
            rows.append(read(at + 10, path, 0, size, thread=6001, process=6001, duration_ns=round(took(3) * US)))
            rows.append(call("close", at + 20, took(0.7), fd=5, **who))
        else:
            rows[-1] |= {"result": -1, "errno": 2}
        at += float(draw.exponential(0.2 * total / (seconds * rate / 30)))
    rows.sort(key=lambda row: row["begin_ns"])
    return [row for row in rows if row["begin_ns"] < total * 1e3]


def made_replay(calls: list[dict[str, Any]], slower: float = 1.0, seed: int = 2) -> list[dict[str, Any]]:
    """A replay with the trace's times; response times are `slower` times those of the trace."""
    draw = np.random.default_rng(seed)
    zero = calls[0]["begin_ns"]
    rows = []
    for number, each in enumerate(calls):
        error = float(draw.lognormal(np.log(1.8), 0.8)) + (draw.random() < 0.02) * float(draw.exponential(60))
        held = draw.random() < 0.06
        scheduled = (each["begin_ns"] - zero) / US
        row = replayed(
            number,
            each["call"],
            scheduled,
            error + held * 300 * draw.random(),
            thread=each["thread"],
            path=each.get("file"),
            position=each.get("position"),
            length=each.get("length"),
            delay_reason="predecessor" if held else "none",
            gap_ns=round(float(draw.lognormal(np.log(400), 1.5)) * US),
            result=each["result"],
            errno=each["errno"],
            expected_result=each["result"],
            expected_errno=each["errno"],
            expected_duration_ns=each["duration_ns"],
        )
        row["completed_ns"] = row["issued_ns"] + round(each["duration_ns"] * slower * float(draw.lognormal(0, 0.25)))
        if each["call"] == "lseek" and draw.random() < 0.1:
            row |= {"outcome": "other_result", "result": 7}
        if each["call"] == "close" and draw.random() < 0.3:
            row |= {"outcome": "bookkeeping", "issued_ns": None, "completed_ns": None}
        rows.append(row)
    return rows
