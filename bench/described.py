#!/usr/bin/env python3
"""Measures how fast traces of other formats are read: by description, by the descriptions that come with iosonar, and by a
reader that is built in.

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


HEADINGS = {
    "hfplayer": "#DUMP_OFFSET.I,ELAPSED_USECS.D,ELAPSED_TICKS.I,CMD.S,INFLIGHT_IOS.I,TS.I,SEQID.I,LUN_SSID.I,OP.I,"
    "PHASE.I,LBA.I,NBLKS.I,LATENCY_TICKS.I,HOST_ID.I,HOST_LUN.I,LATENCY_USECS.D\n",
    "iosnoop": "STARTs ENDs COMM PID TYPE DEV BLOCK BYTES LATms\n",
    "iotrace": "device.id,device.name,file.id,file.offset,file.size,header.sid,header.timestamp,io.error,io.flush,io.fua,"
    "io.ioClass,io.latency,io.lba,io.len,io.operation,io.qd\n",
    "libcachesim-csv": "v,time,op,size,lbn\n",
    "wpa": "Line #,Disk,IO Type,Process,PID,Priority,Init Time (s),Complete Time (s),IO Time (µs),Min Offset,Size (B)\n",
}


def bundled(index: int, at: int, writes: bool, offset: int, size: int, latency: int) -> dict[str, bytes]:
    """A request in each format whose description comes with iosonar. Times are in microseconds."""
    sector, sectors, letter, word = offset // 512, size // 512, "RW"[writes], ("Read", "Write")[writes]
    seconds, end = f"{at / 1e6:.6f}", f"{(at + latency) / 1e6:.6f}"
    lines = {
        "diskmon": f"{index}\t{seconds}\t{latency / 1e6:.8f}\t0\t{word}\t{sector}\t{sectors}\r\n",
        "disksim": f"{at / 1e3:.3f} 0 {sector} {sectors} {1 - writes}\n",
        "hfplayer": f"32,{at},9000,{('RD', 'WR')[writes]},1,9000,11,6,0,0,{sector},{sectors},77,7,6,{latency}.25\n",
        "ioda": f"{at / 1e3:.3f} 0 {offset} {size} {1 - writes}\n",
        "iosnoop": f"{seconds} {end} postgres 4711 {letter} 254,0 {sector} {size} {latency / 1e3:.2f}\n",
        "iotrace": f"271581185,nvme0n1,,,,{index},{at * 1000},false,false,false,1,{latency * 1000},{sector},{sectors},{word},1\n",
        "k5cloud": f"1063,{seconds},{letter},{offset},{size}\n",
        "libcachesim-csv": f"3,{at // 1_000_000},{('28', '2a')[writes]},{size},{sector}\n",
        "mqsim": f"{at * 1000} 0 {sector} {sectors} {1 - writes}\n",
        "wpa": f"{index},0,{word},postgres (4711),4711,Normal,{seconds},{end},{latency}.000,{offset},{size}\n",
    }
    packed = {"oracle-general": struct.pack("<IQIq", at // 1_000_000, sector, size, -1)}
    return {name: line.encode() for name, line in lines.items()} | packed


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
    kept: dict[str, list[bytes]] = {}
    for index, (at, writes, offset, size) in enumerate(rows):
        for name, line in bundled(index, at, writes, offset, size, 100 + index % 1000).items():
            kept.setdefault(name, [HEADINGS[name].encode()] if name in HEADINGS else []).append(line)
    of_name = {}
    for name, lines in kept.items():
        of_name[name] = (directory / f"{name}.trace", ["--from", name])
        of_name[name][0].write_bytes(b"".join(lines))
    return {
        "columns by number": (text, ["--columns", COLUMNS]),
        "a pattern": (text, ["--description", str(pattern)]),
        "binary records": (binary, ["--description", str(records)]),
        "built in: alibaba": (alibaba, []),
        **of_name,
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
