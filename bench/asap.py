#!/usr/bin/env python3
"""Compares the throughput of `iosonar replay` with those of fio's io_uring engine and of bare loops on the same device.

    bench/asap.py [--rounds 5] [--requests 1500000] [--depths 1,4,16,64,256] [--ways asap,timed,fio,bare,spin,sleep]
                  [--isolate PARTS] [--iosonar PATH[,PATH]] [--json FILE]

Each way once in each round, in turn, on a loop device with direct I/O over a file in memory: 4 KiB requests at random
positions, 70 % reads. `--ways` are

    asap          iosonar replay --asap
    timed         iosonar replay of a load whose requests are all due at once: a load that saturates the device
    isolated      asap with --isolate=PARTS
    fio           as long as asap or timed took
    bare          bare_loop.c with the load of `timed`
    spin, sleep   closed_loop.c, which looks for completions all the time, or sleeps until one comes

iosonar tracks conflicts and records every request, as always. With two programs as --iosonar, the second one is
measured beside the first. Below depth 16 there are fewer requests, as they take longer. Ratios are the medians of those
to fio, and to the fastest bare loop, in the same round. Needs root, fio and liburing.
"""

import json
import statistics
import sys
from collections.abc import Callable
from pathlib import Path

from common import bench, compiled, keep, options, sh

FIO = ("--name=peer", "--direct=1", "--ioengine=io_uring", "--rw=randrw", "--rwmixread=70", "--bs=4k", "--time_based")


def main() -> None:
    p = options(__doc__)
    p.add_argument("--rounds", type=int, default=5), p.add_argument("--requests", type=int, default=1_500_000)
    p.add_argument("--depths", default="1,4,16,64,256"), p.add_argument("--isolate")
    p.add_argument("--ways", default="asap,timed,fio,bare,spin,sleep")
    args = p.parse_args()
    wanted = args.ways.split(",") + (["isolated"] if args.isolate else [])
    with bench(args.mib) as (directory, device):
        compiled("bare_loop", directory, "-luring"), compiled("closed_loop", directory, "-luring", "-lm")
        spread, at_once = directory / "asap.load.parquet", directory / "at_once.load.parquet"
        programs = args.iosonar.split(",")
        rows = []
        for depth in map(int, args.depths.split(",")):
            requests = args.requests * min(depth, 16) // 16
            shape = ["--size", "4k", "--span", f"{args.mib}M", "--reads", 0.7, "--requests", requests, "--overwrite"]
            sh(programs[0], "generate", "uniform", spread, "--rate", 100_000, *shape)
            sh(programs[0], "edit", spread, at_once, "scale time=1e-12", "--overwrite")
            sh(programs[0], "convert", at_once, directory / "at_once.load", "--overwrite")
            ways = ways_of(programs, directory, device.path, depth, spread, at_once, args.isolate)
            for n in range(args.rounds):
                row, seconds = {}, requests / 300_000
                names = [name for name in ways if name.split()[0] in wanted]
                # fio last, as it runs as long as the others.
                for name in sorted(names if n % 2 == 0 else reversed(names), key=lambda name: name == "fio"):
                    row[name] = ways[name](seconds)
                    if name.split()[0] in ("asap", "timed"):
                        seconds = requests / row[name]
                rows.append({"depth": depth, "iops": row})
                rates = ", ".join(f"{name} {iops:.0f}" for name, iops in row.items())
                print(f"depth {depth}, round {n + 1}: {rates}", file=sys.stderr, flush=True)
    print("fio", *FIO, "--iodepth=DEPTH --norandommap")
    print("| depth | rounds | way | requests/s: median (least to most) | ratio to fio | to the bare loop |")
    print("|---|---|---|---|---|---|")
    for depth in dict.fromkeys(row["depth"] for row in rows):
        of_depth = [row["iops"] for row in rows if row["depth"] == depth]
        for name in of_depth[0]:
            rates = [row[name] for row in of_depth]
            to_fio = ratio(of_depth, name, ("fio",))
            to_bare = ratio(of_depth, name, ("bare", "spin", "sleep"))
            extremes = f"{statistics.median(rates):,.0f} ({min(rates):,.0f} to {max(rates):,.0f})"
            print(f"| {depth} | {len(rates)} | {name} | {extremes} | {to_fio} | {to_bare} |")
    keep(args, rows)


def ratio(rows: list[dict[str, float]], name: str, peers: tuple[str, ...]) -> str:
    """The median ratio to the fastest of these peers in the same round."""
    fastest = [max((row[peer] for peer in peers if peer in row), default=0) for row in rows]
    if not all(fastest):
        return "–"
    return f"{statistics.median(row[name] / peer for row, peer in zip(rows, fastest, strict=True)):.2f}"


def ways_of(
    programs: list[str], directory: Path, device: str, depth: int, spread: Path, at_once: Path, isolate: str | None
) -> dict[str, Callable[[float], float]]:
    """What measures the requests per second of each way, in so many seconds."""
    output = directory / "asap.replay.parquet"

    def replay(program: str, load: Path, *words: str) -> Callable[[float], float]:
        all_words = [program, "replay", load, "--target", device, "--output", output, "--overwrite", "--json"]
        return lambda _: json.loads(sh(*all_words, "--depth", depth, *words))["iops"]

    def fio(seconds: float) -> float:
        words = [*FIO, f"--filename={device}", f"--iodepth={depth}", "--norandommap", "--output-format=json"]
        job = json.loads(sh("fio", *words, f"--runtime={max(1, seconds):.0f}"))["jobs"][0]
        return job["read"]["iops"] + job["write"]["iops"]

    def last_number(*words: object) -> float:
        return float(sh(*words).split()[-1])

    ways: dict[str, Callable[[float], float]] = {}
    for number, program in enumerate(programs):
        mark = f" {number + 1}" if number else ""
        ways[f"asap{mark}"] = replay(program, spread, "--asap")
        ways[f"timed{mark}"] = replay(program, at_once)
        if isolate:
            ways[f"isolated{mark}"] = replay(program, spread, "--asap", f"--isolate={isolate}")
    closed = directory / "closed_loop"
    ways["bare"] = lambda _: last_number(directory / "bare_loop", directory / "at_once.load", device, depth)
    for way in ("spin", "sleep"):
        ways[way] = lambda seconds, way=way: last_number(closed, way, device, depth, max(1, seconds), 8, 0, "-", 70)
    ways["fio"] = fio
    return ways


if __name__ == "__main__":
    main()
