#!/usr/bin/env python3
"""Measures what checkpoints of the result cost a replay of calls to files as fast as possible.

    bench/files_checkpoints.py --iosonar PATH --without PATH [--rounds 7] [--calls 4000000]

`--without` names a build that makes no checkpoints: MIN_INTERVAL of crates/trace/src/io/checkpoint.rs is a day. Both take turns,
each first in every other round, with reads of 512 bytes from a file of 4 MiB in memory. Processor time is that of the whole
program; a machine with other work changes it less than the rate.
"""

import json
import os
import random
import statistics
import subprocess
import sys
from pathlib import Path

from common import directory, keep, options, sh

BLOCK, BLOCKS = 512, 8192


def write_trace(path: Path, calls: int) -> None:
    """Strace text: one thread reads at random offsets, a microsecond apart."""
    choice = random.Random(1)
    with path.open("w") as text:
        text.write('7 1795464429.000000000 openat(AT_FDCWD, "/data", O_RDONLY) = 3 <0.000000500>\n')
        for n in range(1, calls + 1):
            seconds, ns = divmod(1000 * n, 10**9)
            at = choice.randrange(BLOCKS) * BLOCK
            text.write(f'7 {1795464429 + seconds}.{ns:09} pread64(3, ""..., {BLOCK}, {at}) = {BLOCK} <0.000000500>\n')


def replay(program: Path, place: Path) -> tuple[float, float, float]:
    """Calls per second, processor time and duration of a replay."""
    command = [program, "files", "replay", place / "t.calls.parquet", "--root", place / "root"]
    command += ["--output", place / "r.calls-run.parquet", "--overwrite", "--timing", "asap"]
    command += ["--no-verify-order", "--json"]
    process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    found = json.load(process.stdout)
    process.stdout.close()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, f"{program} exited with {process.returncode}"
    return found["calls_per_s"], usage.ru_utime + usage.ru_stime, found["elapsed_s"]


def main() -> None:
    p = options(__doc__)
    p.add_argument("--without", type=Path, required=True), p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--calls", type=int, default=4_000_000)
    args = p.parse_args()
    programs = {"with": args.iosonar, "without": args.without.resolve()}
    results: dict[str, list] = {name: [] for name in programs}
    with directory() as place:
        (place / "root").mkdir()
        (place / "root/data").write_bytes(bytes(BLOCK * BLOCKS))
        write_trace(place / "t.strace", args.calls)
        sh(args.iosonar, "convert", place / "t.strace", place / "t.calls.parquet")
        for n in range(args.rounds):
            for name in sorted(programs, reverse=n % 2 == 1):
                results[name].append(replay(programs[name], place))
            print(f"round {n + 1}:", {name: rows[-1] for name, rows in results.items()}, file=sys.stderr, flush=True)
    pairs = list(zip(results["with"], results["without"], strict=True))
    print("| checkpoints | calls/s | processor time | duration |")
    print("|---|---|---|---|")
    for name, rows in results.items():
        rate, processor, elapsed = (statistics.median(column) for column in zip(*rows, strict=True))
        print(f"| {name} | {rate:,.0f} | {processor:.2f} s | {elapsed:.1f} s |")
    for what, at in (("processor time", 1), ("duration", 2)):
        ratios = sorted(a[at] / b[at] for a, b in pairs)
        print(f"\n{what}, with / without: median {statistics.median(ratios):.3f}, {ratios[0]:.3f} to {ratios[-1]:.3f}")
    keep(args, results)


if __name__ == "__main__":
    main()
