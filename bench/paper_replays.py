#!/usr/bin/env python3
"""Repeats the experiments of a paper about burstiness and response times: a program, a bursty load, and their replays.

    bench/paper_replays.py [--rounds 3] [--seconds 8] [--threads 64] [--picture FILE] [--iosonar PATH] [--json FILE]

The paper: E. Anderson et al., "Buttress: A toolkit for flexible and high fidelity I/O benchmarking", FAST 2004, figures 2, 8, 10
and 11. The ready program tpcb runs twice on a loop device with direct I/O over a file in memory, recorded by `iosonar record`.
The first recording is replayed by iosonar, by fio's read_iolog and by simple programs (naive_replay.c), in turns, each recorded
again; then a generated load with bursts. So all times are the kernel's, from the request to its completion. A table compares
response times, requests in flight and requests in the last second; `--picture` draws the latter. Needs root, fio, and the
libraries of the Python half.
"""

import argparse
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from common import LoopDevice, bench, keep, options, sh
from replayers import commands, generate, options_of_replayers, readable, turns

PROGRAM = ("tpcb", "--scale", "4", "--set", "think=exponential mean=100ms")
QUANTILES = (10, 50, 90, 99)
WINDOWS_S = (1.0, 0.01)
STEP_S = 0.001
"""The requests in the last second are counted at moments this far apart."""


@dataclass(frozen=True)
class Times:
    """When requests came, in order, and how long they took, where that is known: ns."""

    at: np.ndarray
    response: np.ndarray | None = None


def rows(table: Path, *columns: str) -> list[np.ndarray]:
    read = pq.read_table(table, columns=list(columns))
    return [read[name].to_numpy() for name in columns]


def asked(load: Path) -> list[tuple]:
    """What a load asks for, without its flushes: operation, sector, sectors."""
    return [each for each in zip(*rows(load, "op", "sector", "sectors"), strict=True) if each[2]]


def replayed(recording: Path, wanted: list[tuple]) -> Times:
    """The requests of a recording that belong to a load. A replayer may read the device before it begins: the last ones count."""
    left: dict[tuple, int] = {}
    for each in wanted:
        left[each] = left.get(each, 0) + 1
    at, queued, latency, *what = rows(recording, "at_ns", "queued_ns", "latency_ns", "op", "sector", "sectors")
    keep_rows = np.zeros(len(at), bool)
    for number, each in reversed(list(enumerate(zip(*what, strict=True)))):
        if left.get(each, 0):
            left[each] -= 1
            keep_rows[number] = True
    response = (queued + latency)[keep_rows]
    missing, unknown = sum(left.values()), int(np.isnan(response).sum())
    if missing or unknown:
        print(
            f"{recording.name}: {missing} of {len(wanted)} requests are missing, {unknown} have no time",
            file=sys.stderr,
        )
    return Times((at - at[keep_rows][0])[keep_rows], response[~np.isnan(response)])


def record(args: argparse.Namespace, device: str, output: Path, command: list[str]) -> None:
    output.unlink(missing_ok=True)
    sh(args.iosonar, "record", "--device", device, "--output", output, "--", *command)


def run_program(args: argparse.Namespace, directory: Path, device: str, output: Path) -> tuple[Path, Times]:
    """A recording of the program, without what was read before it began."""
    run, cut = directory / "program.replay.parquet", output.with_name(f"cut-{output.name}")
    how = ("--target", device, "--output", run, "--for", f"{args.seconds}s", "--overwrite")
    record(args, device, output, [args.iosonar, "workload", "run", *PROGRAM, *map(str, how)])
    wanted = asked(run)
    begin = rows(output, "at_ns")[0][-len(wanted)]
    sh(args.iosonar, "edit", output, cut, f"select from={begin}ns to=1h base=zero", "--overwrite")
    return cut, replayed(cut, wanted)


def in_last(times: Times, window_s: float) -> np.ndarray:
    """Requests in the last `window_s`, each `STEP_S`."""
    moments = np.arange(0, times.at[-1] + window_s * 1e9, STEP_S * 1e9)
    return np.searchsorted(times.at, moments, "right") - np.searchsorted(times.at, moments - window_s * 1e9, "right")


def difference(a: np.ndarray, b: np.ndarray) -> tuple[int, float]:
    """The largest difference of two series at the same moment, and the mean one."""
    length = max(len(a), len(b))
    apart = np.abs(np.pad(a, (0, length - len(a))) - np.pad(b, (0, length - len(b))))
    return int(apart.max()), float(apart.mean())


def distance(a: np.ndarray, b: np.ndarray) -> float:
    """The largest difference of two distribution functions (Kolmogorov and Smirnov)."""
    every = np.sort(np.concatenate([a, b]))
    share = (np.searchsorted(np.sort(each), every, "right") / len(each) for each in (a, b))
    return float(np.abs(next(share) - next(share)).max())


def measured(times: Times, original: Times, reference: np.ndarray) -> dict:
    """Response times, requests in flight and burstiness of a replay beside the original."""
    found = {"requests": len(times.at)}
    for window in WINDOWS_S:
        here, there = in_last(times, window), in_last(original, window)
        found[f"in_{window}_s"] = [int(q) for q in np.percentile(here, QUANTILES)] + [int(here.max())]
        found[f"apart_{window}_s"] = difference(here, there)
    if times.response is not None:
        us = times.response / 1e3
        found["response_us"] = {"mean": float(us.mean())} | {str(q): float(np.percentile(us, q)) for q in QUANTILES}
        found["in_flight"] = float(times.response.sum() / (times.at[-1] - times.at[0]))
        found["distance"] = distance(times.response, reference)
    return found


def replays(
    args: argparse.Namespace, directory: Path, device: LoopDevice, load: Path, name: str
) -> dict[str, list[Times]]:
    """The replays of a load by each program, in turns."""
    wanted = asked(load)
    programs = commands(args, directory, readable(args, load), device.path)
    seen: dict[str, list[Times]] = {program: [] for program in programs}
    for n in range(args.rounds):
        for program in turns(list(programs), n):
            recording = directory / "replay.load.parquet"
            record(args, device.path, recording, programs[program])
            seen[program].append(replayed(recording, wanted))
        print(f"{name} round {n + 1}", file=sys.stderr, flush=True)
    return seen


def middle(runs: list[dict]) -> dict:
    """The run with the median of the mean response times."""
    return sorted(runs, key=lambda run: run["response_us"]["mean"])[len(runs) // 2]


def show_responses(found: dict[str, dict], relative_to: str) -> None:
    base = found[relative_to]
    print(
        f"\n| | mean µs | {' | '.join(f'p{q} µs' for q in QUANTILES)} | mean in flight | distance | mean of {relative_to}'s |"
    )
    print("|" + "---|" * (len(QUANTILES) + 5))
    for program, each in found.items():
        if "response_us" in each:
            times = " | ".join(f"{value:,.1f}" for value in each["response_us"].values())
            ratio = each["response_us"]["mean"] / base["response_us"]["mean"]
            print(f"| {program} | {times} | {each['in_flight']:.3f} | {each['distance']:.3f} | {ratio:.2f} |")


def show_bursts(found: dict[str, dict]) -> None:
    print(
        "\n| | " + " | ".join(f"in {w:g} s: p10, p50, p90, p99, most | differs: most, mean" for w in WINDOWS_S) + " |"
    )
    print("|" + "---|" * (2 * len(WINDOWS_S) + 1))
    for program, each in found.items():
        parts = []
        for window in WINDOWS_S:
            most, mean = each[f"apart_{window}_s"]
            parts += [", ".join(f"{count:,}" for count in each[f"in_{window}_s"]), f"{most:,}, {mean:.2f}"]
        print(f"| {program} | {' | '.join(parts)} |")


def draw(original: Times, replay: Times, title: str, path: Path) -> None:
    from iosonar.figures.drawing import draw as draw_figure
    from iosonar.figures.model import Axis, Figure, Legend, LegendRow, Line, Role, Stroke, Unit
    from iosonar.figures.palette import Theme
    from iosonar.figures.size import Size

    lines, legend = [], []
    for label, times, role, stroke in (
        ("original", original, Role.DEMAND, Stroke.SOLID),
        ("replay", replay, Role.ACTUAL, Stroke.DASHED),
    ):
        y = in_last(times, WINDOWS_S[0]).astype(np.float64)[::10]
        lines.append(Line(role, label, np.arange(len(y)) * 10 * STEP_S, y, stroke))
        legend.append(LegendRow(role, label, (f"{np.median(y):,.0f}", f"{y.max():,.0f}"), stroke))
    figure = Figure(
        "paper.burstiness",
        "g01",
        "Requests in the last second",
        title,
        Axis("Time", Unit.TIMELINE, 0.0, max(float(line.x[-1]) for line in lines)),
        Axis("Requests", Unit.REQUESTS, 0.0, max(float(line.y.max()) for line in lines) * 1.06),
        tuple(lines),
        Legend(("median", "most"), tuple(legend)),
        (),
    )
    draw_figure(figure, path, Size(800, 480), Theme.LIGHT)


def main() -> None:
    p = options(__doc__, mib=2560)
    options_of_replayers(p)
    p.add_argument("--picture", type=Path, help="draw the burstiness of harp-like and of its replay into this file")
    args = p.parse_args()
    results = {}
    with bench(args.mib) as (directory, device):
        load, original = run_program(args, directory, device.path, directory / "program.load.parquet")
        _, again = run_program(args, directory, device.path, directory / "again.load.parquet")
        seen = replays(args, directory, device, load, "tpcb")
        found = {"tpcb": measured(original, original, original.response)}
        found["tpcb again"] = measured(again, original, original.response)
        for program, runs in seen.items():
            found[program] = middle([measured(run, original, original.response) for run in runs])
        print("\ntpcb, its replays, and itself again:")
        show_responses(found, "tpcb"), show_bursts(found)
        results["tpcb"] = found

        text = generate(args, directory, "harp-like")
        load = directory / "harp-like.load.parquet"
        sh(args.iosonar, "convert", text, load, "--overwrite")
        at = rows(load, "at_ns")[0]
        original = Times(at - at[0])
        seen = replays(args, directory, device, load, "harp-like")
        reference = sorted(seen["iosonar"], key=lambda run: statistics.fmean(run.response))[args.rounds // 2]
        found = {"the load": measured(original, original, reference.response)}
        for program, runs in seen.items():
            found[program] = middle([measured(run, original, reference.response) for run in runs])
        print("\nharp-like and its replays:")
        show_responses(found, "iosonar"), show_bursts(found)
        results["harp-like"] = found
        if args.picture:
            draw(original, reference, "a load with bursts, and its replay by iosonar", args.picture)
    keep(args, results)


if __name__ == "__main__":
    main()
