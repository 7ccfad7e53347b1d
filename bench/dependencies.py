#!/usr/bin/env python3
"""Measures `replay --closed=dependencies` on programs whose dependencies are known, in virtual time: the same on any machine.

    bench/dependencies.py [--requests 2000] [--iosonar PATH] [--json FILE]

Each program runs on a simulated device, where its requests and response times are recorded: with a process for each of its
threads, and without. From these loads iosonar infers who waited for whom; precision is the share of what it found that is
right, recall the share of what is right that it found. Then the program runs on a device that takes four times as long, and on
one that takes a quarter, and so do the load's replays: at its times (open), closed with and without think times, with as many
clients as the program has requests at a time, and by dependencies. Prints the duration of each as a multiple of the program's.
"""

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from common import keep, options, sh

Rows = dict[str, list[Any]]
DEVICES = {"recorded": "500us", "slower": "2ms", "faster": "125us"}


def threads(count: int, keys: str, requests: int) -> str:
    """Streams of one instance each: the row names the stream, and so the thread."""
    each = [f'[[stream]]\nname = "t{n}"\nop = "read"\nrequests = {requests}\n{keys}' for n in range(count)]
    return "\n".join(each)


def programs(requests: int) -> dict[str, tuple[str, int]]:
    """The text of each program, and how many requests it has at a time."""
    closed = "closed = true\n"
    steps = "".join(
        f'[[stream.step]]\nop = "{op}"\n{more}'
        for op, more in [("read", ""), ("write", "repeat = 3\nwait = false\n"), ("write", "")]
    )
    transaction = closed + 'think = "exponential mean=2ms"\n' + steps
    mixed = threads(4, closed + 'think = "exponential mean=1ms"\n', requests)
    arrivals = f'[[stream]]\nname = "open"\nop = "read"\narrivals = "poisson rate=1000"\nrequests = {2 * requests}\n'
    return {
        "1 thread, think 1 ms": (threads(1, closed + 'think = "constant value=1ms"\n', requests), 1),
        "8 threads, no think time": (threads(8, closed, requests), 8),
        "8 threads, think 1 ms": (threads(8, closed + 'think = "constant value=1ms"\n', requests), 8),
        "8 threads, exponential think": (threads(8, closed + 'think = "exponential mean=1ms"\n', requests), 8),
        "1 thread, depth 16": (threads(1, closed + "depth = 16\n", requests), 16),
        "4 threads, transactions": (threads(4, transaction, requests), 12),
        "4 threads and open arrivals": (mixed + "\n" + arrivals, 6),
        "open arrivals": (arrivals, 1),
    }


def rows(path: Path) -> Rows:
    return pq.read_table(path).to_pydict()


def duration(run: Rows) -> float:
    begin, end = min(t for t in run["issued_ns"] if t is not None), max(t for t in run["completed_ns"] if t is not None)
    return float(end - begin) / 1e9


def causes(run: Rows, is_open: set[int]) -> list[int | None]:
    """What each request waited for: the request that the run names, or else the last one of its thread before it."""
    found: list[int | None] = [None] * len(run["request"])
    ended: dict[int, list[tuple[int, int]]] = {}
    for n, stream in enumerate(run["stream"]):
        ended.setdefault(stream, []).append((run["completed_ns"][n], run["request"][n]))
    for n, cause in enumerate(run["cause"]):
        if run["stream"][n] not in is_open:
            before = [pair for pair in ended[run["stream"][n]] if pair[0] <= run["scheduled_ns"][n]][-1:]
            found[n] = cause if cause is not None else before[0][1] if before else None
    return found


class Bench:
    def __init__(self, iosonar: Path, place: Path) -> None:
        self.iosonar, self.place, self.output = iosonar, place, place / "r.replay.parquet"

    def on(self, device: str, *words: object) -> tuple[Rows, dict[str, Any]]:
        law = f"lognormal={DEVICES[device]}:0.5 servers=8"
        sh(self.iosonar, *words, "--output", self.output, "--overwrite", "--simulate", law, "--virtual-time")
        run = json.loads(pq.read_schema(self.output).metadata[b"iosonar"])["run"]
        return rows(self.output), run

    def load(self, run: Rows, name: str, has_process: bool) -> tuple[Path, list[int]]:
        """A recording of the run, and the number in the run of each of its requests."""
        order = sorted(range(len(run["request"])), key=lambda n: (run["issued_ns"][n], run["request"][n]))

        def column(name: str) -> list[Any]:
            return [run[name][n] for n in order]

        latency = [run["completed_ns"][n] - run["issued_ns"][n] for n in order]
        made = {
            "at_ns": pa.array(column("issued_ns"), pa.int64()),
            "device": pa.array([0] * len(order), pa.int32()),
            "sector": pa.array(column("source_sector"), pa.int64()),
            "sectors": pa.array(column("sectors"), pa.int64()),
            "op": pa.array(column("op"), pa.string()),
            "flags": pa.array([0] * len(order), pa.int32()),
            "latency_ns": pa.array(latency, pa.int64()),
        }
        if has_process:
            made["pid"] = pa.array([1000 + (stream or 0) for stream in column("stream")], pa.int32())
        counts = {"requests": len(order), "reads": 0, "writes": 0, "others": 0, "bad_lines": 0, "time_jumps": 0}
        footer = {
            "schema_version": 3,
            "kind": "load",
            "source": {"format": "bench"},
            "devices": [{"name": "sda", "sectors": 1 << 30}],
            "counts": counts | {"lost_events": 0, "unmatched": 0},
            "span": {"first_ns": 0, "last_ns": 0, "max_end_sector": 0, "max_sectors": 0},
            "complete": True,
        }
        path = self.place / f"{name}.load.parquet"
        pq.write_table(pa.table(made).replace_schema_metadata({"iosonar": json.dumps(footer)}), path)
        return path, column("request")


def judge(name: str, text: str, at_once: int, bench: Bench) -> dict[str, Any]:
    program = bench.place / "p.toml"
    program.write_text(f'name = "p"\nabout = "A program whose dependencies are known."\n{text}')
    recorded, run = bench.on("recorded", "workload", "run", program)
    is_open = {n for n, stream in enumerate(run["program"]["streams"]) if stream["open"]}
    true = dict(zip(recorded["request"], causes(recorded, is_open), strict=True))
    own = {device: duration(bench.on(device, "workload", "run", program)[0]) for device in DEVICES}
    found: dict[str, Any] = {
        "program": name,
        "requests": len(true),
        "waiting": sum(cause is not None for cause in true.values()),
    }
    for kind, has_process in [("process", True), ("time", False)]:
        load, numbers = bench.load(recorded, kind, has_process)
        replay = ["replay", load]
        inferred, run = bench.on("recorded", *replay, "--closed=dependencies")
        pairs = [
            (numbers[n], numbers[c])
            for n, c in zip(inferred["request"], inferred["cause"], strict=True)
            if c is not None
        ]
        right = sum(true[request] == cause for request, cause in pairs)
        each: dict[str, Any] = {
            "found": len(pairs),
            "precision": right / len(pairs) if pairs else None,
            "recall": right / found["waiting"] if found["waiting"] else None,
            "confidence": run["dependencies"]["confidence"],
        }
        ways = {
            "open": [],
            "think": ["--closed", "--depth", at_once],
            "no-think": ["--closed=no-think", "--depth", at_once],
        }
        ways["dependencies"] = ["--closed=dependencies"]
        for device in ["slower", "faster"]:
            times = {way: duration(bench.on(device, *replay, *words)[0]) / own[device] for way, words in ways.items()}
            each[device] = times
        found[kind] = each
    return found


def shown(number: float | None) -> str:
    return "–" if number is None else f"{number:.3f}" if number <= 1 else f"{number:.2f}"


def main() -> None:
    p = options(__doc__)
    p.add_argument("--requests", type=int, default=2000)
    args: argparse.Namespace = p.parse_args()
    results = []
    with tempfile.TemporaryDirectory(prefix="iosonar-bench") as place:
        bench = Bench(args.iosonar, Path(place))
        for name, (text, at_once) in programs(args.requests).items():
            results.append(judge(name, text, at_once, bench))
    print("| program | known by | found | precision | recall | confidence |\n|---|---|---|---|---|---|")
    for each in results:
        for kind in ["process", "time"]:
            of = each[kind]
            words = [each["program"], kind, f"{of['found']:,} of {each['waiting']:,}"]
            print("|", " | ".join([*words, *(shown(of[key]) for key in ["precision", "recall", "confidence"])]), "|")
    ways = ["open", "think", "no-think", "dependencies"]
    print(f"\n| program | device | {' | '.join(ways)} | dependencies by time |\n|---|---|---|---|---|---|---|")
    for each in results:
        for device in ["slower", "faster"]:
            numbers = [each["process"][device][way] for way in ways] + [each["time"][device]["dependencies"]]
            print("|", " | ".join([each["program"], device, *(f"{number:.2f}" for number in numbers)]), "|")
    keep(args, results)


if __name__ == "__main__":
    main()
