#!/usr/bin/env python3
"""Measures `iosonar files replay`: its rate beside a C loop that does the same reads, without I/O, and its delay.

    bench/files_replay.py --make target/release/examples/make_calls [--rounds 5] [--calls 2000000] [--iosonar PATH]

Reads are of 512 bytes from a file in memory of 4 MiB. `--fake-io` issues no call: with all calls it is the rate of reading,
planning and recording; with 16,000 calls, which fit in the queue of planned calls, that of the engine alone. The delay is
that of one or four threads that read, write and stat at random times with 1,000 to 20,000 calls/s. All take turns.
"""

import json
import statistics
import sys
from pathlib import Path

from common import directory, keep, options, sh

QUEUED = 16_000
# Calls per second, threads.
TIMED = ((1_000, 1), (5_000, 1), (20_000, 1), (5_000, 4), (10_000, 4), (20_000, 4))
SECONDS = 5


def main() -> None:
    p = options(__doc__)
    p.add_argument("--make", type=Path, required=True), p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--calls", type=int, default=2_000_000)
    args = p.parse_args()
    results: dict[str, list] = {"loop": [], "asap": [], "fake": [], "engine": [], "errors": []}
    with directory() as place:
        root = place / "root"
        root.mkdir()
        (root / "data").write_bytes(bytes(4 << 20))
        for thread in range(4):
            (root / f"file-{thread}").write_bytes(bytes(1 << 20))
        trace, loop = place / "t.calls.parquet", place / "loop"
        sh("cc", "-O2", "-o", loop, Path(__file__).parent / "pread_loop.c")
        sh(args.make, "reads", trace, args.calls, 4 << 20, 512)
        short = place / "short.calls.parquet"
        sh(args.make, "reads", short, QUEUED, 4 << 20, 512)
        timed = {(rate, threads): place / f"{rate}-{threads}.calls.parquet" for rate, threads in TIMED}
        for (rate, threads), path in timed.items():
            sh(args.make, "mixed", path, rate * SECONDS, rate, threads)

        def replay(what: Path, *more: object) -> dict:
            output = ["--root", root, "--output", place / "r.calls-run.parquet", "--overwrite", "--json"]
            return json.loads(sh(args.iosonar, "files", "replay", what, *output, *more))

        for n in range(args.rounds):
            results["loop"].append(json.loads(sh(loop, root / "data", args.calls, 512))["calls_per_s"])
            asap = ["--timing", "asap", "--no-verify-order"]
            results["asap"].append(replay(trace, *asap)["calls_per_s"])
            results["fake"].append(replay(trace, *asap, "--fake-io")["calls_per_s"])
            results["engine"].append(replay(short, *asap, "--fake-io")["calls_per_s"])
            print(
                f"round {n + 1}:",
                *(f"{k} {v[-1]:.0f}/s" for k, v in results.items() if v and k != "errors"),
                file=sys.stderr,
                flush=True,
            )
            for (rate, threads), path in timed.items():
                found = replay(path)
                results["errors"].append(
                    {"rate": rate, "threads": threads}
                    | {
                        k: found[k]
                        for k in (
                            "delay_not_held_back_us",
                            "within_not_held_back_pct",
                            "elapsed_s",
                            "original_s",
                            "mismatches",
                        )
                    }
                )
    ratio = statistics.median(a / b for a, b in zip(results["asap"], results["loop"], strict=True))
    print(
        "| C loop, calls/s | replay --timing asap | ratio in each round, median | --fake-io | --fake-io, 16,000 calls |"
    )
    print("|---|---|---|---|---|")
    loop, asap, fake, engine = (statistics.median(results[k]) for k in ("loop", "asap", "fake", "engine"))
    print(f"| {loop:,.0f} | {asap:,.0f} | {ratio:.2f} | {fake:,.0f} | {engine:,.0f} |")
    print("\n| calls/s | threads | median error | 90 % | within 10 µs | 25 µs | 100 µs | duration of the original's |")
    print("|---|---|---|---|---|---|---|---|")
    for rate, threads in TIMED:
        rows = [row for row in results["errors"] if (row["rate"], row["threads"]) == (rate, threads)]

        def median(key: str, part: str, rows: list[dict] = rows) -> float:
            return statistics.median(row[key][part] for row in rows)

        times = statistics.median(row["elapsed_s"] / row["original_s"] for row in rows)
        within = " | ".join(f"{median('within_not_held_back_pct', part):.2f} %" for part in ("10", "25", "100"))
        error = f"{median('delay_not_held_back_us', 'p50'):.2f} µs | {median('delay_not_held_back_us', 'p90'):.2f} µs"
        print(f"| {rate:,} | {threads} | {error} | {within} | {100 * times:.2f} % |")
    keep(args, results)


if __name__ == "__main__":
    main()
