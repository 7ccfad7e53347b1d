#!/usr/bin/env python3
"""Measures the accuracy and cost of each way of waiting (`replay --wait`): delay of requests, and processor time.

    bench/wait.py [--rounds 3] [--rates 100,1000,10000] [--seconds 4] [--iosonar PATH] [--json FILE]

Poisson arrivals of 4 KiB, 70 % reads, on a loop device with direct I/O over a file in memory; the ways take turns. The
delay is that of the requests not held back, as in the run's verdict. Processor time is that of the whole process (loop,
reader, completion log, in user space and kernel), as a share of one processor. The last rows allow the process a single
processor. Needs root.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from common import bench, keep, options, sh

WAYS = ("spin", "hybrid", "sleep")
ONE = "(default, one processor)"


def replay(args: argparse.Namespace, load: Path, device: str, output: Path, way: str) -> dict[str, float]:
    words = [
        args.iosonar,
        "replay",
        load,
        "--target",
        device,
        "--output",
        output,
        "--overwrite",
        "--json",
        "--no-sample",
    ]
    words = ["taskset", "--cpu-list", "0", *words] if way == ONE else [*words, "--wait", way]
    started = time.monotonic()
    run = subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert run.stdout is not None
    output_text = run.stdout.read()
    _, code, used = os.wait4(run.pid, 0)
    elapsed = time.monotonic() - started
    if code != 0:
        raise SystemExit(f"{words} ended with {os.waitstatus_to_exitcode(code)}")
    verdict: dict[str, Any] = json.loads(output_text)["verdict"]
    own = verdict["own"]
    return {
        **{f"within_{bound}_us": own["within_pct"][bound] for bound in ("10", "50", "100")},
        "p50_us": own["delay_us"]["p50"],
        "p99_us": own["delay_us"]["p99"],
        "processors": (used.ru_utime + used.ru_stime) / elapsed,
    }


def main() -> None:
    p = options(__doc__, mib=512)
    p.add_argument("--rounds", type=int, default=3), p.add_argument("--rates", default="100,1000,10000")
    p.add_argument("--seconds", type=float, default=4)
    args = p.parse_args()
    seen: dict[str, list[dict[str, float]]] = {}
    with bench(args.mib) as (directory, device):
        for rate in map(int, args.rates.split(",")):
            load = directory / f"{rate}.load.parquet"
            shape = ["--rate", rate, "--duration", f"{args.seconds}s", "--size", "4k", "--reads", "0.7"]
            sh(args.iosonar, "generate", "poisson", load, *shape, "--span", f"{args.mib}M")
            for n in range(args.rounds):
                for way in (*WAYS, ONE):
                    row = replay(args, load, device.path, directory / "run.replay.parquet", way)
                    seen.setdefault(f"{rate}/s | {way}", []).append(row)
                print(f"{rate} requests/s, round {n + 1} of {args.rounds}", file=sys.stderr, flush=True)
    print("| rate | `--wait` | within 10 µs | 50 µs | 100 µs | median late | 99 % late | processors taken |")
    print("|---|---|---|---|---|---|---|---|")
    for which, rows in seen.items():
        m = {key: statistics.median(row[key] for row in rows) for key in rows[0]}
        print(
            f"| {which} | {m['within_10_us']:.1f} % | {m['within_50_us']:.1f} % | {m['within_100_us']:.1f} % "
            f"| {m['p50_us']:.1f} µs | {m['p99_us']:.0f} µs | {m['processors']:.2f} |"
        )
    keep(args, seen)


if __name__ == "__main__":
    main()
