#!/usr/bin/env python3
"""Measures several issuing loops (`replay --issuers`) against one, by turns.

    bench/issuers.py [--issuers 1,2] [--rounds 5] [--requests 1000000] [--rate 50000] [--seconds 4] [--mib 2048]
                     [--before PATH] [--iosonar PATH] [--json FILE]

Three loads of 4 KiB at random positions, 70 % reads: as fast as possible without I/O (`--engine null`) and on a loop device
with direct I/O over a file in memory, and Poisson arrivals at `--rate` on that device. And a closed program of eight instances
that read at depth 32, without I/O. One loop is measured twice: as it
waits by default (with two or three processors `inline`, where it works alone), and with `--wait hybrid`, with the same
threads beside it as several loops have. So are several loops: with deadlines, only `--wait` keeps as many loops as
processors. `--before` names an earlier build, which takes its turn with one loop. Prints medians,
and the median of the ratios to one loop with `--wait hybrid` of the same round. Needs root.
"""

import argparse
import json
import os
import statistics
from pathlib import Path

from common import bench, keep, options, sh

Results = dict[str, dict[str, list[float]]]
BASE = "1 loop, hybrid"


def ways(args: argparse.Namespace) -> dict[str, list[object]]:
    """The binary and the options of each way, in the order of a round."""
    found: dict[str, list[object]] = {}
    if args.before:
        found["1 loop, hybrid, before"] = [args.before, "--wait", "hybrid"]
    for issuers in map(int, args.issuers.split(",")):
        words = [args.iosonar, *(["--issuers", issuers] if issuers > 1 else [])]
        if issuers == 1:
            found["1 loop"] = words
            found[BASE] = [*words, "--wait", "hybrid"]
        else:
            found[f"{issuers} loops"] = words
            found[f"{issuers} loops, hybrid"] = [*words, "--wait", "hybrid"]
    return found


PROGRAM = """
name = "readers"
about = "Eight instances that always have 32 reads in flight."
[[stream]]
name = "reader"
closed = true
op = "read"
instances = 8
depth = 32
requests = {}
"""


def measure(words: list[object], timed: bool) -> dict[str, float]:
    run = json.loads(sh(*words, "--json", "--overwrite"))
    if run["requests"] != run["completed"] or run["errors"]:
        raise SystemExit(f"{words}: {run['completed']} of {run['requests']} requests, {run['errors']} errors")
    if not timed:
        return {"requests/s": run["iops"]}
    within = run["verdict"]["own"]["within_pct"]
    return {"within 10 µs": within["10"], "within 50 µs": within["50"]}


def print_table(rows: Results) -> None:
    names = list(next(iter(rows.values())))
    print("|", " | ".join(["way", *(f"{name}: median (least to most)" for name in names), "ratio"]), "|")
    print("|" + "---|" * (len(names) + 2))
    for way, numbers in rows.items():
        shown = [f"{statistics.median(n):,.1f} ({min(n):,.1f} to {max(n):,.1f})" for n in numbers.values()]
        pairs = zip(numbers[names[0]], rows[BASE][names[0]], strict=True)
        ratio = statistics.median(own / base for own, base in pairs if base)
        print("|", " | ".join([way, *shown, f"{ratio:.2f}"]), "|")


def main() -> None:
    p = options(__doc__)
    p.add_argument("--issuers", default="1,2"), p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--requests", type=int, default=1_000_000), p.add_argument("--rate", type=int, default=50_000)
    p.add_argument("--seconds", type=float, default=4), p.add_argument("--before", type=Path)
    args = p.parse_args()
    results: dict[str, Results] = {}
    with bench(args.mib) as (place, device):
        fast, timed = place / "fast.load.parquet", place / "timed.load.parquet"
        output, program = place / "r.replay.parquet", place / "readers.toml"
        program.write_text(PROGRAM.format(args.requests // 8))
        shape: list[object] = ["--size", "4k", "--span", f"{args.mib}M", "--reads", 0.7]
        sh(args.iosonar, "generate", "uniform", fast, "--rate", 1_000_000, "--requests", args.requests, *shape)
        sh(args.iosonar, "generate", "poisson", timed, "--rate", args.rate, "--duration", args.seconds, *shape)
        on_device: list[object] = ["--target", device.path, "--output", output, "--no-sample"]
        parts: dict[str, list[object]] = {
            "as fast as possible, without I/O": ["replay", fast, "--asap", "--engine", "null", "--output", output],
            "as fast as possible, depth 64, loop device": ["replay", fast, "--asap", "--depth", 64, *on_device],
            f"{args.rate:,} requests/s, loop device": ["replay", timed, *on_device],
            "closed program, without I/O": ["workload", "run", program, "--engine", "null", "--output", output],
        }
        for _ in range(args.rounds):
            for part, more in parts.items():
                for way, (binary, *words) in ways(args).items():
                    numbers = results.setdefault(part, {}).setdefault(way, {})
                    for name, number in measure([binary, *more, *words], timed in more).items():
                        numbers.setdefault(name, []).append(number)
    print(f"{os.cpu_count()} processors, load average {os.getloadavg()[0]:.1f} at the end")
    for part, rows in results.items():
        print(f"\n{part}:\n")
        print_table(rows)
    keep(args, results)


if __name__ == "__main__":
    main()
