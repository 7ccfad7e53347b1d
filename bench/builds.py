#!/usr/bin/env python3
"""Compares two builds of iosonar: accuracy, and throughput as fast as possible.

    bench/builds.py --before PATH --after PATH [--rounds 9] [--rates 10000,50000] [--seconds 4]
                    [--requests 1000000] [--depth 64] [--json FILE]

As bench/fidelity.py and bench/asap.py, but both programs are iosonar: in turns, on the same loop device with direct I/O over a
file in memory. Issue times are by the kernel's clock. Processor time is that of a replay as fast as possible without storage,
user and system: other programs change it least. What counts is the median of the differences or ratios per round, with the
range of all rounds. `--rates ''` or `--requests 0` leaves out a part. Needs root.
"""

import argparse
import json
import resource
import statistics
import sys
from collections.abc import Callable
from pathlib import Path

from common import LoopDevice, bench, judge, keep, options, poisson, sh

BUILDS = ("before", "after")
BOUNDS = ("10", "50")


def replay(args: argparse.Namespace, build: str, load: Path, device: str, directory: Path) -> list[str]:
    run = directory / "run.replay.parquet"
    words = (getattr(args, build), "replay", load, "--target", device, "--output", run, "--overwrite", "--json")
    return [str(word) for word in words]


def rounds(args: argparse.Namespace, name: str, measure: Callable[[str], dict]) -> dict[str, list[dict]]:
    """Both builds in turns; which is first changes with each round."""
    seen: dict[str, list[dict]] = {build: [] for build in BUILDS}
    for n in range(args.rounds):
        for build in BUILDS if n % 2 == 0 else reversed(BUILDS):
            seen[build].append(measure(build))
        print(f"{name} round {n + 1}: {[seen[build][-1] for build in BUILDS]}", file=sys.stderr, flush=True)
    return seen


def accuracy(args: argparse.Namespace, directory: Path, device: LoopDevice, rate: float) -> dict[str, list[dict]]:
    load = poisson(args, rate, directory)

    def measure(build: str) -> dict:
        judged = judge(args, load, device.path, replay(args, build, load, device.path, directory))
        return {bound: judged["within_pct"][bound] for bound in BOUNDS} | {"missing": judged["missing"]}

    return rounds(args, f"Poisson {rate:.0f} IOPS", measure)


def throughput(args: argparse.Namespace, directory: Path, device: LoopDevice) -> dict[str, list[dict]]:
    load = directory / "asap.load.parquet"
    shape = ("--size", "4k", "--span", f"{args.mib}M", "--reads", 0.7, "--requests", args.requests, "--duration", "1h")
    sh(args.before, "generate", "uniform", load, "--rate", 100_000, *shape)

    def measure(build: str) -> dict:
        words = (*replay(args, build, load, device.path, directory), "--asap", "--depth", args.depth)
        iops = json.loads(sh(*words))["iops"]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        sh(*words, "--engine", "null")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return {"iops": iops, "processor_us": seconds * 1e6 / args.requests}

    return rounds(args, "as fast as possible", measure)


def values(seen: dict[str, list[dict]], key: str) -> tuple[list[float], list[float]]:
    before, after = ([row[key] for row in seen[build]] for build in BUILDS)
    return before, after


def main() -> None:
    p = options(__doc__)
    p.add_argument("--rounds", type=int, default=9)
    p.add_argument("--before", type=Path, required=True), p.add_argument("--after", type=Path, required=True)
    p.add_argument("--rates", default="10000,50000"), p.add_argument("--seconds", type=float, default=4)
    p.add_argument("--requests", type=int, default=1_000_000), p.add_argument("--depth", type=int, default=64)
    p.set_defaults(start=0, end=0)
    args = p.parse_args()
    # Makes the loads.
    args.iosonar = args.before
    rates = [float(rate) for rate in args.rates.split(",") if rate]
    with bench(args.mib) as (directory, device):
        accurate = {rate: accuracy(args, directory, device, rate) for rate in rates}
        fast = throughput(args, directory, device) if args.requests else None
    print("| what | rounds | before | after | median of the rounds | least | most |")
    print("|---|---|---|---|---|---|---|")
    for rate, seen in accurate.items():
        for bound in BOUNDS:
            before, after = values(seen, bound)
            apart = [b - a for a, b in zip(before, after, strict=True)]
            medians = [f"{statistics.median(each):.2f} %" for each in (before, after)]
            spread = [f"{pick(apart):+.2f}" for pick in (statistics.median, min, max)]
            what = f"Poisson {rate:.0f} IOPS, within {bound} µs"
            print(f"| {what} | {args.rounds} | {' | '.join(medians + spread)} |")
    for what, key, unit in (
        ("as fast as possible", "iops", "IOPS"),
        ("without storage: processor time of a request", "processor_us", "µs"),
    ):
        if fast:
            before, after = values(fast, key)
            ratio = [b / a for a, b in zip(before, after, strict=True)]
            medians = [f"{statistics.median(each):,.{0 if key == 'iops' else 3}f} {unit}" for each in (before, after)]
            spread = [f"{pick(ratio):.3f}" for pick in (statistics.median, min, max)]
            print(f"| {what} | {args.rounds} | {' | '.join(medians + spread)} |")
    keep(args, {"accuracy": accurate, "throughput": fast})


if __name__ == "__main__":
    main()
