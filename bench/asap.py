#!/usr/bin/env python3
"""How fast is `iosonar replay --asap` beside fio's io_uring engine, on the same device, depth, size and mix?

    bench/asap.py [--pairs 9] [--requests 1500000] [--depth 64] [--iosonar PATH] [--json FILE]

Both work, in turn, on a loop device with direct I/O over a file in memory: 4 KiB requests at random places, 70 % reads.
fio runs as long as the replay took. iosonar tracks conflicts and records every request, as always. Needs root and fio.
"""

import json
import statistics
import sys

from common import bench, keep, options, sh


def main() -> None:
    p = options(__doc__)
    p.add_argument("--pairs", type=int, default=9), p.add_argument("--requests", type=int, default=1_500_000)
    p.add_argument("--depth", type=int, default=64)
    args = p.parse_args()
    rows = []
    with bench(args.mib) as (folder, device):
        load, output = folder / "asap.load.parquet", folder / "asap.replay.parquet"
        duration = f"{args.requests / 100_000}s"
        shape = ["--rate", 100_000, "--duration", duration, "--size", "4k", "--span", f"{args.mib}M", "--reads", 0.7]
        sh(args.iosonar, "generate", "uniform", load, *shape)
        own = [args.iosonar, "replay", load, "--target", device.path, "--output", output, "--overwrite"]
        own += ["--asap", "--depth", args.depth, "--json"]
        fio = ["fio", "--name=peer", f"--filename={device.path}", "--direct=1", "--ioengine=io_uring"]
        fio += [f"--iodepth={args.depth}", "--rw=randrw", "--rwmixread=70", "--bs=4k", "--time_based"]
        fio += ["--norandommap", "--output-format=json"]
        for n in range(args.pairs):
            ours = json.loads(sh(*own))
            job = json.loads(sh(*fio, f"--runtime={max(1, ours['elapsed_s']):.0f}"))["jobs"][0]
            rows.append((ours["iops"], job["read"]["iops"] + job["write"]["iops"]))
            print(f"pair {n + 1}: iosonar {rows[-1][0]:.0f}, fio {rows[-1][1]:.0f} IOPS", file=sys.stderr, flush=True)
    own, peer = (statistics.median(r[i] for r in rows) for i in (0, 1))
    ratio = statistics.median(a / b for a, b in rows)
    print("fio command:", *fio)
    print("| pairs | iosonar --asap, median IOPS | fio io_uring, median IOPS | ratio pair by pair, median |")
    print("|---|---|---|---|")
    print(f"| {args.pairs} | {own:.0f} | {peer:.0f} | {ratio:.3f} |")
    keep(args, rows)


if __name__ == "__main__":
    main()
