#!/usr/bin/env python3
"""Compares the time of converting traces to loads by iosonar, and by blkparse and awk, on the same trace, in turn.

bench/convert.py --iosonar target/release/iosonar [--requests 1000000] [--rounds 3] [--directory DIR]

The trace is the natural load of PostgreSQL, repeated until it has the required number of requests, as blktrace's binary
file and as blkparse's text. The time is that from a trace to a load with latencies. The usual way: blkparse prints the
fields, awk matches completions with requests and prints rows of classic text in order of completion; for a load as the
manual requires, NAME.load.gz, they are sorted and compressed. Wall-clock time is what a user waits for, processor time
is the cost. The directory needs some 400 bytes for each request; traces that exist in DIR are reused.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from common import compare_rounds, repeated, sh

# The columns of action, time, sector, sectors and operation.
FIELDS = "-v A=1 -v T=2 -v S=3 -v N=4 -v O=5"
TEXT = "-v A=6 -v T=4 -v S=8 -v N=10 -v O=7"
FORMAT = "%a %T.%9t %S %n %d\\n"
# A row for each Q with its latency, at its C; of several equal requests, the oldest first.
MATCH = r"""
$A == "Q" { key = $S " " $N " " substr($O, 1, 1); waiting[key, ++last[key]] = $T }
$A == "C" {
    key = $S " " $N " " substr($O, 1, 1)
    if (first[key] < last[key]) {
        at = waiting[key, ++first[key]]
        delete waiting[key, first[key]]
        printf "%.9f ; %d ; %d ; %s ; 0.000000000 ; %.9f\n", at, $S, $N, $O, $T - at
    }
}
"""
AWKS = ("gawk", "mawk")
SORTED = "LC_ALL=C sort -n | gzip"


@dataclass
class Cost:
    """The cost of a pipeline."""

    wall_s: float
    processor_s: float
    peak_mb: float
    """The largest resident set of any of its processes."""


def timed(command: str) -> Cost:
    """Runs a shell pipeline to its end."""
    began = time.monotonic()
    process = subprocess.Popen(["bash", "-o", "pipefail", "-c", command], stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    wall = time.monotonic() - began
    if status:
        sys.exit(f"failed: {command}")
    return Cost(wall, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / 1e6)


def make(iosonar: Path, directory: Path, requests: int) -> tuple[Path, Path]:
    """The same trace as blktrace's binary file and as blkparse's text."""
    load = directory / f"trace-{requests}.load.parquet"
    binary = directory / f"trace-{requests}.blktrace.0"
    text = directory / f"trace-{requests}.blkparse"
    if not load.exists():
        repeated(iosonar, requests, load)
    for output in (binary, text):
        if not output.exists():
            sh(iosonar, "convert", load, output)
    return binary, text


def compare(iosonar: Path, directory: Path, requests: int, rounds: int) -> None:
    """Measures and prints."""
    binary, text = make(iosonar, directory, requests)
    match, out = directory / "match.awk", directory / "out"
    match.write_text(MATCH)
    # blkparse reads NAME.blktrace.0 if it is given NAME.
    fields = f"blkparse -q -i {str(binary).removesuffix('.blktrace.0')} -f '{FORMAT}'"
    awks = [awk for awk in AWKS if shutil.which(awk)]
    print(
        "| trace | how | wall-clock | processor | largest process | speed-up over each of the others, median of rounds |"
    )
    print("|---|---|---|---|---|---|")
    for trace in (binary, text):
        ways = {}
        for awk in awks:
            rows = f"{fields} | {awk} {FIELDS} -f {match}" if trace == binary else f"{awk} {TEXT} -f {match} {text}"
            ways[f"{awk}: rows"] = f"{rows} > {out}.load"
            ways[f"{awk}: load, sorted and compressed"] = f"{rows} | {SORTED} > {out}.load.gz"
        peers = len(ways)
        for ending in ("load", "load.gz", "load.parquet"):
            ways[f"iosonar: .{ending}"] = f"{iosonar} convert --overwrite --action Q {trace} {out}.{ending}"
        costs = [{how: timed(command) for how, command in ways.items()} for _ in range(rounds)]
        what = "blktrace's binary file" if trace == binary else "blkparse's text"
        for index, how in enumerate(ways):
            wall = statistics.median(cost[how].wall_s for cost in costs)
            processor = statistics.median(cost[how].processor_s for cost in costs)
            peak = max(cost[how].peak_mb for cost in costs)
            faster = [
                statistics.median(cost[slow].wall_s / cost[how].wall_s for cost in costs) for slow in list(ways)[:peers]
            ]
            factors = ", ".join(f"{factor:.1f}" for factor in faster) if index >= peers else ""
            size = f"{what}, {trace.stat().st_size / 1e6:.0f} MB"
            print(f"| {size} | {how} | {wall:.2f} s | {processor:.2f} s | {peak:.0f} MB | {factors} |")
    for left in directory.glob("out.*"):
        left.unlink()


if __name__ == "__main__":
    compare_rounds(__doc__, 1_000_000, 3, compare)
