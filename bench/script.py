#!/usr/bin/env python3
"""Measures what scripts cost in the loop: the time from a completion to the issue of the request that follows from it.

    bench/script.py [--pairs 9] [--seconds 4] [--iosonar PATH] [--json FILE]

On a loop device over a file in memory, in turns: a closed stream in TOML, and the same stream as a script. Beside each, in
the same run, an open stream of Poisson arrivals in TOML: its share of requests within 10 µs of their scheduled time shows
whether a script holds up other streams. Then the open stream alone, as TOML and as a script that runs ahead of the loop.
Prints a table of medians over the pairs. Needs root.
"""

import argparse
import json
import statistics
import sys
from pathlib import Path

from common import bench, keep, options, sh

HEAD = 'name = "pair"\nabout = "A pair of streams"\n'
OPEN = """
[[stream]]
name = "open"
arrivals = "poisson rate=2000"
op = "read"
"""
OPEN_SCRIPT = """
[[stream]]
name = "open"
code = '''
local gap, place = distribution("exponential mean=500us"), positions("uniform", 4096)
function start() wake_in(gap()) end
function timer()
  read(place(), 4096)
  wake_in(gap())
end
'''
"""
CLOSED = """
[[stream]]
name = "closed"
closed = true
instances = 4
think = "exponential mean=1ms"
op = "read"
[[stream.step]]
[[stream.step]]
"""
CLOSED_SCRIPT = """
[[stream]]
name = "closed"
instances = 4
code = '''
local think, place = distribution("exponential mean=1ms"), positions("uniform", 4096)
local second = false
function start() wake_in(think()) end
function timer() read(place(), 4096) end
function completion()
  second = not second
  if second then read(place(), 4096) else wake_in(think()) end
end
'''
"""
WAYS = {
    "closed, in TOML": OPEN + CLOSED,
    "closed, as a script": OPEN + CLOSED_SCRIPT,
    "open alone, in TOML": OPEN,
    "open alone, as a script": OPEN_SCRIPT,
}
QUERY = """
SELECT stream_name AS stream, cause IS NOT NULL AS follows, count(*) AS requests,
  quantile_cont((issued_ns - scheduled_ns) / 1e3, 0.5) AS median_us,
  quantile_cont((issued_ns - scheduled_ns) / 1e3, 0.99) AS p99_us,
  100 * avg(CASE WHEN issued_ns - scheduled_ns <= 10000 THEN 1 ELSE 0 END) AS within_10
FROM requests WHERE outcome = 'ok' GROUP BY ALL
"""


def measured(args: argparse.Namespace, text: str, device: str, place: Path) -> dict:
    """Delays of each stream, of requests that follow from a completion and of others."""
    program, run = place / "pair.toml", place / "pair.replay.parquet"
    program.write_text(HEAD + text)
    how = ("--target", device, "--for", f"{args.seconds}s", "--output", run, "--overwrite")
    sh(args.iosonar, "workload", "run", program, *how)
    rows = json.loads(sh(args.iosonar, "sql", run, QUERY, "--format", "json"))
    return {(row["stream"], row["follows"]): row for row in rows}


def main() -> None:
    p = options(__doc__, mib=1024)
    p.add_argument("--pairs", type=int, default=9), p.add_argument("--seconds", type=float, default=4)
    args = p.parse_args()
    seen: dict[str, list[dict]] = {way: [] for way in WAYS}
    with bench(args.mib) as (place, device):
        for n in range(args.pairs):
            for way in WAYS if n % 2 == 0 else reversed(WAYS):
                seen[way].append(measured(args, WAYS[way], device.path, place))
            print(f"pair {n + 1} of {args.pairs}", file=sys.stderr, flush=True)
    print("| program | requests that | requests | median delay | p99 | within 10 µs |")
    print("|---|---|---|---|---|---|")
    results = []
    for way, runs in seen.items():
        for key in sorted(runs[0], key=str):
            rows = [run[key] for run in runs if key in run]
            middle = {
                name: statistics.median(row[name] for row in rows)
                for name in ("requests", "median_us", "p99_us", "within_10")
            }
            what = f"{key[0]}, " + ("follow from a completion" if key[1] else "have a time of their own")
            print(
                f"| {way} | {what} | {middle['requests']:,.0f} | {middle['median_us']:.2f} µs | {middle['p99_us']:.1f} µs |"
                f" {middle['within_10']:.2f} % |"
            )
            results.append({"program": way, "requests": what, **middle})
    keep(args, results)


if __name__ == "__main__":
    main()
