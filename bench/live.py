#!/usr/bin/env python3
"""Measures whether `replay --metrics`, read once a second, and `--live` change the delays of the run that they show.

    bench/live.py [--rounds 5] [--rate 10000] [--seconds 4] [--waits spin,hybrid] [--mib 512] [--iosonar PATH] [--json FILE]

Poisson arrivals of 4 KiB, 70 % reads, on a loop device with direct I/O over a file in memory; the ways take turns, the
plain one twice: the difference of these two is the noise. The delay is that of all requests, the processor time that of
the whole process. `--live` draws on a terminal of script(1). Needs root.
"""

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path
from typing import Any

from common import bench, keep, options, sh
from replayers import turns

WAYS = ("plain", "plain again", "--metrics", "--live")


def scrape(messages: Any, over: threading.Event) -> None:
    address = next(line.split()[-1] for line in messages if line.startswith("metrics at"))
    while not over.wait(1):
        try:
            urllib.request.urlopen(address, timeout=1).read()
        except OSError:
            return


def replay(args: argparse.Namespace, load: Path, device: str, output: Path, wait: str, way: str) -> dict[str, float]:
    words = [args.iosonar, "replay", load, "--target", device, "--output", output]
    words += ["--overwrite", "--no-sample", "--wait", wait]
    words += {"--metrics": ["--metrics", "0"], "--live": ["--live"]}.get(way, [])
    command = [str(word) for word in words]
    if way == "--live":
        command = ["script", "-qefc", shlex.join(command), "/dev/null"]
    run = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    over = threading.Event()
    reader = threading.Thread(target=scrape, args=(run.stderr, over)) if way == "--metrics" else None
    if reader:
        reader.start()
    _, code, used = os.wait4(run.pid, 0)
    over.set()
    if reader:
        reader.join()
    if code != 0:
        raise SystemExit(f"{command} ended with {os.waitstatus_to_exitcode(code)}")
    found: dict[str, Any] = json.loads(sh(args.iosonar, "info", "--json", output))
    run_ = found.get("run") or found["metadata"]["run"]
    delay = run_["statistics"]["delay_us"]
    return {**{name: delay[name] for name in ("p50", "p99", "p999")}, "processor_s": used.ru_utime + used.ru_stime}


def main() -> None:
    p = options(__doc__, mib=512)
    p.add_argument("--rounds", type=int, default=5), p.add_argument("--rate", type=int, default=10_000)
    p.add_argument("--seconds", type=float, default=4), p.add_argument("--waits", default="spin,hybrid")
    args = p.parse_args()
    seen: dict[str, list[dict[str, float]]] = {}
    with bench(args.mib) as (directory, device):
        load = directory / "a.load.parquet"
        shape = ["--rate", args.rate, "--duration", f"{args.seconds}s", "--size", "4k", "--reads", "0.7"]
        sh(args.iosonar, "generate", "poisson", load, *shape, "--span", f"{args.mib}M")
        for n in range(args.rounds):
            for wait in args.waits.split(","):
                for way in turns(list(WAYS), n):
                    row = replay(args, load, device.path, directory / "run.replay.parquet", wait, way)
                    seen.setdefault(f"{wait} | {way}", []).append(row)
            print(f"round {n + 1} of {args.rounds}", file=sys.stderr, flush=True)
    print(f"load average {os.getloadavg()[0]:.1f} at the end\n")
    print("| `--wait` | shown by | delay p50, µs | p99 | p99.9: median (least to most) | processor s |")
    print("|" + "---|" * 6)
    for which, rows in seen.items():
        m = {key: statistics.median(row[key] for row in rows) for key in rows[0]}
        tail = sorted(row["p999"] for row in rows)
        print(
            f"| {which} | {m['p50']:.1f} | {m['p99']:.1f} | {m['p999']:.1f} ({tail[0]:.1f} to {tail[-1]:.1f}) "
            f"| {m['processor_s']:.2f} |"
        )
    keep(args, seen)


if __name__ == "__main__":
    main()
