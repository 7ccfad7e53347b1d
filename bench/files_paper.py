#!/usr/bin/env python3
"""Repeats the experiments of a paper about the accuracy of trace replay, on a workload of its own.

    bench/files_paper.py [--rounds 3] [--seconds 4] [--trace FILE] [--iosonar PATH] [--json FILE]

The paper: T. E. Pereira, L. Sampaio, F. V. Brasileiro, "On the accuracy of trace replay methods for file system
evaluation": figures 6 to 10 and table III. The workload has bursts of calls by eight threads of which two make most; it is recorded with eBPF on a directory in
memory and on ext4, and replayed with each order and timing in a directory that is prepared anew. Each statement of the paper
is printed with its numbers, confirmed or contradicted. Needs root.
"""

import json
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as pq
from common import directory, keep, options, sh

ORDERS = ("conservative", "fs", "fs-dispatched")
GRAPHS = ("conservative", "fs")  # fs-dispatched has the graph of fs.
TIMINGS = ("exact", "asap")
EXTRA_US = (0, 10, 50, 100, 500, 1000)
WINDOW_MS = 50
SHARES = (10, 50, 90, 99)

WORKLOAD = r"""
import os, random, sys, threading, time
top, seconds = sys.argv[1], float(sys.argv[2])
# Two threads make most of the calls.
WEIGHTS = (0.45, 0.3, 0.1, 0.05, 0.04, 0.03, 0.02, 0.01)
def work(me):
    rng = random.Random(me)
    os.makedirs(f"{top}/d{me}", exist_ok=True)
    own = [os.open(f"{top}/shared{n}", os.O_RDWR) for n in range(4)]
    end = time.monotonic() + seconds
    number = 0
    while time.monotonic() < end:
        # A burst, then a pause that makes the share of this thread.
        for _ in range(rng.randint(5, 60)):
            what = rng.random()
            if what < 0.5:
                os.pread(rng.choice(own), 4096, rng.randrange(1 << 20) & ~4095)
            elif what < 0.7:
                os.pwrite(rng.choice(own), b"x" * 2048, rng.randrange(1 << 20))
            elif what < 0.85:
                os.stat(f"{top}/shared{rng.randrange(4)}")
            elif what < 0.97:
                number += 1
                name = f"{top}/d{me}/f{number % 20}"
                fd = os.open(name, os.O_CREAT | os.O_RDWR)
                os.write(fd, b"y" * 4096)
                os.close(fd)
                if number % 3 == 0:
                    os.rename(name, name + ".moved")
            else:
                os.fsync(own[0])
        time.sleep(rng.expovariate(1) * 0.05 / (8 * WEIGHTS[me]))
threads = [threading.Thread(target=work, args=(me,)) for me in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""


@contextmanager
def ext4(place: Path) -> Iterator[Path]:
    """A directory on a new ext4 over a loop device."""
    image, at = place / "disk", place / "ext4"
    with image.open("wb") as f:
        f.truncate(1 << 30)
    at.mkdir()
    sh("mkfs.ext4", "-q", "-F", image)
    sh("mount", "-o", "loop", image, at)
    try:
        yield at
    finally:
        sh("umount", at)


def record(iosonar: str, work: Path, trace: Path, seconds: float) -> None:
    work.mkdir()
    for number in range(4):
        (work / f"shared{number}").write_bytes(bytes(1 << 20))
    command = [sys.executable, "-S", "-c", WORKLOAD, work, seconds]
    sh(iosonar, "files", "record", "--with", "ebpf", "--tree", work, "--output", trace, "--", *command)


class Replays:
    """Replays of a trace, each in a directory that is prepared anew."""

    def __init__(self, iosonar: str, trace: Path, below: Path) -> None:
        self.iosonar, self.trace, self.below = iosonar, trace, below

    def run(self, *more: object) -> tuple[dict, Path]:
        root, output = self.below / "root", self.below / "r.calls-run.parquet"
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir()
        sh(self.iosonar, "files", "prepare", self.trace, "--root", root)
        words = [
            self.iosonar,
            "files",
            "replay",
            self.trace,
            "--root",
            root,
            "--output",
            output,
            "--overwrite",
            "--json",
        ]
        done = subprocess.run([*map(str, words), *map(str, more)], capture_output=True, text=True, check=False)
        if done.returncode not in (0, 4):
            raise SystemExit(f"{done.args} ended with {done.returncode}: {done.stderr}")
        return json.loads(done.stdout), output


def percentiles(values: list[float]) -> list[float]:
    values = sorted(values)
    return [values[min(len(values) * share // 100, len(values) - 1)] for share in SHARES] if values else []


def issued(output: Path) -> list[dict]:
    columns = ["issued_ns", "completed_ns", "scheduled_ns", "expected_duration_ns", "gap_ns", "delay_reason"]
    return [row for row in pq.read_table(output, columns=columns).to_pylist() if row["issued_ns"] is not None]


def load(begins: list[int]) -> tuple[float, float, int, float]:
    """Mean, median, maximum and coefficient of variation of the calls in windows of time."""
    first = min(begins)
    windows = [0] * ((max(begins) - first) // (WINDOW_MS * 1_000_000) + 1)
    for begin in begins:
        windows[(begin - first) // (WINDOW_MS * 1_000_000)] += 1
    mean = statistics.mean(windows)
    return mean, statistics.median(windows), max(windows), statistics.pstdev(windows) / mean


def by_concurrency(rows: list[dict]) -> dict[int, tuple[int, float]]:
    """How many calls began while that many others were being executed, and their mean response time in µs."""
    events = sorted(
        event
        for row in rows
        for event in ((row["issued_ns"], 1, row["completed_ns"] - row["issued_ns"]), (row["completed_ns"], 0, 0))
    )
    running, found = 0, {}
    for _, is_begin, took in events:
        if is_begin:
            found.setdefault(running, []).append(took / 1e3)
        running += 1 if is_begin else -1
    return {number: (len(each), statistics.mean(each)) for number, each in sorted(found.items())}


def outdegrees(iosonar: str, trace: Path, order: str) -> tuple[float, int]:
    """Median and maximum of the number of calls that directly follow a call."""
    summary = json.loads(sh(iosonar, "files", "order", trace, "--order", order, "--format", "json"))["summary"]
    return summary["outdegree_median"], summary["outdegree_max"]


def row(*cells: object) -> None:
    print("| " + " | ".join(f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in cells) + " |")


def head(*cells: str) -> None:
    print()
    row(*cells)
    print("|" + "---|" * len(cells))


def statement(text: str, is_true: bool, numbers: str) -> None:
    print(f"- {text}: **{'confirmed' if is_true else 'contradicted'}** ({numbers})")


def measure(args, name: str, replays: Replays, results: dict) -> None:
    print(f"\n### {name}")
    found = {}
    for _ in range(args.rounds):
        for order in ORDERS:
            for timing in TIMINGS:
                statistics_, output = replays.run("--order", order, "--timing", timing)
                found.setdefault((order, timing), []).append((statistics_, issued(output)))
    runs = {key: sorted(each, key=lambda one: one[0]["elapsed_s"])[len(each) // 2] for key, each in found.items()}
    original_s = next(iter(runs.values()))[0]["original_s"]

    print("\nDuration, response times (figure 9) and the most calls at the same time:")
    head(
        "order", "timing", "duration", "of the original", "response p50 µs", "p90", "p99", "most at once", "mismatches"
    )
    whole = next(iter(runs.values()))[1]
    original = percentiles([each["expected_duration_ns"] / 1e3 for each in whole if each["expected_duration_ns"]])
    row("original", "", original_s, 1.0, *original[1:2], *original[2:], "", "")
    for (order, timing), (one, rows) in runs.items():
        response = percentiles([(each["completed_ns"] - each["issued_ns"]) / 1e3 for each in rows])
        share = one["elapsed_s"] / original_s
        row(order, timing, one["elapsed_s"], share, *response[1:], one["max_in_flight"], one["mismatches"])

    print(f"\nCalls in {WINDOW_MS} ms (figure 8):")
    head("order", "timing", "mean", "median", "maximum", "standard deviation by mean")
    row("original", "", *load(pq.read_table(replays.trace, columns=["begin_ns"])["begin_ns"].to_pylist()))
    for (order, timing), (_, rows) in runs.items():
        row(order, timing, *load([each["issued_ns"] for each in rows]))

    print("\nCompute time error E / (B₂ − E₁) in percent (figure 6), calls that were not held back:")
    head("order", "timing", *(f"p{share}" for share in SHARES), "below 10 %")
    for order in ORDERS:
        one, rows = runs[order, "exact"]
        ratio = [
            100 * (each["issued_ns"] - each["scheduled_ns"]) / each["gap_ns"]
            for each in rows
            if each["delay_reason"] == "none" and (each["gap_ns"] or 0) > 0
        ]
        below = one["compute_time_error_below_10_pct"] or 0.0
        row(order, "exact", *percentiles(ratio), below)

    print("\nSensitivity to an added delay (figure 7), conservative and exact:")
    head("added µs", "duration of the original's", "delay p50 µs", "response p50 µs")
    delays = {}
    for extra in EXTRA_US:
        one, _ = replays.run("--extra-delay", f"{extra}us")
        delays[extra] = one["elapsed_s"] / one["original_s"]
        row(extra, delays[extra], (one["delay_not_held_back_us"] or {}).get("p50", 0.0), one["latency_us"]["p50"])

    print("\nMean response time in µs by the number of other calls at the same time, calls in brackets (figure 10):")
    head("order", "timing", *(str(number) for number in range(6)))
    concurrency = {}
    for (order, timing), (_, rows) in runs.items():
        each = concurrency[order, timing] = by_concurrency(rows)
        row(order, timing, *(f"{each[n][1]:.1f} ({each[n][0]})" if n in each else "" for n in range(6)))

    print("\nOutdegree of the graph (table III):")
    head("trace", "order", "median", "maximum")
    degrees = {}
    for trace in (replays.trace, *args.trace):
        for order in GRAPHS:
            median, maximum = degrees[trace.name, order] = outdegrees(args.iosonar, trace, order)
            row(trace.name, order, median, maximum)

    share = {key: one["elapsed_s"] / original_s for key, (one, _) in runs.items()}
    p50 = {key: one["latency_us"]["p50"] for key, (one, _) in runs.items()}
    print("\nThe paper's statements:\n")
    exact = share["conservative", "exact"]
    statement("conservative and exact takes as long as the original", abs(exact - 1) < 0.01, f"{100 * exact:.2f} %")
    asap, fs = share["conservative", "asap"], share["fs", "asap"]
    statement("conservative and asap takes a small part of it", asap < 0.5, f"{100 * asap:.1f} %")
    statement(
        "fs and asap may take longer than conservative and asap", fs > asap, f"{100 * fs:.1f} % and {100 * asap:.1f} %"
    )
    fs_max, other = (degrees[replays.trace.name, order][1] for order in ("fs", "conservative"))
    statement("fs's largest outdegree is far above conservative's", fs_max > 3 * other, f"{fs_max} and {other}")
    by_order = max(abs(p50["fs", timing] / p50["conservative", timing] - 1) for timing in TIMINGS)
    by_timing = abs(p50["conservative", "asap"] / p50["conservative", "exact"] - 1)
    changes = f"median response: {100 * by_order:.0f} % by order, {100 * by_timing:.0f} % by timing"
    statement("the order changes response times more than the timing does", by_order > by_timing, changes)
    results[name] = {
        "share": {" ".join(key): value for key, value in share.items()},
        "statistics": {" ".join(key): one for key, (one, _) in runs.items()},
        "delays": delays,
        "outdegrees": {" ".join(key): value for key, value in degrees.items()},
        "concurrency": {" ".join(key): value for key, value in concurrency.items()},
    }


def main() -> None:
    p = options(__doc__)
    p.add_argument("--rounds", type=int, default=3), p.add_argument("--seconds", type=float, default=4)
    p.add_argument("--trace", type=Path, action="append", default=[], help="another trace for table III")
    args = p.parse_args()
    results: dict[str, dict] = {}
    with directory() as place, ext4(place) as disk:
        for name, below in (("tmpfs", place / "memory"), ("ext4", disk / "work")):
            below.mkdir()
            trace = place / f"{name}.calls.parquet"
            record(args.iosonar, below / "work", trace, args.seconds)
            measure(args, name, Replays(args.iosonar, trace, below), results)
    keep(args, results)


if __name__ == "__main__":
    main()
