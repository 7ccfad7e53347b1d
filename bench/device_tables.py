#!/usr/bin/env python3
"""Published tables beside simulated devices, in virtual time: response time over the working set, throughput over the depth.

The working sets are those of a blog about storage performance (SATA and SAS disks of 1 TB); the depths those of section 5.2.2
of the manual of blkreplay. Needs no device and no root. Two numbers of each disk, its response times in the smallest and in the
largest working set, determine its seek times here; all others are predictions.
"""

import json
import math
from pathlib import Path

from common import directory, keep, options, sh

SPANS = (1, 100, 1000)
"""Working sets in GB."""

DISKS = {"SATA, 7200 rpm": (7200, (5.5, 7.5, 12.5)), "SAS, 10,000 rpm": (10_000, (4.0, 4.5, 7.0))}
"""Revolutions per minute, and published mean response times in milliseconds."""

ZIPF_MS = 8.5
"""Of the SATA disk with zipf in the largest working set."""

DISK_CACHE = '[read_cache]\nsize = "64M"\nblock = "8K"\ntime = "100us"\n'

MEAN_ROOT = 8 / 15
"""Mean of the root of the distance between two uniform positions, by that of the whole."""

DEPTHS = (16, 32, 64, 128, 256, 512)
"""Threads of the manual's throughput graphs."""

COLLAPSING = """
servers = 64
[service.exponential]
mean = "5ms"
[collapse]
beyond = 128
growth = 0.01
"""


def disk(rpm: int, published: tuple[float, ...]) -> str:
    """A disk of 1000 GB with a seek of shortest + (longest - shortest) * root of the distance, without the transfer."""
    first, last = (time - 60e3 / rpm / 2 for time in (published[0], published[-1]))
    roots = [MEAN_ROOT * math.sqrt(span / SPANS[-1]) for span in (SPANS[0], SPANS[-1])]
    reach = (last - first) / (roots[1] - roots[0])
    shortest = first - reach * roots[0]
    return (
        f'size = "{SPANS[-1]}000000000"\nservers = 1\n[service.seek]\nshortest = "{shortest:.4f}ms"\n'
        f'longest = "{shortest + reach:.4f}ms"\nrpm = {rpm}\n'
    )


def mean_ms(args, place: Path, device: str, span_gb: int, positions: str = "uniform", seconds: int = 0) -> float:
    """Mean response time of random reads of 8 KiB, one at a time."""
    program, model, run = place / "reads.toml", place / "disk.toml", place / "reads.replay.parquet"
    program.write_text(
        f'name = "reads"\nabout = "Random reads"\ndevices.target = "{span_gb * 10**9 // 8192 * 8192}B"\n[[stream]]\n'
        f'name = "reads"\nclosed = true\nop = "read"\nsizes = "8k"\nalign = "8k"\npositions = "{positions}"\n'
    )
    model.write_text(device)
    how = ("--simulate", model, "--virtual-time", "--for", f"{seconds or args.seconds}s", "--output", run)
    how += ("--overwrite",)
    sh(args.iosonar, "workload", "run", program, *how)
    query = "SELECT avg(completed_ns - issued_ns) / 1e6 AS ms FROM requests"
    (row,) = json.loads(sh(args.iosonar, "sql", run, query, "--format", "json"))
    return row["ms"]


def main() -> None:
    p = options(__doc__)
    p.add_argument("--seconds", type=int, default=30, help="time for each working set; a tenth for each depth")
    args = p.parse_args()
    results = {"spans": [], "depths": []}
    with directory() as place:
        print("| disk | working set | published | ours |\n|---|---|---|---|")
        for name, (rpm, published) in DISKS.items():
            for span, expected in zip(SPANS, published, strict=True):
                found = mean_ms(args, place, disk(rpm, published), span)
                results["spans"].append({"disk": name, "gb": span, "published_ms": expected, "ms": found})
                print(f"| {name} | {span} GB | {expected} ms | {found:.2f} ms |")
        sata, zipf = disk(*DISKS["SATA, 7200 rpm"]), "zipf exponent=1.1"
        cases = (("zipf", sata, 0), ("zipf, disk cache, 10 s", sata + DISK_CACHE, 10))
        for name, device, seconds in cases:
            found = mean_ms(args, place, device, SPANS[-1], zipf, seconds)
            results["spans"].append({"disk": name, "gb": SPANS[-1], "published_ms": ZIPF_MS, "ms": found})
            print(f"| SATA, 7200 rpm, {name} | {SPANS[-1]} GB | {ZIPF_MS} ms | {found:.2f} ms |")
        print()

        series, model, depths = place / "depth.sweep", place / "collapsing.toml", ",".join(map(str, DEPTHS))
        model.write_text(COLLAPSING)
        how = ("--simulate", model, "--virtual-time", "--for", f"{args.seconds / 10:g}s", "--output", series)
        found = json.loads(sh(args.iosonar, "sweep", "random-reads", "--depth", depths, *how, "--json"))
        print("| depth | reads/s | mean response time |\n|---|---|---|")
        for point in found["points"]:
            results["depths"].append({key: point[key] for key in ("depth", "requests_per_s", "response_mean_s")})
            print(f"| {point['depth']:g} | {point['requests_per_s']:,.0f} | {1000 * point['response_mean_s']:.1f} ms |")
        best = max(results["depths"], key=lambda point: point["requests_per_s"])["depth"]
        print(f"\nbest depth {best:g}; the manual found 64 and 128")
    keep(args, results)


if __name__ == "__main__":
    main()
