#!/usr/bin/env python3
"""Measures what polling for completions before sleeping (`replay --busy-poll`) gains and costs, beside busy programs.

    bench/busy_poll.py [--rounds 3] [--depths 1,4,16,64] [--times 0,50us,200us] [--busy 0,1,2] [--seconds 1] [--mib 1024]
                       [--iosonar PATH] [--json FILE]

Reads of 4 KiB at random positions on a loop device with direct I/O over a file in memory, the ways by turns:
`iosonar workload run random-reads`, with `--wait inline` and `--wait hybrid`, for each time of polling. `--busy` is the
number of other programs that compute meanwhile, one thread each. Prints the median of the requests per second, and the
median of the ratios to no polling in the same round. Needs root.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from common import bench, keep, options, sh
from replayers import turns

Way = tuple[str, str]
WAITS = ("inline", "hybrid")


@contextmanager
def busy_programs(count: int) -> Iterator[None]:
    programs = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for program in programs:
            program.kill()
            program.wait()


def measure(command: list[object], way: Way) -> float:
    wait, time = way
    return json.loads(sh(*command, "--wait", wait, "--busy-poll", time))["iops"]


def main() -> None:
    p = options(__doc__)
    p.add_argument("--rounds", type=int, default=3), p.add_argument("--depths", default="1,4,16,64")
    p.add_argument("--times", default="0,50us,200us"), p.add_argument("--busy", default="0,1,2")
    p.add_argument("--seconds", type=float, default=1)
    args: argparse.Namespace = p.parse_args()
    ways = [(wait, time) for wait in WAITS for time in args.times.split(",")]
    results = []
    with bench(args.mib) as (directory, device):
        how = (
            "--target",
            device.path,
            "--output",
            directory / "run.replay.parquet",
            "--overwrite",
            "--json",
            "--no-sample",
        )
        for busy in map(int, args.busy.split(",")):
            for depth in map(int, args.depths.split(",")):
                command: list[object] = [args.iosonar, "workload", "run", "random-reads", "--set", f"depth={depth}"]
                command += ["--for", f"{args.seconds}s", "--depth", depth, *how]
                seen: dict[Way, list[float]] = {way: [] for way in ways}
                with busy_programs(busy):
                    for n in range(args.rounds):
                        for way in turns(ways, n):
                            seen[way].append(measure(command, way))
                results += [
                    {"busy": busy, "depth": depth, "wait": wait, "busy_poll": time, "iops": rates}
                    for (wait, time), rates in seen.items()
                ]
                print(f"{busy} busy programs, depth {depth}: done", file=sys.stderr, flush=True)
    print(f"{os.cpu_count()} processors, load average {os.getloadavg()[0]:.1f} at the end\n")
    print("| busy programs | depth | --wait | --busy-poll | requests/s: median (least to most) | ratio to the first |")
    print("|" + "---|" * 6)
    for each in results:
        rates = each["iops"]
        first = next(r["iops"] for r in results if all(r[key] == each[key] for key in ("busy", "depth", "wait")))
        ratio = statistics.median(own / base for own, base in zip(rates, first, strict=True))
        shown = f"{statistics.median(rates):,.0f} ({min(rates):,.0f} to {max(rates):,.0f})"
        cells = (each["busy"], each["depth"], each["wait"], each["busy_poll"], shown, f"{ratio:.2f}")
        print("|", " | ".join(map(str, cells)), "|")
    keep(args, results)


if __name__ == "__main__":
    main()
