#!/usr/bin/env python3
"""Judges any replayer by the kernel's clock: how far from its scheduled time did each request reach the block layer?

    bench/judge.py LOAD DEVICE [--start S] [--end S] [--timeout S] [--json] -- COMMAND…

COMMAND replays LOAD (text of blkreplay, also gzip), or its window, on DEVICE, while the tracepoint `block_bio_queue` is
recorded. The n-th request to a sector is the n-th event of that sector and direction, counted from the last, because a
program may read the device before it begins. If a sector has more events than requests, each request is the first event
that is not too early: a request for which the kernel had no tag is queued twice. When a replay starts is its own choice:
the most frequent difference is not counted, which is the median of the shortest interval that has a tenth of them. (The
median of all would be that of late requests if most were late.) A request that never reached the device is outside of all
bounds. Needs root.
"""

import argparse
import gzip
import json
import re
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from tracefs import Recording

EVENT = re.compile(r"\s(\d+)\.(\d{6}): block_bio_queue: \S+ (\S+) (\d+) \+ [1-9]")
BOUNDS_US = (10, 25, 50, 100, 1000)
QUANTILES = (0.5, 0.9, 0.95, 0.98, 0.99)
EARLY_US = 1000
"""An event that comes so long before its request belongs to an earlier one."""

Place = tuple[int, str]
"""A sector, and R, W or D."""


def requests(load: Path, start: float, end: float) -> Iterator[tuple[float, Place]]:
    """The scheduled time of each request in µs, and its place."""
    with gzip.open(load, "rt") if load.suffix == ".gz" else load.open() as lines:
        for line in lines:
            columns = [column.strip() for column in line.split(";")]
            if len(columns) < 4 or not columns[0].replace(".", "", 1).isdigit():
                continue
            if start <= float(columns[0]) < end:
                yield float(columns[0]) * 1e6, (int(columns[1]), columns[3][0].upper())


def direction(letters: str) -> str:
    """Of the letters of an event; a flush may be in front of a write."""
    return next((letter for letter in letters.removeprefix("F") if letter in "RWD"), "?")


def matched(scheduled: list[tuple[float, Place]], events: list[tuple[float, Place]]) -> list[float]:
    """How late each request that reached the device was, without the most frequent difference."""
    seen: dict[Place, list[float]] = defaultdict(list)
    asked: dict[Place, list[float]] = defaultdict(list)
    for times, rows in ((seen, events), (asked, scheduled)):
        for at, place in rows:
            times[place].append(at)

    def from_the_last(places: list[Place]) -> list[float]:
        pairs = (zip(reversed(seen[place]), reversed(asked[place]), strict=False) for place in places)
        return [event - at for times in pairs for event, at in times]

    repeated = [place for place, times in asked.items() if len(seen[place]) > len(times)]
    delays = from_the_last([place for place, times in asked.items() if len(seen[place]) <= len(times)])
    first = most_frequent(delays or from_the_last(repeated))
    for place in repeated:
        delays += _first_attempts(asked[place], seen[place], first)
    first = most_frequent(delays)
    return sorted(delay - first for delay in delays)


def most_frequent(values: list[float]) -> float:
    """The median of the shortest interval that has a tenth of the values; 0 without any."""
    ordered = sorted(values)
    size = (len(ordered) + 9) // 10
    starts = range(len(ordered) - size + 1) if ordered else []
    start = min(starts, key=lambda each: ordered[each + size - 1] - ordered[each], default=0)
    return statistics.median(ordered[start : start + size] or [0.0])


def _first_attempts(times: list[float], events: list[float], first: float) -> Iterator[float]:
    """How late requests to one place were, which has more events: the kernel tries again if it had no tag."""
    at = 0
    for number, time in enumerate(times):
        last = len(events) - (len(times) - number)
        while at < last and events[at] - time - first < -EARLY_US:
            at += 1
        yield events[at] - time
        at += 1


def judged(scheduled: list[tuple[float, Place]], events: list[tuple[float, Place]]) -> dict:
    """Shares within the bounds, in percent of all requests, and quantiles of the absolute error."""
    delays = matched(scheduled, events)
    errors = sorted(map(abs, delays))
    return {
        "requests": len(scheduled),
        "missing": len(scheduled) - len(errors),
        "within_pct": {
            str(bound): 100 * sum(error <= bound for error in errors) / max(len(scheduled), 1) for bound in BOUNDS_US
        },
        "error_us": {str(q): errors[min(int(q * len(errors)), len(errors) - 1)] if errors else 0.0 for q in QUANTILES},
    }


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("load", type=Path), p.add_argument("device"), p.add_argument("command", nargs="+")
    p.add_argument("--start", type=float, default=0), p.add_argument("--end", type=float, default=float("inf"))
    p.add_argument("--timeout", type=float), p.add_argument("--json", action="store_true")
    args = p.parse_args()
    with Recording(args.device, "block_bio_queue") as recording:
        output = subprocess.DEVNULL if args.json else None
        done = subprocess.run(args.command, stdout=output, timeout=args.timeout, check=False)
        recording.stop()
        # A replay that is not faithful, or has no clean end, is judged all the same if it issued its requests.
        if done.returncode not in (0, 3, 4):
            sys.exit(f"{args.command[0]} ended with {done.returncode}")
        found = (EVENT.search(line) for line in recording.lines())
        events = [(int(m[1]) * 1e6 + int(m[2]), (int(m[4]), direction(m[3]))) for m in found if m]
    result = judged(list(requests(args.load, args.start, args.end)), events)
    print(json.dumps(result) if args.json else "\n".join(f"{name}: {value}" for name, value in result.items()))


if __name__ == "__main__":
    main()
