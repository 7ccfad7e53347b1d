#!/usr/bin/env python3
"""Asks the installed fio how many requests jobs make, and prints the table that the converter is tested with.

    bench/fio_counts.py > crates/jobfiles/src/fio/counts.tsv

Each row has the options of a job, and of forty runs of it the mean number of requests, its standard deviation, and the mean
number of bytes. The files are small and in /dev/shm. Needs neither root nor iosonar.
"""

import itertools
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

RUNS = 40

SIZES = (
    "bs=4k",
    "bs=12k",
    "bssplit=4k/50:16k/50",
    "bsrange=4k-64k",
    "bssplit=4k/10:64Ki/",
    "bssplit=64k/50:4k/25:8k/25",
)
"""One size, and several."""

PLACES = (
    "size=100000",
    "size=100000 nrfiles=3",
    "size=1m io_size=3000001",
    "size=100000 io_size=1m nrfiles=2",
    "size=1m loops=3",
)

BOUNDS = (
    "bs=4k size=12345 nrfiles=2",
    "bs=8k size=123456 nrfiles=5",
    "bs=3k size=100000 nrfiles=4 io_size=500000",
    "bsrange=4k-12k bs=4k size=1m",
    "bs=64k bsrange=4k-12k size=1m",
    "bs=64k bssplit=4k/50:8k/50 size=1m",
    "bssplit=4k/50:10k/50 size=1m",
    "bssplit=4k/50:64k/50 bsrange=4k-16k size=1m",
    "bsrange=4k-16k bssplit=4k/50:64k/50 size=1m",
    "bssplit=8k/50:64k/50 bsrange=8k-8k size=1m",
    "bsrange=4k-10k size=1m",
    "bsrange=3k-64k size=1m",
)
"""Sizes that bound each other, and odd ones. (fio 3.33 never ends if no size of bssplit fits in the last block of bsrange.)"""

RANDOM = (
    "bssplit=4k/50:16k/50 size=1m io_size=9m rw=randread percentage_random=30",
    "bssplit=4k/50:16k/50 size=1m rw=randread norandommap percentage_random=30",
    "bssplit=4k/50:16k/50 size=1m rw=randread:8",
    "bssplit=4k/10:64Ki/ size=100000 io_size=3m rw=randread norandommap",
    "bssplit=4k/50:16k/50 size=1m rw=randread ba=16k",
    "bsrange=4k-64k size=1m rw=randread norandommap nrfiles=3",
    "bsrange=4k-64k size=1m rw=randrw nrfiles=3 file_service_type=random",
    "bssplit=4k/50:16k/50 size=1m rw=randread random_distribution=zipf:1.2",
)

PASSES = (
    "bs=4k size=100000 filesize=128k rw=read",
    "bs=4k size=100000 filesize=128k rw=randread",
    "bs=4k size=64k filesize=128k loops=3 rw=read",
    "bs=12k size=100000 filesize=256k io_size=500000 loops=2 rw=write",
    "bs=4k size=512k filesize=1m nrfiles=2 rw=randread",
    "bs=4k filesize=64k offset=4k rw=read",
    "bs=4k size=64k offset=4k rw=read",
    "bs=4k size=128k number_ios=10 loops=3 rw=read",
    "bs=4k size=64k io_size=100k loops=3 rw=read",
    "bs=4k size=64k io_size=32k loops=3 rw=randread",
    "bs=8k size=77777 filesize=128k io_size=500000 loops=2 norandommap rw=randread",
    "bs=4k,64k size=64k io_size=120k rw=read",
    "bs=4k size=100000 rw=rw",
    "bs=4k size=100000 rw=randrw",
    "bs=4k size=20k nrfiles=5 rw=rw",
    "bs=4k size=20k nrfiles=5 loops=3 rw=rw",
    "bs=4k size=96000 rw=write:8k",
    "bs=4k size=96k rw=write:8k",
    "bs=4k size=64k rw=write:2k",
    "bs=4k size=64k rw=read:12k loops=2",
    "bs=4k size=100000 norandommap rw=randread",
    "bs=4k size=96k norandommap random_generator=lfsr rw=randread",
    "bs=4k size=64k ba=8k io_size=300000 loops=2 rw=randread",
    "bs=4k size=64k thinktime=1 thinktime_blocks=5 rw=read",
    "bs=4k size=77777 rate_iops=20000 rw=rw",
    "bs=4k filename=x:y size=64k io_size=40k rw=write",
)
"""What ends a pass over the files, and the job."""


def rows() -> Iterator[str]:
    for sizes, place, way in itertools.product(SIZES, PLACES, ("read", "randread")):
        yield f"{sizes} {place} rw={way}"
    for options, way in itertools.product(BOUNDS, ("read", "randread")):
        # fio's map is used up a little earlier if the largest size is not a multiple of the least.
        if (options, way) != ("bsrange=4k-10k size=1m", "randread"):
            yield f"{options} rw={way}"
    yield from RANDOM
    yield from PASSES


def counts(options: str, directory: Path) -> list[tuple[int, int]]:
    """Requests and bytes of each run."""
    job = directory / "job.fio"
    lines = ["[a]", "ioengine=psync", "randrepeat=0", f"directory={directory}", f"numjobs={RUNS}", *options.split()]
    job.write_text("\n".join([*lines, ""]))
    done = subprocess.run(["fio", "--output-format=json", job], check=True, capture_output=True, text=True)
    jobs = json.loads(done.stdout[done.stdout.index("{") :])["jobs"]
    found = [
        tuple(sum(each[way][key] for way in ("read", "write")) for key in ("total_ios", "io_bytes")) for each in jobs
    ]
    for path in directory.iterdir():
        path.unlink()
    return [(requests, size) for requests, size in found]


def main() -> int:
    version = subprocess.run(["fio", "--version"], check=True, capture_output=True, text=True).stdout.strip()
    print(f"# What {version} makes of jobs: options, requests (mean, deviation), bytes (mean). By bench/fio_counts.py.")
    with tempfile.TemporaryDirectory(prefix="iosonar-fio-", dir="/dev/shm") as directory:
        for options in rows():
            found = counts(options, Path(directory))
            requests, sizes = zip(*found, strict=True)
            print(
                options,
                f"{statistics.mean(requests):.2f}",
                f"{statistics.stdev(requests):.2f}",
                f"{statistics.mean(sizes):.0f}",
                sep="\t",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
