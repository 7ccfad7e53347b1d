#!/usr/bin/env python3
"""Measures the overhead of recording: fio on a loop device in memory, with and without a recording.

Run as root on an otherwise idle machine: bench/record_overhead.py target/release/iosonar
Runs come in pairs, with and without a recording, in alternating order, so that drift affects both. Prints a table of
medians over all pairs for bench/results/recording-notes.md.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

WORK = {
    "one at a time (4 KiB reads, psync)": ["--ioengine=psync", "--rw=randread", "--bs=4k"],
    "32 in flight (4 KiB reads, io_uring)": ["--ioengine=io_uring", "--iodepth=32", "--rw=randread", "--bs=4k"],
    "32 in flight (4 KiB writes, io_uring)": ["--ioengine=io_uring", "--iodepth=32", "--rw=randwrite", "--bs=4k"],
}
DEVICE_BYTES = 1 << 30


@dataclass
class Measured:
    """One run of fio."""

    iops: float
    mean_ns: float
    """Mean completion latency."""
    p99_ns: float


def fio(device: str, work: list[str], seconds: float, prefix: list[str]) -> Measured:
    """Runs fio on the device for `seconds`, as the command of `prefix`."""
    with tempfile.NamedTemporaryFile() as report:
        command = [*prefix, "fio", "--name=x", f"--filename={device}", "--direct=1", "--time_based", *work]
        command += [f"--runtime={seconds}", "--output-format=json", f"--output={report.name}"]
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
        job = json.loads(Path(report.name).read_text())["jobs"][0]
    side = job["read"] if job["read"]["total_ios"] else job["write"]
    return Measured(side["iops"], side["clat_ns"]["mean"], side["clat_ns"]["percentile"]["99.000000"])


def children_seconds() -> float:
    """Processor time of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("iosonar", type=Path)
    parser.add_argument("--pairs", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=2)
    arguments = parser.parse_args()

    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        image, output = Path(directory, "image"), Path(directory, "out.load.parquet")
        image.write_bytes(b"\xa5" * DEVICE_BYTES)
        losetup = ["losetup", "--find", "--show", "--direct-io=on", str(image)]
        device = subprocess.run(losetup, check=True, capture_output=True, text=True).stdout.strip()
        try:
            print("| work | level | without | with | IOPS | mean latency | p99 latency | processor time each |")
            print("|---|---|---|---|---|---|---|---|")
            for name, work in WORK.items():
                for level in ("Q", "D"):
                    record = [str(arguments.iosonar), "record", "--device", device, "--level", level]
                    record += ["--output", str(output), "--"]
                    without: list[Measured] = []
                    recorded: list[Measured] = []
                    extra: list[float] = []
                    for pair in range(arguments.pairs):
                        used = {}
                        for on in (True, False) if pair % 2 else (False, True):
                            before = children_seconds()
                            run = fio(device, work, arguments.seconds, record if on else [])
                            used[on] = (children_seconds() - before) / (run.iops * arguments.seconds)
                            (recorded if on else without).append(run)
                            output.unlink(missing_ok=True)
                        extra.append(used[True] - used[False])
                    print(row(name, level, without, recorded, extra), flush=True)
        finally:
            subprocess.run(["losetup", "--detach", device], check=True)


def row(name: str, level: str, without: list[Measured], recorded: list[Measured], extra: list[float]) -> str:
    """A row of the table: medians, and the median change over all pairs."""
    iops = statistics.median(w / o - 1 for w, o in ((r.iops, b.iops) for r, b in zip(recorded, without, strict=True)))
    mean = statistics.median(r.mean_ns - b.mean_ns for r, b in zip(recorded, without, strict=True))
    p99 = statistics.median(r.p99_ns - b.p99_ns for r, b in zip(recorded, without, strict=True))
    before, after = (statistics.median(x.iops for x in runs) for runs in (without, recorded))
    return (
        f"| {name} | {level} | {before:,.0f}/s | {after:,.0f}/s | {iops:+.1%} | {mean / 1e3:+.2f} µs "
        f"| {p99 / 1e3:+.1f} µs | {statistics.median(extra) * 1e6:+.2f} µs |"
    )


if __name__ == "__main__":
    main()
