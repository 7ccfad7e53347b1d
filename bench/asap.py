#!/usr/bin/env python3
"""Compares the throughput of `iosonar replay --asap` and of fio's io_uring engine on the same device, depth and mix.

    bench/asap.py [--pairs 9] [--requests 1500000] [--depth 64] [--isolate PARTS] [--iosonar PATH] [--json FILE]

Both run in turn on a loop device with direct I/O over a file in memory: 4 KiB requests at random positions, 70 % reads.
fio runs as long as the replay took. iosonar tracks conflicts and records every request, as always. `--isolate` adds a
third run to each pair: iosonar with `--isolate=PARTS`. Needs root and fio.
"""

import json
import statistics
import sys

from common import bench, keep, options, sh


def main() -> None:
    p = options(__doc__)
    p.add_argument("--pairs", type=int, default=9), p.add_argument("--requests", type=int, default=1_500_000)
    p.add_argument("--depth", type=int, default=64), p.add_argument("--isolate")
    args = p.parse_args()
    rows = []
    with bench(args.mib) as (directory, device):
        load, output = directory / "asap.load.parquet", directory / "asap.replay.parquet"
        duration = f"{args.requests / 100_000}s"
        shape = ["--rate", 100_000, "--duration", duration, "--size", "4k", "--span", f"{args.mib}M", "--reads", 0.7]
        sh(args.iosonar, "generate", "uniform", load, *shape)
        own = [args.iosonar, "replay", load, "--target", device.path, "--output", output, "--overwrite"]
        own += ["--asap", "--depth", args.depth, "--json"]
        fio = ["fio", "--name=peer", f"--filename={device.path}", "--direct=1", "--ioengine=io_uring"]
        fio += [f"--iodepth={args.depth}", "--rw=randrw", "--rwmixread=70", "--bs=4k", "--time_based"]
        fio += ["--norandommap", "--output-format=json"]
        isolated = [*own, f"--isolate={args.isolate}"]
        for n in range(args.pairs):
            ours = json.loads(sh(*own))
            row = {"iosonar": ours["iops"]}
            job = json.loads(sh(*fio, f"--runtime={max(1, ours['elapsed_s']):.0f}"))["jobs"][0]
            row["fio"] = job["read"]["iops"] + job["write"]["iops"]
            if args.isolate:
                row["isolated"] = json.loads(sh(*isolated))["iops"]
            rows.append(row)
            rates = ", ".join(f"{program} {iops:.0f}" for program, iops in row.items())
            print(f"pair {n + 1}: {rates} IOPS", file=sys.stderr, flush=True)
    print("fio command:", *fio)
    print("| pairs | setup | iosonar --asap, median IOPS | fio io_uring, median IOPS | ratio in each pair, median |")
    print("|---|---|---|---|---|")
    peer = statistics.median(row["fio"] for row in rows)
    for program, setup in (("iosonar", "by itself"), ("isolated", f"--isolate={args.isolate}")):
        if program in rows[0]:
            ratio = statistics.median(row[program] / row["fio"] for row in rows)
            median = statistics.median(row[program] for row in rows)
            print(f"| {args.pairs} | {setup} | {median:.0f} | {peer:.0f} | {ratio:.3f} |")
    keep(args, rows)


if __name__ == "__main__":
    main()
