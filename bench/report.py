#!/usr/bin/env python3
"""Measures the cost of reports: all pictures of synthetic runs of 10 thousand to 100 million requests, the page of the
smallest, and an SQL query.

    bench/report.py [--rows 10000,10000000] [--processors 0,1] [--memory 2GiB] [--directory /tmp/made] [--report PROGRAM]
        [--sql PROGRAM]

bench/make_result.py makes the runs; they are kept in the directory. Times are those from start to end of the program.
Memory is the peak of the program and its drawing processes together, each page counted once (PSS).
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--rows", default="10000,10000000"), p.add_argument("--memory", default="2GiB")
    p.add_argument("--processors", default="0,1"), p.add_argument("--directory", type=Path, default=Path("/tmp/made"))
    p.add_argument("--report", default="iosonar-report"), p.add_argument("--page-up-to", type=int, default=1_000_000)
    p.add_argument("--sql", default="iosonar-sql")
    args = p.parse_args()
    os.sched_setaffinity(0, {int(number) for number in args.processors.split(",")})
    args.directory.mkdir(exist_ok=True)
    print("| requests | what | files | wall, s | processor, s | most memory, MiB |\n|---|---|---|---|---|---|")
    for rows in map(int, args.rows.split(",")):
        run = args.directory / f"{rows}.replay.parquet"
        if not run.exists():
            subprocess.run([sys.executable, HERE / "make_result.py", run, str(rows)], check=True)
        for what in ("png", "html") if rows <= args.page_up_to else ("png",):
            with tempfile.TemporaryDirectory() as out:
                words = [*args.report.split(), run, "--static", "--dynamic", "--format", what, "--memory", args.memory]
                wall, processor, most = measured([*words, "--out", out])
                files = len(list(Path(out).glob(f"*.{what}")))
                print(f"| {rows:,} | {what} | {files} | {wall:.1f} | {processor:.1f} | {most:.0f} |", flush=True)
        wall, processor, most = measured([*args.sql.split(), run, "SELECT 1"])
        print(f"| {rows:,} | sql | | {wall:.1f} | {processor:.1f} | {most:.0f} |", flush=True)


def measured(words: list) -> tuple[float, float, float]:
    """Wall-clock and processor seconds, and peak memory in MiB."""
    before, start, most = os.times(), time.monotonic(), 0
    program = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    while program.poll() is None:
        most = max(most, sum(map(pss_kib, process_tree(program.pid))))
        time.sleep(0.1)
    wall, after = time.monotonic() - start, os.times()
    if program.returncode:
        raise SystemExit(f"{words} ended with {program.returncode}")
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    return wall, spent, most / 1024


def process_tree(pid: int) -> list[int]:
    """A process and its descendants."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        children = []
    return [pid, *(each for child in children for each in process_tree(int(child)))]


def pss_kib(pid: int) -> int:
    try:
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        return next(int(line.split()[1]) for line in rollup if line.startswith("Pss:"))
    except (OSError, StopIteration):
        return 0


if __name__ == "__main__":
    main()
