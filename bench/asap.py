#!/usr/bin/env python3
"""How fast is `iosonar replay --asap` beside fio's io_uring engine, on the same device, depth, size and mix?

    bench/asap.py [--pairs 9] [--requests 1500000] [--depth 64] [--iosonar PATH] [--json FILE]

Both work, in turn, on a loop device with direct I/O over a file in memory: 4 KiB requests at random places, 70 % reads.
fio runs as long as the replay took. iosonar tracks conflicts and records every request, as always. Needs root and fio.
"""

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path

from fidelity import LoopDevice, sh


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--pairs", type=int, default=9), p.add_argument("--requests", type=int, default=1_500_000)
    p.add_argument("--depth", type=int, default=64), p.add_argument("--mib", type=int, default=2048)
    p.add_argument("--iosonar", default="iosonar"), p.add_argument("--json", type=Path)
    args = p.parse_args()
    rows = []
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="iosonar-bench-") as name:
        folder = Path(name)
        load, output = folder / "asap.load.parquet", folder / "asap.replay.parquet"
        sh(
            args.iosonar,
            "generate",
            "uniform",
            load,
            "--rate",
            100_000,
            "--duration",
            f"{args.requests / 100_000}s",
            "--size",
            "4k",
            "--span",
            f"{args.mib}M",
            "--reads",
            0.7,
        )
        device = LoopDevice(folder, args.mib)
        fio = [
            "fio",
            "--name=peer",
            f"--filename={device.path}",
            "--direct=1",
            "--ioengine=io_uring",
            f"--iodepth={args.depth}",
            "--rw=randrw",
            "--rwmixread=70",
            "--bs=4k",
            "--time_based",
            "--norandommap",
            "--output-format=json",
        ]
        try:
            for n in range(args.pairs):
                own = json.loads(
                    sh(
                        args.iosonar,
                        "replay",
                        load,
                        "--target",
                        device.path,
                        "--output",
                        output,
                        "--overwrite",
                        "--asap",
                        "--depth",
                        args.depth,
                        "--json",
                    )
                )
                job = json.loads(sh(*fio, f"--runtime={max(1, own['elapsed_s']):.0f}"))["jobs"][0]
                rows.append((own["iops"], job["read"]["iops"] + job["write"]["iops"]))
                print(
                    f"pair {n + 1}: iosonar {rows[-1][0]:.0f}, fio {rows[-1][1]:.0f} IOPS", file=sys.stderr, flush=True
                )
        finally:
            device.close()
    own, peer = (statistics.median(r[i] for r in rows) for i in (0, 1))
    ratio = statistics.median(a / b for a, b in rows)
    print("fio command:", *fio)
    print("| pairs | iosonar --asap, median IOPS | fio io_uring, median IOPS | ratio pair by pair, median |")
    print("|---|---|---|---|")
    print(f"| {args.pairs} | {own:.0f} | {peer:.0f} | {ratio:.3f} |")
    if args.json:
        args.json.write_text(json.dumps(rows))


if __name__ == "__main__":
    main()
