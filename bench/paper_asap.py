#!/usr/bin/env python3
"""Compares a closed program and a replay as fast as possible with bare programs that do nothing else.

    bench/paper_asap.py [--rounds 5] [--seconds 2] [--depths 1,4,16,64] [--iosonar PATH] [--json FILE]

The paper: E. Anderson et al., "Buttress: A toolkit for flexible and high fidelity I/O benchmarking", FAST 2004: 40,000 I/Os per
second where a program of threads with pread() did 44,000. In turns, on a loop device with direct I/O over a file in memory,
reads of 4 KiB at random positions: closed_loop.c, with one io_uring and with threads; `iosonar workload run random-reads`;
`iosonar replay --asap` of a load. iosonar tracks conflicts and records every request. Needs root.
"""

import argparse
import json
import re
import statistics
import sys
from pathlib import Path

from common import bench, keep, options, sh
from replayers import compile_c, turns

BARE = ("io_uring, spins", "io_uring, sleeps", "threads, pread")
OURS = ("workload run", "workload run --wait inline", "replay --asap")
BATCH = 8
"""Completions that a bare loop takes before it submits: more than one saves calls, too many leave the device idle."""


def commands(args: argparse.Namespace, directory: Path, device: str, depth: int) -> dict[str, list]:
    run, load = directory / "run.replay.parquet", directory / "asap.load.parquet"
    bare, how = directory / "closed_loop", ("--target", device, "--output", run, "--overwrite", "--json")
    found = {
        name: [bare, mode, device, depth, args.seconds, BATCH]
        for name, mode in zip(BARE, ("spin", "sleep", "pread"), strict=True)
    }
    program = [args.iosonar, "workload", "run", "random-reads", "--set", f"depth={depth}", "--for", f"{args.seconds}s"]
    found[OURS[0]] = [*program, *how, "--depth", depth]
    found[OURS[1]] = [*found[OURS[0]], "--wait", "inline"]
    found[OURS[2]] = [args.iosonar, "replay", load, *how, "--asap", "--depth", depth]
    return found


def iops(text: str) -> float:
    if text.startswith("{"):
        return json.loads(text)["iops"]
    return float(re.search(r"iops (\d+)", text)[1])


def main() -> None:
    p = options(__doc__)
    p.add_argument("--rounds", type=int, default=5), p.add_argument("--seconds", type=float, default=2)
    p.add_argument("--depths", default="1,4,16,64")
    args = p.parse_args()
    results = []
    with bench(args.mib) as (directory, device):
        compile_c(directory, "closed_loop", "-luring", "-lm")
        load = directory / "asap.load.parquet"
        shape = ("--size", "4k", "--span", f"{args.mib}M", "--reads", 1)
        requests = round(300_000 * args.seconds)
        sh(
            args.iosonar,
            "generate",
            "uniform",
            load,
            "--rate",
            100_000,
            "--requests",
            requests,
            "--duration",
            "1h",
            *shape,
        )
        for depth in map(int, args.depths.split(",")):
            programs = commands(args, directory, device.path, depth)
            seen: dict[str, list[float]] = {name: [] for name in programs}
            for n in range(args.rounds):
                for name in turns(list(programs), n):
                    seen[name].append(iops(sh(*programs[name])))
                rates = ", ".join(f"{name} {rows[-1]:.0f}" for name, rows in seen.items())
                print(f"depth {depth} round {n + 1}: {rates} IOPS", file=sys.stderr, flush=True)
            results.append({"depth": depth, "iops": seen})
    print(
        "| depth | program | median IOPS | of the fastest bare program, median of the rounds | of threads with pread() |"
    )
    print("|---|---|---|---|---|")
    for each in results:
        seen = each["iops"]
        best = [max(rates) for rates in zip(*(seen[name] for name in BARE), strict=True)]
        for name, rates in seen.items():
            of_best = statistics.median(a / b for a, b in zip(rates, best, strict=True))
            of_threads = statistics.median(a / b for a, b in zip(rates, seen[BARE[2]], strict=True))
            print(f"| {each['depth']} | {name} | {statistics.median(rates):,.0f} | {of_best:.3f} | {of_threads:.3f} |")
    keep(args, results)


if __name__ == "__main__":
    main()
