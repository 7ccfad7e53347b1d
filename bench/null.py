#!/usr/bin/env python3
"""Measures the replayer itself: requests per second without storage.

    bench/null.py [--requests 10000000] [--runs 3] [--iosonar PATH] [--loop PATH] [--json FILE]

Three variants: `--asap --dry-run` on a file (with data for all writes), `--asap --fake-io` (the load is read from
Parquet, every request is recorded, conflicts are tracked), and the loop alone, fed from memory (--loop: the example
loop_alone of crates/replay, built with --release). Prints a table of medians.
"""

import json
import statistics
import sys
from pathlib import Path

from common import directory, keep, options, sh


def main() -> None:
    p = options(__doc__)
    p.add_argument("--requests", type=int, default=10_000_000), p.add_argument("--runs", type=int, default=3)
    p.add_argument("--loop", type=Path), p.add_argument("--depth", type=int, default=512)
    args = p.parse_args()
    rows: dict[str, list[float]] = {}
    with directory() as place:
        load, output, target = place / "null.load.parquet", place / "null.replay.parquet", place / "target"
        shape = ["--rate", 1_000_000, "--requests", args.requests, "--size", "4k", "--span", "64G", "--reads", 0.7]
        sh(args.iosonar, "generate", "uniform", load, *shape)
        target.touch()
        sh("truncate", "--size", "64G", target)
        replay = [args.iosonar, "replay", load, "--output", output, "--overwrite", "--asap", "--json"]
        ways = {
            "everything but the I/O (--dry-run)": [*replay, "--depth", args.depth, "--dry-run", "--target", target],
            "reader, loop and recorder (--fake-io)": [*replay, "--depth", args.depth, "--fake-io"],
        }
        for n in range(args.runs):
            for way, words in ways.items():
                rows.setdefault(way, []).append(json.loads(sh(*words))["iops"])
            if args.loop:
                alone = json.loads(sh(args.loop, args.requests, args.depth))
                rows.setdefault("the loop alone", []).append(alone["per_s"])
                rows.setdefault("the loop alone, for each second of its processor", []).append(alone["per_processor_s"])
            print(f"run {n + 1}:", {way: round(rates[-1]) for way, rates in rows.items()}, file=sys.stderr, flush=True)
    print("| what | requests | runs | median requests/s | least | most |")
    print("|---|---|---|---|---|---|")
    for way, rates in rows.items():
        middle = statistics.median(rates)
        print(f"| {way} | {args.requests:,} | {args.runs} | {middle:,.0f} | {min(rates):,.0f} | {max(rates):,.0f} |")
    keep(args, rows)


if __name__ == "__main__":
    main()
