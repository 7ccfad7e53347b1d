#!/usr/bin/env python3
"""Compares the issue times of iosonar with those of a minimal replayer.

    bench/fidelity.py [--pairs 9] [--rates 1000,10000] [--seconds 8]
                      [--load FILE --start S --end S --gib 34] [--isolate[=PARTS]] [--iosonar PATH] [--options '...']
                      [--json FILE]

judge.py measures both by the kernel's clock: bare_loop.c and iosonar replay the same load, in turn, on a loop device with
direct I/O over a file in memory; the noise of the machine (floor.c) is measured with them. Prints a table of medians over the pairs. Needs root.

A natural load needs a device on which it fits, as the measurement does not follow wrap-around: `--gib` makes a sparse
one, which takes memory only for written data. `--isolate` adds a third run to each pair, with `--isolate` of the parts
named, or of all.
"""

import argparse
import shlex
import statistics
import sys
from pathlib import Path

from common import LoopDevice, bench, compiled, judge, keep, options, poisson, sh

BOUNDS = ("10", "25", "50", "100")


def pairs(args: argparse.Namespace, name: str, load: Path, device: LoopDevice, directory: Path, rate: float) -> dict:
    bare, floor = directory / "bare_loop", directory / "floor"
    window = [str(args.start), str(args.end)] if args.end else []
    iosonar_window = ["--start", str(args.start), "--end", str(args.end)] if args.end else []
    output = directory / "run.replay.parquet"
    iosonar = [
        args.iosonar,
        "replay",
        str(load),
        "--target",
        device.path,
        "--output",
        str(output),
        "--overwrite",
        "--json",
        *iosonar_window,
        *shlex.split(args.options),
    ]
    seen: dict[str, list[dict]] = {"bare": [], "iosonar": []} | ({"isolated": []} if args.isolate is not None else {})
    floors = []
    for n in range(args.pairs):
        floors.append([float(x) for x in sh(floor, rate, 4).split()])
        turns = {"bare": [str(bare), str(load), device.path, "512", "1", *window], "iosonar": iosonar}
        turns["isolated"] = [*iosonar, f"--isolate={args.isolate}" if args.isolate else "--isolate"]
        for who in seen if n % 2 == 0 else reversed(seen):
            seen[who].append(judge(args, load, device.path, turns[who]))
        print(
            f"{name} pair {n + 1}: " + ", ".join(f"{who} {seen[who][-1]['within_pct']['10']:.2f} %" for who in seen),
            file=sys.stderr,
            flush=True,
        )

    def middle(rows: list[dict], key: str) -> float:
        return statistics.median(r["within_pct"][key] for r in rows)

    def difference(bare: list[dict], rows: list[dict]) -> float:
        return statistics.median(b["within_pct"]["10"] - a["within_pct"]["10"] for a, b in zip(bare, rows, strict=True))

    return {
        "scenario": name,
        "pairs": args.pairs,
        "within_pct": {who: {b: middle(rows, b) for b in BOUNDS} for who, rows in seen.items()},
        "difference_10": {who: difference(seen["bare"], rows) for who, rows in seen.items() if who != "bare"},
        "floor": {b: statistics.median(f[i] for f in floors) for i, b in enumerate(BOUNDS[:3])},
        "missing": sum(r["missing"] for r in seen["iosonar"]),
    }


def main() -> None:
    p = options(__doc__)
    p.add_argument("--pairs", type=int, default=9)
    p.add_argument("--rates", default="1000,10000"), p.add_argument("--seconds", type=float, default=8)
    p.add_argument("--load", type=Path), p.add_argument("--start", type=float, default=0)
    p.add_argument("--end", type=float, default=0), p.add_argument("--gib", type=int, default=0)
    p.add_argument("--isolate", nargs="?", const=""), p.add_argument("--options", default="")
    args = p.parse_args()
    results = []
    with bench(args.mib, args.gib) as (directory, device):
        compiled("bare_loop", directory, "-luring"), compiled("floor", directory, "-lm")
        if args.load:
            results.append(pairs(args, args.load.name, args.load, device, directory, 10_000))
        else:
            for rate in map(float, args.rates.split(",")):
                load = poisson(args, rate, directory)
                results.append(pairs(args, f"Poisson {rate:.0f} IOPS", load, device, directory, rate))
    print("| load | pairs | within 10 µs: bare loop | iosonar | difference | isolated | difference ", end="")
    print("| within 50 µs: bare loop | iosonar | floor 10 / 50 µs | missing |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for r in results:
        w, f = r["within_pct"], r["floor"]
        difference = r["difference_10"]
        isolated = f"{w['isolated']['10']:.2f} % | {difference['isolated']:+.2f}" if "isolated" in w else "|"
        print(
            f"| {r['scenario']} | {r['pairs']} | {w['bare']['10']:.2f} % | {w['iosonar']['10']:.2f} % "
            f"| {difference['iosonar']:+.2f} | {isolated} "
            f"| {w['bare']['50']:.2f} % | {w['iosonar']['50']:.2f} % | {f['10']:.2f} / {f['50']:.2f} % "
            f"| {r['missing']} |"
        )
    keep(args, results)


if __name__ == "__main__":
    main()
