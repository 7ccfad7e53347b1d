#!/usr/bin/env python3
"""Repeats the experiments of a paper about issue accuracy: iosonar beside simple replayers, and over the rate.

    bench/paper_delay.py [--rounds 3] [--seconds 8] [--loads omail-like,harp-like] [--speeds 1,4]
                               [--rates 1000,10000] [--threads 64] [--iosonar PATH] [--json FILE]

The paper: E. Anderson et al., "Buttress: A toolkit for flexible and high fidelity I/O benchmarking", FAST 2004, figures 4 to
7. judge.py judges. Each load is replayed at its own speed and
at four times that, in turns, on a loop device with direct I/O over a file in memory: by naive_replay.c, which waits by
select(), by usleep(), or for a thread that watches the clock; by fio's read_iolog; by iosonar. Then even loads (figure 7) by
a bare loop and by iosonar. Issue times are by the kernel's clock. `--speeds ''` or `--rates ''` leaves out a part. Needs root
and fio.
"""

import argparse
import statistics
import sys
from pathlib import Path

from common import LoopDevice, bench, compiled, judge, keep, options, sh
from replayers import LOADS, Load, commands, generate, options_of_replayers, readable, turns

BOUNDS = ("10", "50", "100", "1000")
QUANTILES = ("0.5", "0.9", "0.95", "0.98", "0.99")

PAPER = {
    ("omail-like", 1): {"Buttress": {"10": 98}, "DED-CLOCK": {"100": 60}, "SLEEP, SELECT": {"1000": 30}},
    ("harp-like", 1): {"Buttress": {"50": 95}, "DED-CLOCK": {"100": 89}, "SLEEP, SELECT": {"1000": 30}},
    ("omail-like", 4): {"Buttress": {"50": 90}},
    ("harp-like", 4): {"Buttress": {"50": 92}},
}
"""Percent of the requests within so many µs, as far as the paper says."""

EVENTS_MOST = 400_000
"""Requests of a replay at a high rate: the judge reads an event of each."""


def row(*cells: str) -> None:
    print(f"| {' | '.join(cells)} |")


def head(*cells: str) -> None:
    print()
    row(*cells)
    print("|" + "---|" * len(cells))


def medians(seen: list[dict]) -> dict:
    """The medians of the rounds."""
    return {
        "within_pct": {b: statistics.median(r["within_pct"][b] for r in seen) for b in BOUNDS},
        "error_us": {q: statistics.median(r["error_us"][q] for r in seen) for q in QUANTILES},
        "missing": sum(r["missing"] for r in seen),
    }


def cells(found: dict) -> list[str]:
    within = [f"{found['within_pct'][b]:.2f} %" for b in BOUNDS]
    return [*within, *(f"{found['error_us'][q]:,.1f}" for q in QUANTILES), str(found["missing"])]


COLUMNS = (*(f"within {b} µs" for b in BOUNDS), *(f"p{float(q) * 100:g} µs" for q in QUANTILES), "missing")


def rounds(args: argparse.Namespace, name: str, load: Path, device: str, programs: dict[str, list[str]]) -> dict:
    """Each program in turns, judged by the kernel's clock."""
    seen: dict[str, list[dict]] = {program: [] for program in programs}
    for n in range(args.rounds):
        for program in turns(list(programs), n):
            seen[program].append(judge(args, load, device, programs[program]))
        shares = ", ".join(f"{program} {rows[-1]['within_pct']['10']:.2f}" for program, rows in seen.items())
        print(f"{name} round {n + 1}: {shares} % within 10 µs", file=sys.stderr, flush=True)
    return {program: medians(rows) | {"rounds": rows} for program, rows in seen.items()}


def figures_4_to_6(args: argparse.Namespace, directory: Path, device: LoopDevice) -> list[dict]:
    results = []
    for name in args.loads.split(","):
        original = generate(args, directory, name)
        for speed in map(int, args.speeds.split(",")):
            load = original
            if speed != 1:
                load = directory / f"{name}-{speed}.load"
                sh(args.iosonar, "edit", original, load, f"scale time={1 / speed}", "--overwrite")
            files: Load = readable(args, load)
            programs = commands(args, directory, files, device.path)
            found = rounds(args, f"{name} × {speed}", files.text, device.path, programs)
            results.append({"load": name, "speed": speed, "programs": found})
    head("load", "program", *COLUMNS)
    for each in results:
        label = f"{each['load']} × {each['speed']}"
        for program, found in each["programs"].items():
            row(label, program, *cells(found))
        for program, said in PAPER.get((each["load"], each["speed"]), {}).items():
            known = [f"{said[b]} %" if b in said else "" for b in BOUNDS]
            row(label, f"the paper: {program}", *known, *([""] * (len(QUANTILES) + 1)))
    return results


def figure_7(args: argparse.Namespace, directory: Path, device: LoopDevice) -> list[dict]:
    bare, run = compiled("bare_loop", directory, "-luring"), directory / "run.replay.parquet"
    results = []
    for rate in map(int, args.rates.split(",")):
        load, seconds = directory / f"even-{rate}.load", min(args.seconds_at_rate, EVENTS_MOST / rate)
        how = ("--size", "4k", "--duration", f"{seconds}s", "--span", f"{args.mib}M", "--overwrite")
        sh(args.iosonar, "generate", "uniform", load, "--rate", rate, *how)
        own = (args.iosonar, "replay", load, "--target", device.path, "--output", run, "--overwrite", "--json")
        programs = {
            "bare loop": [str(word) for word in (bare, load, device.path, 512)],
            "iosonar": [str(word) for word in own],
        }
        found = rounds(args, f"{rate} IOPS", load, device.path, programs)
        results.append({"rate": rate, "programs": found})
        load.unlink()
    head("IOPS", "program", *COLUMNS)
    for each in results:
        for program, found in each["programs"].items():
            row(f"{each['rate']:,}", program, *cells(found))
    return results


def main() -> None:
    p = options(__doc__)
    options_of_replayers(p)
    p.add_argument("--loads", default=",".join(LOADS))
    p.add_argument("--speeds", default="1,4"), p.add_argument("--seconds-at-rate", type=float, default=2)
    p.add_argument("--rates", default="1000,5000,10000,20000,50000,100000,150000,200000,300000")
    args = p.parse_args()
    results = {}
    with bench(args.mib) as (directory, device):
        if args.speeds:
            results["figures_4_to_6"] = figures_4_to_6(args, directory, device)
        if args.rates:
            results["figure_7"] = figure_7(args, directory, device)
    keep(args, results)


if __name__ == "__main__":
    main()
