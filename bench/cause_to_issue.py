#!/usr/bin/env python3
"""Measures how soon a closed program's next request is issued, beside the least program that does the same.

    bench/cause_to_issue.py [--rounds 5] [--seconds 2] [--depths 1,4,16,64] [--think 1000] [--iosonar PATH] [--json FILE]

Reads of 4 KiB at random positions on a loop device with direct I/O over a file in memory; as many in flight as the depth says.
Each read follows the completion of another one, at once or after an exponentially distributed time of `--think` µs on average.
`iosonar workload run` and closed_loop.c (one thread, one io_uring; it spins) do this in turns. Two clocks measure both: the
program's own, from the completion as it sees it, or the end of the think time, to the submission; and the kernel's
tracepoints, from block_rq_complete to block_bio_queue. With think times the latter is the distance of block_bio_queue from the
end of the think time, without the median, as judge.py has it for loads. Needs root and the libraries of the Python half.
"""

import argparse
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from block_events import ReadEvents, times_of
from common import bench, keep, options, sh
from replayers import compile_c, turns

BOUNDS_US = (10, 50)
ROW = 5
"""Numbers in each row of closed_loop.c."""

PROGRAM = """
name = "closed"
about = "Reads that each follow the completion of another one"
[[stream]]
name = "reads"
closed = true
instances = {depth}
op = "read"
"""
THINK = 'think = "exponential mean={think}us"\n'


@dataclass(frozen=True)
class Reads:
    """The reads of a run in the order of their issue, by the program's own clock: ns."""

    cause: np.ndarray
    """The index of the read that each waited for, or -1."""
    sector: np.ndarray
    ready: np.ndarray
    issued: np.ndarray
    completed: np.ndarray

    def causes(self, values: np.ndarray) -> np.ndarray:
        """For each read with a cause, the value of its cause."""
        return values[self.cause[self.cause >= 0]]

    def effects(self, values: np.ndarray) -> np.ndarray:
        """For each read with a cause, its own value."""
        return values[self.cause >= 0]


def of_bare(file: Path) -> Reads:
    return Reads(*np.fromfile(file, np.int64).reshape(-1, ROW).T)


def of_iosonar(run: Path) -> Reads:
    names = ("request", "cause", "sector", "scheduled_ns", "issued_ns", "completed_ns")
    table = pq.read_table(run, columns=list(names)).sort_by([("issued_ns", "ascending"), ("request", "ascending")])
    request, cause, *rest = (table[name].fill_null(-1).to_numpy() for name in names)
    place = np.full(request.max() + 1, -1)
    place[request] = np.arange(len(request))
    return Reads(np.where(cause >= 0, place[cause], -1), *rest)


def errors_us(reads: Reads, events: ReadEvents, thinks: bool) -> dict[str, np.ndarray]:
    """The times from cause to issue, without the think time, by both clocks."""
    completed, queued = (times_of(each, reads.sector) for each in (events.completed, events.queued))
    if thinks:
        # The end of a think time is a deadline, and no event of the kernel. The start of a run is its own affair.
        late = queued - reads.ready / 1e3
        return {"own": (reads.issued - reads.ready) / 1e3, "kernel": np.abs(late - np.nanmedian(late))}
    own = reads.effects(reads.issued - reads.ready) / 1e3
    return {"own": own, "kernel": reads.effects(queued) - reads.causes(completed)}


def measured(reads: Reads, events: ReadEvents, thinks: bool) -> dict:
    found: dict = {"reads": len(reads.sector), "iops": len(reads.sector) / (np.ptp(reads.issued) / 1e9)}
    for clock, late in errors_us(reads, events, thinks).items():
        known = late[~np.isnan(late)]
        if len(known) < 0.99 * len(late) or not len(late):
            raise SystemExit(f"the kernel saw only {len(known)} of {len(late)} reads")
        found[clock] = {f"within_{b}": 100 * float((known <= b).mean()) for b in BOUNDS_US}
        found[clock] |= {f"p{q}": float(np.percentile(known, q)) for q in (50, 99)}
    return found


def pairs(args: argparse.Namespace, directory: Path, device: str, depth: int, think_us: float) -> dict[str, list[dict]]:
    """Both programs in turns."""
    program, run, rows = directory / "closed.toml", directory / "closed.replay.parquet", directory / "closed.rows"
    program.write_text(PROGRAM.format(depth=depth) + (THINK.format(think=think_us) if think_us else ""))
    own = (args.iosonar, "workload", "run", program, "--target", device, "--for", f"{args.seconds}s", "--output", run)
    bare = (directory / "closed_loop", "spin", device, depth, args.seconds, 1, think_us, rows)
    commands: dict[str, tuple[tuple, Callable[[], Reads]]] = {
        "bare loop": (bare, lambda: of_bare(rows)),
        "iosonar": ((*own, "--overwrite", *args.options.split()), lambda: of_iosonar(run)),
    }
    seen: dict[str, list[dict]] = {name: [] for name in commands}
    for n in range(args.rounds):
        for name in turns(list(commands), n):
            command, read = commands[name]
            with ReadEvents(device) as events:
                sh(*command)
            seen[name].append(measured(read(), events, think_us > 0))
        shares = ", ".join(f"{name} {runs[-1]['kernel']['within_10']:.2f}" for name, runs in seen.items())
        print(
            f"depth {depth}, think {think_us:g} µs, round {n + 1}: {shares} % within 10 µs", file=sys.stderr, flush=True
        )
    return seen


def middle(runs: list[dict], clock: str, key: str) -> float:
    return statistics.median(run[clock][key] for run in runs)


def show(results: list[dict]) -> None:
    print(
        "| depth | think | clock | within 10 µs: bare loop | iosonar | difference | within 50 µs: bare loop | iosonar ",
        end="",
    )
    print("| difference | median: bare loop | iosonar | 99 %: bare loop | iosonar | IOPS: bare loop | iosonar |")
    print("|" + "---|" * 15)
    for each in results:
        bare, own = each["runs"]["bare loop"], each["runs"]["iosonar"]
        for clock in ("own", "kernel"):
            parts = []
            for bound in BOUNDS_US:
                key = f"within_{bound}"
                apart = statistics.median(b[clock][key] - a[clock][key] for a, b in zip(bare, own, strict=True))
                parts += [f"{middle(bare, clock, key):.2f} %", f"{middle(own, clock, key):.2f} %", f"{apart:+.2f}"]
            for key in ("p50", "p99"):
                parts += [f"{middle(runs, clock, key):.1f} µs" for runs in (bare, own)]
            parts += [f"{statistics.median(run['iops'] for run in runs):,.0f}" for runs in (bare, own)]
            think = f"{each['think_us']:g} µs" if each["think_us"] else "none"
            print(f"| {each['depth']} | {think} | {clock} | {' | '.join(parts)} |")


def main() -> None:
    p = options(__doc__)
    p.add_argument("--rounds", type=int, default=5), p.add_argument("--seconds", type=float, default=2)
    p.add_argument("--depths", default="1,4,16,64"), p.add_argument("--think", type=float, default=1000)
    p.add_argument("--options", default="", help="further options of `iosonar workload run`")
    args = p.parse_args()
    results = []
    with bench(args.mib) as (directory, device):
        compile_c(directory, "closed_loop", "-luring", "-lm")
        for think_us in (0, args.think):
            for depth in map(int, args.depths.split(",")):
                runs = pairs(args, directory, device.path, depth, think_us)
                results.append({"depth": depth, "think_us": think_us, "runs": runs})
    show(results)
    keep(args, results)


if __name__ == "__main__":
    main()
