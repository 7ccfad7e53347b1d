#!/usr/bin/env python3
"""Fits programs to loads, and prints how much the programs' loads differ.

    bench/fit_natural.py DIRECTORY [--seeds 1,2,3] [--iosonar PATH] [--json FILE]

DIRECTORY has loads in any format that iosonar reads. Each is fitted by `iosonar workload fit`; the table has the median of
each difference over the seeds, and beside it the same for the best kinds with few parameters (`--arrivals` and
`--positions` without hidden-markov and measured), which tells what these two kinds are worth.
"""

import json
import statistics
import sys
from pathlib import Path

from common import directory, keep, options, sh

SIMPLE = (("poisson", "uniform"), ("lognormal", "zipf"), ("on-off", "streams"))


def fitted(iosonar: str, load: Path, place: Path, *more: str) -> dict:
    return json.loads(sh(iosonar, "workload", "fit", load, place / "x.toml", "--overwrite", "--json", *more))


def chosen(found: dict, part: str) -> str:
    return ", ".join(c["kind"] for stream in found["streams"] for c in stream[part] if c["chosen"])


def simple(iosonar: str, load: Path, place: Path) -> dict | None:
    """The closest of a few pairs of kinds."""
    best = None
    for arrivals, positions in SIMPLE:
        try:
            found = fitted(iosonar, load, place, "--split", "none", "--arrivals", arrivals, "--positions", positions)
        except Exception:  # The kind does not fit this load at all.
            continue
        if best is None or found["mean_difference"] < best["mean_difference"]:
            best = found
    return best


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("directory", type=Path), parser.add_argument("--seeds", default="1,2,3")
    args = parser.parse_args()
    results = {}
    with directory() as place:
        for load in sorted(args.directory.iterdir()):
            runs = [fitted(args.iosonar, load, place, "--seed", seed) for seed in args.seeds.split(",")]
            plain = simple(args.iosonar, load, place)
            results[load.name] = {"fits": runs, "simple": plain}
            print(f"\n{load.name}\n")
            for run in runs:
                streams = ", ".join(stream["name"] for stream in run["streams"])
                print(f"- {streams}: {chosen(run, 'arrivals')}; {chosen(run, 'positions')}")
            print()
            print(
                "| | statistic | load | program | difference | by chance | simple kinds |\n|---|---|---|---|---|---|---|"
            )
            for row in runs[0]["comparison"]:
                same = [r for run in runs for r in run["comparison"] if r["what"] == row["what"]]
                other = [
                    r["difference"] for r in (plain or {"comparison": []})["comparison"] if r["what"] == row["what"]
                ]
                middle = {
                    key: statistics.median(r[key] for r in same)
                    for key in ("load", "program", "difference", "by_chance")
                    if row[key] is not None
                }
                value = {key: f"{middle[key]:,.4g}" if key in middle else "" for key in ("load", "program")}
                print(
                    f"| {row['what']} | {row['statistic']} | {value['load']} | {value['program']} | "
                    f"{middle['difference']:.3f} | {middle['by_chance']:.3f} | "
                    f"{f'{other[0]:.3f}' if other else ''} |"
                )
            means = statistics.median(run["mean_difference"] for run in runs)
            print(f"| mean difference | | | | {means:.3f} | | {plain['mean_difference'] if plain else 1:.3f} |")
    keep(args, results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
