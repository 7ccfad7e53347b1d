#!/usr/bin/env python3
"""Measures the replayer itself: requests, and calls to files, per second without storage.

    bench/null.py [--requests 10000000] [--runs 5] [--iosonar PATH[,PATH]] [--loop PATH] [--make PATH] [--json FILE]

Variants in turns: `--asap --dry-run` on a file (with data for all writes), `--asap --fake-io` (the load is read from
Parquet, every request is recorded, conflicts are tracked), and their limit, the loop alone, fed from memory (--loop: the
example loop_alone of crates/replay). With --make, the example make_calls of crates/files, a fifth as many calls, and
their limit, so few that they fit in the queue of planned calls. Both examples are built with --release. With two
programs as --iosonar, the second one is measured beside the first. Prints a table of medians.
"""

import argparse
import json
import statistics
import sys
from pathlib import Path

from common import directory, keep, options, sh

# Calls that fit in the queue of planned calls.
QUEUED = 16_000


def main() -> None:
    p = options(__doc__)
    p.add_argument("--requests", type=int, default=10_000_000), p.add_argument("--runs", type=int, default=5)
    p.add_argument("--loop", type=Path), p.add_argument("--depth", type=int, default=512)
    p.add_argument("--make", type=Path)
    args = p.parse_args()
    programs = args.iosonar.split(",")
    rows: dict[str, list[float]] = {}
    with directory() as place:
        load, output, target = place / "null.load.parquet", place / "null.replay.parquet", place / "target"
        shape = ["--rate", 1_000_000, "--requests", args.requests, "--size", "4k", "--span", "64G", "--reads", 0.7]
        sh(programs[0], "generate", "uniform", load, *shape)
        target.touch()
        sh("truncate", "--size", "64G", target)
        ways: dict[str, tuple[list, str]] = {}
        for number, program in enumerate(programs):
            mark = f", program {number + 1}" if number else ""
            replay = [program, "replay", load, "--output", output, "--overwrite", "--asap", "--json"]
            replay += ["--depth", args.depth]
            ways[f"everything but the I/O (--dry-run){mark}"] = ([*replay, "--dry-run", "--target", target], "iops")
            ways[f"reader, loop and recorder (--fake-io){mark}"] = ([*replay, "--fake-io"], "iops")
            if args.make:
                ways |= calls(args, program, place, mark)
        for n in range(args.runs):
            for way, (words, rate) in ways.items():
                rows.setdefault(way, []).append(json.loads(sh(*words))[rate])
            if args.loop:
                alone = json.loads(sh(args.loop, args.requests, args.depth))
                rows.setdefault("the loop alone", []).append(alone["per_s"])
                rows.setdefault("the loop alone, for each second of its processor", []).append(alone["per_processor_s"])
            print(f"run {n + 1}:", {way: round(rates[-1]) for way, rates in rows.items()}, file=sys.stderr, flush=True)
    print("| what | runs | median, per second | least | most |")
    print("|---|---|---|---|---|")
    for way, rates in rows.items():
        middle = statistics.median(rates)
        print(f"| {way} | {args.runs} | {middle:,.0f} | {min(rates):,.0f} | {max(rates):,.0f} |")
    keep(args, rows)


def calls(args: argparse.Namespace, program: str, place: Path, mark: str) -> dict[str, tuple[list, str]]:
    """Reads of 512 bytes from a file that are not made."""
    root = place / "root"
    root.mkdir(exist_ok=True)
    (root / "data").write_bytes(bytes(4 << 20))
    ways: dict[str, tuple[list, str]] = {}
    for name, count in (("calls: reader, engine and recorder", args.requests // 5), ("calls: engine", QUEUED)):
        trace = place / f"{count}.calls.parquet"
        sh(args.make, "reads", trace, count, 4 << 20, 512)
        words = [program, "files", "replay", trace, "--root", root, "--output", place / "null.calls-run.parquet"]
        words += ["--overwrite", "--json", "--timing", "asap", "--no-verify-order", "--fake-io"]
        ways[f"{name} (--fake-io){mark}"] = (words, "calls_per_s")
    return ways


if __name__ == "__main__":
    main()
