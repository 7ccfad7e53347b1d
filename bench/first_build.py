#!/usr/bin/env python3
"""Measures the first build: time, processor time, and the size of the binary without symbols, in turns.

    bench/first_build.py [--profiles quick,release] [--rounds 5] [--before CLONE] [--package iosonar] [--json FILE]

Each build starts with an empty directory; crates must have been downloaded. With --before, a second clone, of an
earlier commit, is built beside this one in each round.
"""

import argparse
import os
import subprocess
import tempfile
import time
from pathlib import Path
from statistics import median

from common import keep

ROOT = Path(__file__).parents[1]


def built(clone: Path, profile: str, package: str) -> tuple[float, float, float]:
    """Wall and processor seconds of a build from nothing, and the size of the binary in MB."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as target:
        environment = {**os.environ, "CARGO_TARGET_DIR": target, "CARGO_INCREMENTAL": "0"}
        words = ["cargo", "build", "--quiet", "--locked", "--profile", profile, "--package", package]
        before, start = os.times(), time.monotonic()
        subprocess.run(words, cwd=clone, env=environment, check=True)
        wall, after = time.monotonic() - start, os.times()
        spent = after.children_user + after.children_system - before.children_user - before.children_system
        binary = Path(target) / ("debug" if profile == "dev" else profile) / "iosonar"
        if not binary.exists():
            return wall, spent, 0.0
        stripped = Path(target) / "stripped"
        subprocess.run(["objcopy", "--strip-all", binary, stripped], check=True)
        return wall, spent, stripped.stat().st_size / 1e6


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--profiles", default="quick,release"), p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--before", type=Path), p.add_argument("--package", default="iosonar")
    p.add_argument("--json", type=Path)
    args = p.parse_args()
    clones = {"this": ROOT} | ({"before": args.before} if args.before else {})
    ways = [(profile, name) for profile in args.profiles.split(",") for name in clones]
    rounds: dict[tuple[str, str], list[tuple[float, float, float]]] = {way: [] for way in ways}
    for _ in range(args.rounds):
        for profile, name in ways:
            rounds[profile, name].append(built(clones[name], profile, args.package))
    print(
        "| profile | clone | wall, s | processor, s | least | most | without symbols, MB |\n|---|---|---|---|---|---|---|"
    )
    for (profile, name), found in rounds.items():
        walls, spent, sizes = zip(*found, strict=True)
        times = f"{median(walls):.0f} | {median(spent):.0f} | {min(spent):.0f} | {max(spent):.0f}"
        print(f"| {profile} | {name} | {times} | {sizes[-1]:.1f} |")
    keep(args, [{"profile": way[0], "clone": way[1], "builds": found} for way, found in rounds.items()])


if __name__ == "__main__":
    main()
