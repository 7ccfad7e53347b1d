#!/usr/bin/env python3
"""Measures the overhead of `iosonar files record`: a loop of calls, bare, recorded by eBPF, by eBPF with every other process
(`--all`), and by strace.

Run as root on an otherwise idle machine: bench/files_record.py --iosonar target/release/iosonar
The loop does a fixed amount of work between its calls, so that it makes 20,000 or 100,000 calls/s when it is not recorded, or
as many as it can. The ways alternate within each round, so that drift affects all of them. Prints a table of medians
over all rounds for bench/results/files-notes.md.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import resource
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from common import directory, keep, sh

WAYS = ("bare", "ebpf", "all", "strace")
PR_SET_CHILD_SUBREAPER = 36


@dataclass
class Run:
    """One run of the loop."""

    calls: int
    wall: float
    """Of the loop, in seconds."""
    processor: float
    """Of the loop, in seconds."""
    recorder: float
    """Processor time of the recorder, its start included, in seconds."""
    rows: int
    """Calls in the table."""


def children_seconds() -> float:
    """Processor time of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def reap() -> None:
    """Waits for processes that their parents left behind, so that their time counts: strace detaches itself."""
    while True:
        try:
            os.wait()
        except ChildProcessError:
            return


def run(way: str, iosonar: Path, loop: list[str], place: Path) -> Run:
    """Runs the loop in one of the ways."""
    trace = place / f"{way}.calls.parquet"
    for table in (trace, place / f"{way}.tree.parquet"):
        table.unlink(missing_ok=True)
    method = ["--with", "ebpf", "--all"] if way == "all" else ["--with", way]
    record = [str(iosonar), "files", "record", *method, "--output", str(trace), "--"]
    before = children_seconds()
    done = subprocess.run([*(record if way != "bare" else []), *loop], check=True, capture_output=True, text=True)
    reap()
    calls, wall, processor = done.stdout.split()
    rows = 0
    for line in done.stderr.splitlines():
        if line.startswith(str(trace)):
            rows = int(line.split(":")[1].split()[0].replace(",", ""))
        elif "lost" in line:
            print(line, file=sys.stderr)
    recorder = children_seconds() - before - float(processor)
    return Run(int(calls), float(wall), float(processor), recorder, rows)


def calibrate(program: Path, file: Path, rate: float) -> int:
    """The work before each call that makes `rate` calls/s."""

    def seconds(groups: int, work: int) -> float:
        runs = [sh(program, file, groups, work).split() for _ in range(5)]
        return min(float(wall) / int(calls) for calls, wall, _ in runs)

    if not rate:
        return 0
    without, with_work = seconds(2000, 0), seconds(200, 10_000)
    return max(0, round((1 / rate - without) / ((with_work - without) / 10_000)))


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--iosonar", type=Path, default=Path("iosonar"))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--rates", type=float, nargs="*", default=[20_000, 100_000, 0], help="calls/s; 0 is flat out")
    parser.add_argument("--ways", nargs="*", choices=WAYS, default=WAYS, help="beside bare, which is always measured")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    ways = tuple(way for way in WAYS if way == "bare" or way in arguments.ways)

    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    print(
        "| calls/s | way | calls/s seen | wall time | program's processor time each | recorder's each | rows missing |"
    )
    print("|---|---|---|---|---|---|---|")
    results = {}
    with directory() as place:
        program, file = place / "calls_loop", place / "data"
        sh("cc", "-O2", "-o", program, Path(__file__).with_name("calls_loop.c"))
        for rate in arguments.rates:
            work = calibrate(program, file, rate)
            flat = rate if rate else 1e6
            loop = [str(program), str(file), str(round(flat * arguments.seconds / 16)), str(work)]
            runs: dict[str, list[Run]] = {way: [] for way in ways}
            for number in range(arguments.rounds):
                turn = number % len(ways)
                for way in ways[turn:] + ways[:turn]:
                    runs[way].append(run(way, arguments.iosonar, loop, place))
            for way in ways:
                print(row(rate, way, runs), flush=True)
            results[str(rate)] = {way: [vars(one) for one in runs[way]] for way in ways}
    keep(arguments, results)


def row(rate: float, way: str, runs: dict[str, list[Run]]) -> str:
    """A row of the table: medians, and the median ratio to the bare loop of the same round."""
    own = runs[way]
    ratio = statistics.median(r.wall / b.wall for r, b in zip(own, runs["bare"], strict=True))
    each = statistics.median((r.processor - b.processor) / r.calls for r, b in zip(own, runs["bare"], strict=True))
    seen = statistics.median(r.calls / r.wall for r in own)
    asked = f"{rate:,.0f}" if rate else "flat out"
    if way == "bare":
        return f"| {asked} | {way} | {seen:,.0f} | 1 | | | |"
    recorder = statistics.median(r.recorder / r.calls for r in own)
    missing = max(max(0, r.calls - r.rows) for r in own)
    return f"| {asked} | {way} | {seen:,.0f} | {ratio:.3f} | {each * 1e6:+.2f} µs | {recorder * 1e6:.2f} µs | {missing:,} |"


if __name__ == "__main__":
    main()
