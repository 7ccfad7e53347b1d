#!/usr/bin/env python3
"""Compares replays of the same load by `iosonar replay` and by fio's `read_iolog`.

    bench/iolog.py [--pairs 5] [--rates 1000,10000] [--seconds 8] [--engine io_uring] [--depth 64]
                   [--iosonar PATH] [--json FILE]

judge.py judges. Both programs replay the same Poisson load, in turn,
on a loop device with direct I/O over a file in memory; fio reads it as an I/O log of version 3, its most exact one
(microseconds), made by `iosonar convert`. Issue times are measured by the kernel's clock. Both programs should report
the same latency, as the device is the same. Needs root and fio.
"""

import argparse
import json
import statistics
import sys
from pathlib import Path

from common import LoopDevice, bench, judge, keep, options, poisson, sh

BOUNDS = ("10", "50", "1000")


def fio_command(args: argparse.Namespace, iolog: Path, device: str, output: Path) -> list[str]:
    return [
        "fio",
        "--name=peer",
        f"--read_iolog={iolog}",
        f"--replay_redirect={device}",
        f"--ioengine={args.engine}",
        f"--iodepth={args.depth}",
        "--direct=1",
        "--unified_rw_reporting=1",
        "--output-format=json",
        f"--output={output}",
    ]


def fio_latency_us(output: Path) -> dict[str, float]:
    text = output.read_text()
    # Messages of fio may precede the object.
    latency = json.loads(text[text.index("{") :])["jobs"][0]["mixed"]["clat_ns"]
    return {
        "mean": latency["mean"] / 1e3,
        "p50": latency["percentile"]["50.000000"] / 1e3,
        "p99": latency["percentile"]["99.000000"] / 1e3,
    }


def iosonar_latency_us(args: argparse.Namespace, result: Path) -> dict[str, float]:
    known = json.loads(sh(args.iosonar, "info", result, "--json"))
    latency = known["latency_us"]
    return {key: latency[key] for key in ("mean", "p50", "p99")}


def compare(args: argparse.Namespace, name: str, load: Path, device: LoopDevice, directory: Path) -> dict:
    iolog, report, result = directory / "poisson.iolog", directory / "fio.json", directory / "run.replay.parquet"
    sh(args.iosonar, "convert", load, iolog)
    own = [args.iosonar, "replay", str(load), "--target", device.path, "--output", str(result), "--overwrite"]
    turns = {"fio": fio_command(args, iolog, device.path, report), "iosonar": own}
    seen: dict[str, list[dict]] = {program: [] for program in turns}
    for n in range(args.pairs):
        for program in seen if n % 2 == 0 else reversed(seen):
            judged = judge(args, load, device.path, turns[program])
            judged["latency_us"] = fio_latency_us(report) if program == "fio" else iosonar_latency_us(args, result)
            seen[program].append(judged)
        shares = ", ".join(
            f"{program} {rows[-1]['within_pct']['50']:.2f} % within 50 µs" for program, rows in seen.items()
        )
        print(f"{name} pair {n + 1}: {shares}", file=sys.stderr, flush=True)

    def middle(program: str, part: str, key: str) -> float:
        return statistics.median(row[part][key] for row in seen[program])

    return {
        "scenario": name,
        "pairs": args.pairs,
        "within_pct": {program: {b: middle(program, "within_pct", b) for b in BOUNDS} for program in seen},
        "error_us": {program: {q: middle(program, "error_us", q) for q in ("0.5", "0.99")} for program in seen},
        "latency_us": {
            program: {q: middle(program, "latency_us", q) for q in ("mean", "p50", "p99")} for program in seen
        },
        "missing": {program: sum(row["missing"] for row in rows) for program, rows in seen.items()},
    }


def main() -> None:
    p = options(__doc__)
    p.add_argument("--pairs", type=int, default=5)
    p.add_argument("--rates", default="1000,10000"), p.add_argument("--seconds", type=float, default=8)
    p.add_argument("--engine", default="io_uring"), p.add_argument("--depth", type=int, default=64)
    # The measured window: the whole load.
    p.set_defaults(start=0, end=0)
    args = p.parse_args()
    results = []
    with bench(args.mib) as (directory, device):
        for rate in map(float, args.rates.split(",")):
            load = poisson(args, rate, directory)
            results.append(compare(args, f"Poisson {rate:.0f} IOPS", load, device, directory))
    print("fio:", sh("fio", "--version").strip())
    print("fio command:", *fio_command(args, Path("LOAD.iolog"), "DEVICE", Path("FILE")))
    print(
        "| load | pairs | program | within 10 µs | 50 µs | 1 ms | median error | 99 % | latency it reports: mean ",
        end="",
    )
    print("| p50 | p99 | missing |")
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
    for r in results:
        for program in ("fio", "iosonar"):
            within, error, latency = r["within_pct"][program], r["error_us"][program], r["latency_us"][program]
            print(
                f"| {r['scenario']} | {r['pairs']} | {program} | {within['10']:.2f} % | {within['50']:.2f} % "
                f"| {within['1000']:.2f} % | {error['0.5']:,.1f} µs | {error['0.99']:,.1f} µs "
                f"| {latency['mean']:,.1f} µs | {latency['p50']:,.1f} µs | {latency['p99']:,.1f} µs "
                f"| {r['missing'][program]} |"
            )
    keep(args, results)


if __name__ == "__main__":
    main()
