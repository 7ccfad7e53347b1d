#!/usr/bin/env python3
"""Compares what fio asks for with what the program asks for that iosonar makes of the same job file.

    bench/fio_jobs.py [--jobs DIR] [--iosonar PATH] [--json FILE]

DIR has job files: by default examples/fio. fio runs each with its engine `null`, which completes at once, and writes its
requests with their times (`write_iolog`); one at a time, as its log has a request twice if the engine's queue was full.
iosonar runs the same file on a simulated device in virtual time. Both are counted: requests, operations, sizes, positions
(of 4 KiB each); and for jobs with a rate, requests per second and the coefficient of variation (CV) of the times between
them. Jobs without a rate are compared without times, which are the device's. For zipf, pareto and normal a third row has
the law itself, drawn by numpy from its distribution function.

Needs fio 3.31 or later, and the Python half of iosonar.
"""

import argparse
import itertools
import json
import re
import statistics
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from common import directory, sh

Request = tuple[float, str, int, int]  # seconds, operation, byte, bytes


def of_fio(job: Path, place: Path) -> dict[str, list[Request]]:
    """The requests of each section."""
    text = re.sub(r"(?m)^(ioengine|iodepth)=.*\n", "", job.read_text())
    sections = [name for name in re.findall(r"(?m)^\[(.*)\]$", text) if name != "global"]
    for number, name in enumerate(sections):
        text = text.replace(f"[{name}]\n", f"[{name}]\nioengine=null\nwrite_iolog={place}/{number}.log\n")
    copy = place / job.name
    copy.write_text(text)
    sh("fio", "--output=/dev/null", copy, cwd=place)
    seen = {}
    for number, name in enumerate(sections):
        log = place / f"{number}.log"
        rows = [line.split() for line in log.read_text().splitlines()]
        log.unlink()
        ops = {"read": "read", "write": "write", "trim": "discard", "sync": "flush", "datasync": "flush"}
        seen[name] = [
            (int(row[0]) / 1e6, ops[row[2]], int(row[3]) if len(row) > 3 else 0, int(row[4]) if len(row) > 4 else 0)
            for row in rows
            if len(row) > 2 and row[2] in ops
        ]
    return seen


def of_iosonar(args: argparse.Namespace, job: Path, place: Path) -> dict[str, list[Request]]:
    """The requests of each section: of its stream, or of its streams of reads and of writes."""
    run = place / "run.replay.parquet"
    options = ["--simulate", args.device, "--virtual-time", "--output", run, "--overwrite"]
    subprocess.run([args.iosonar, "workload", "run", job, *options], check=True, capture_output=True)
    table = pq.read_table(run)
    columns = {name: table[name].to_pylist() for name in ("stream", "scheduled_ns", "op", "sector", "sectors")}
    names = re.findall(r'(?m)^name = "(.*)"', sh(args.iosonar, "workload", "show", job))[1:]
    seen: dict[str, list[Request]] = {}
    for stream, at, op, sector, sectors in zip(*columns.values(), strict=True):
        name = re.sub("-(reads|writes|discards)$", "", names[stream])
        seen.setdefault(name, []).append((at / 1e9, str(op), sector * 512, sectors * 512))
    return {name: sorted(rows) for name, rows in seen.items()}


def counted(rows: list[Request], has_rate: bool) -> dict[str, float | str]:
    data = [row for row in rows if row[1] != "flush"]
    sizes = [length for *_, length in data]
    first = min(at for _, _, at, _ in data)
    starts = Counter((at - first) // 4096 for _, _, at, _ in data)
    tenth, ten = (sum(count for _, count in starts.most_common(n)) for n in (max(1, len(starts) // 10), 10))
    ends: dict[str, int] = {}
    follows = 0
    for _, op, at, length in data:
        follows += ends.get(op) == at
        ends[op] = at + length
    found: dict[str, float | str] = {
        "requests": len(rows),
        "mix": ", ".join(
            f"{op} {count / len(rows):.1%}" for op, count in sorted(Counter(row[1] for row in rows).items())
        ),
        "mean_size": statistics.mean(sizes),
        "sequential": follows / len(data),
        "places": len(starts),
        "hottest_tenth": tenth / len(data),
        "hottest_ten": ten / len(data),
    }
    if has_rate:
        span = rows[-1][0] - rows[0][0]
        found["rate"] = (len(rows) - 1) / span
        found["bandwidth"] = sum(sizes) / span
        gaps: list[float] = []
        for op in {row[1] for row in data}:
            times = [row[0] for row in data if row[1] == op]
            own = [later - sooner for sooner, later in itertools.pairwise(times)]
            mean = statistics.mean(own)
            gaps += [gap / mean for gap in own]
        found["cv"] = statistics.pstdev(gaps)
    return found


def of_law(text: str) -> list[Request] | None:
    """The requests that the job's distribution of positions says, for a job of one size."""
    law = re.search(r"(?m)^random_distribution=(zipf|pareto|normal):([\d.]+)", text)
    size = re.search(r"(?m)^size=(\d+)m", text)
    if not law or not size:
        return None
    kind, value, blocks = law[1], float(law[2]), int(size[1]) * 256
    upto = np.arange(1, blocks + 1) / blocks
    if kind == "zipf":
        below = np.cumsum(np.arange(1, blocks + 1) ** -value)
    elif kind == "pareto":
        below = upto ** (np.log(1 - value) / np.log(value))
    else:
        normal = statistics.NormalDist(0.5, value / 100)
        below = np.array([normal.cdf(x) - normal.cdf(0) for x in upto])
    drawn = np.searchsorted(below / below[-1], np.random.default_rng(1).random(blocks))
    return [(0.0, "read", int(block) * 4096, 4096) for block in drawn]


def shown(found: dict) -> str:
    text = (
        f"{found['requests']:,} | {found['mix']} | {found['mean_size'] / 1024:.2f} KiB | {found['sequential']:.1%} | "
        f"{found['places']:,} | {found['hottest_tenth']:.1%} | {found['hottest_ten']:.2%}"
    )
    if "rate" in found:
        return f"{text} | {found['rate']:.1f} | {found['bandwidth'] / 1024:,.0f} KiB/s | {found['cv']:.3f}"
    return f"{text} | | | "


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--jobs", type=Path, default=Path(__file__).parent.parent / "examples/fio")
    p.add_argument("--iosonar", default="iosonar"), p.add_argument("--json", type=Path)
    p.add_argument("--device", default="nvme", help="the simulated device")
    args = p.parse_args()
    print(
        "| job | program | requests | mix | mean size | sequential | places | hottest tenth | hottest ten | requests/s | bandwidth | CV |"
    )
    print("|" + "---|" * 12, flush=True)
    result = []
    with directory() as place:
        for job in sorted(args.jobs.glob("*.fio")):
            has_rate = re.search(r"(?m)^rate", job.read_text()) is not None
            peer, own = of_fio(job, place), of_iosonar(args, job, place)
            for name, rows in peer.items():
                programs = {"fio": rows, "iosonar": own[name], "law": of_law(job.read_text())}
                for program, requests in programs.items():
                    if requests is None:
                        continue
                    found = counted(requests, has_rate)
                    result.append({"file": job.name, "job": name, "program": program, **found})
                    print(f"| {name} | {program} | {shown(found)} |", flush=True)
    if args.json:
        args.json.write_text(json.dumps(result, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
