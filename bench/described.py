#!/usr/bin/env python3
"""Measures how fast traces of other formats are read: by description, and by the readers that are built in.

bench/described.py --iosonar target/release/iosonar [--requests 2000000] [--rounds 5] [--directory DIR]

The requests are those of the natural load of PostgreSQL, repeated until there are enough, written as text of columns, as
lines for a pattern and as binary records. `iosonar info` reads a file and computes the totals of `info`; `convert` also writes
Parquet. The processor time of one command counts, so that the number is that of a core, whatever threads it has. Rounds
alternate between all of them.
"""

from __future__ import annotations

import os
import statistics
import struct
import subprocess
import sys
import time
from pathlib import Path

from common import compare_rounds, repeated, sh

COLUMNS = "at=1:us op=2(R=read,W=write) offset=3 size=4 latency=5:us device=6"
PATTERN = r"""
pattern = '(?<at>[0-9]+),(?<op>[RW]),(?<offset>[0-9]+),(?<size>[0-9]+),(?<latency>[0-9]+),(?<device>[0-9]+)'
at = { unit = "us" }
latency = { unit = "us" }
"""
RECORDS = """
record = 32
at = { byte = 0, width = 8, unit = "us" }
offset = { byte = 8, width = 8 }
size = { byte = 16, width = 4 }
latency = { byte = 20, width = 4, unit = "us" }
op = { byte = 24, width = 4, map = { 0 = "read", 1 = "write" } }
device = { byte = 28, width = 4 }
"""


def requests(iosonar: Path, directory: Path, count: int) -> list[tuple[int, bool, int, int]]:
    """Time in microseconds, whether it writes, position and length in bytes."""
    spc = directory / "load.spc"
    edited = directory / "load.load.parquet"
    repeated(iosonar, count, edited)
    sh(iosonar, "convert", edited, spc)
    rows = []
    with spc.open() as lines:
        for line in lines:
            _, sector, size, op, at = line.split(",")
            rows.append((int(float(at) * 1e6), op == "W", int(sector) * 512, int(size)))
    return rows


def write_files(directory: Path, rows: list[tuple[int, bool, int, int]]) -> dict[str, tuple[Path, list[str]]]:
    """The files, each with the options that read it."""
    text, alibaba, binary = directory / "columns.csv", directory / "alibaba.csv", directory / "records.bin"
    pattern, records = directory / "pattern.toml", directory / "records.toml"
    epoch = 1577808000000000
    with text.open("w") as one, alibaba.open("w") as other, binary.open("wb") as packed:
        for index, (at, writes, offset, size) in enumerate(rows):
            letter, latency = "W" if writes else "R", 100 + index % 1000
            one.write(f"{at},{letter},{offset},{size},{latency},0\n")
            other.write(f"0,{letter},{offset},{size},{epoch + at}\n")
            packed.write(struct.pack("<QQIIII", at, offset, size, latency, writes, 0))
    pattern.write_text(PATTERN)
    records.write_text(RECORDS)
    return {
        "columns by number": (text, ["--columns", COLUMNS]),
        "a pattern": (text, ["--description", str(pattern)]),
        "binary records": (binary, ["--description", str(records)]),
        "built in: alibaba": (alibaba, []),
    }


def processor_s(command: list[str]) -> float:
    """Runs a command; the processor time that it took."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"failed: {' '.join(command)}")
    return used.ru_utime + used.ru_stime


def compare(iosonar: Path, directory: Path, count: int, rounds: int) -> None:
    """Measures and prints."""
    files = write_files(directory, requests(iosonar, directory, count))
    out = directory / "out.load.parquet"
    costs: dict[tuple[str, str], list[float]] = {}
    for _ in range(rounds):
        for name, (path, options) in files.items():
            for command, words in (("info", [path]), ("convert", ["--overwrite", path, out])):
                cost = processor_s([str(iosonar), command, *map(str, words), *options])
                costs.setdefault((name, command), []).append(cost)
    print(f"{time.strftime('%Y-%m-%d')}, {rounds} rounds, median processor time\n")
    print("| what is read | file | info | convert |")
    print("|---|---|---|---|")
    for name, (path, _) in files.items():
        mb = path.stat().st_size / 1e6
        speeds = [mb / statistics.median(costs[name, command]) for command in ("info", "convert")]
        print(f"| {name} | {mb:.0f} MB | {speeds[0]:.0f} MB/s | {speeds[1]:.0f} MB/s |")


if __name__ == "__main__":
    compare_rounds(__doc__, 2_000_000, 5, compare)
