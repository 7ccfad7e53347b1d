#!/usr/bin/env python3
"""Measures what a replay loses while the controller copies its journal as it grows; needs root.

    bench/growth.py [--rate 50000] [--seconds 25] [--rounds 5]

The host is a network namespace of this machine with an sshd and a loop device, so the controller, which decompresses and
writes the copies, competes for the same processors. Campaigns with and without copies take turns.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "python/tests"))

import pyarrow.compute as pc
import pyarrow.parquet as pq
from binary import iosonar
from campaign_hosts import EmulatedHosts, emulated_hosts
from campaign_trees import PROGRAM, Campaign

DEVICE_BYTES = 256 << 20
WITHOUT_COPIES = "from iosonar.campaign import growth\ngrowth.EVERY_S = 1e6\n"


def campaign_of(top: Path, made: EmulatedHosts, rate: int, seconds: float) -> Campaign:
    """A tree that replays a load on the device of the host."""
    (host,) = made.hosts.values()
    pairs = f"{host.name}:{host.devices[0]}"
    campaign = Campaign(top, replay_host_list=pairs, replay_duration=seconds, cmode="with-conflicts")
    load = campaign.top / "made.load.gz"
    span = f"{DEVICE_BYTES >> 20}M"
    words = ("--rate", rate, "--duration", f"{seconds}s", "--span", span, "--size", "4k", "--reads", 0.7, "--overwrite")
    iosonar("generate", "poisson", load, *words)
    return campaign


def replayed(campaign: Campaign, made: EmulatedHosts, leaf: str, is_copied: bool) -> tuple[float, float, float, float]:
    """Shares of requests within 10 and 50 µs, the 99.9th percentile of delays in µs, and processor time in s."""
    campaign.leaf(leaf, "")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-c", PROGRAM if is_copied else WITHOUT_COPIES + PROGRAM]
    environment = campaign.environment(IOSONAR_SSH_CONFIG=str(made.config))
    done = subprocess.run(command, cwd=campaign.top, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"the campaign failed:\n{done.stdout}{done.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    (result,) = campaign.results(leaf)
    rows = pq.read_table(campaign.top / leaf / result, columns=["scheduled_ns", "issued_ns"])
    delays = pc.subtract(rows["issued_ns"], rows["scheduled_ns"])
    within = [100 * pc.mean(pc.less_equal(delays, limit * 1000).cast("double")).as_py() for limit in (10, 50)]
    worst = pc.quantile(delays, 0.999)[0].as_py() / 1000
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return within[0], within[1], worst, spent


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--rate", type=int, default=50_000), p.add_argument("--seconds", type=float, default=25)
    p.add_argument("--rounds", type=int, default=5)
    args = p.parse_args()
    found: dict[bool, list[tuple[float, float, float, float]]] = {True: [], False: []}
    with emulated_hosts(1, DEVICE_BYTES, devices=1) as made, tempfile.TemporaryDirectory() as directory:
        campaign = campaign_of(Path(directory) / "top", made, args.rate, args.seconds)
        for number in range(args.rounds):
            for is_copied in (True, False) if number % 2 else (False, True):
                found[is_copied].append(replayed(campaign, made, f"{number}-{int(is_copied)}", is_copied))
    for is_copied, rounds in found.items():
        ten, fifty, worst, spent = (statistics.median(each) for each in zip(*rounds, strict=True))
        print(
            f"{args.rate} requests/s, {'with' if is_copied else 'without'} copies, median of {len(rounds)} rounds: "
            f"{ten:.1f} % within 10 µs ({min(r[0] for r in rounds):.1f} to {max(r[0] for r in rounds):.1f}), "
            f"{fifty:.2f} % within 50 µs, 99.9th percentile {worst:.0f} µs; controller and ssh {spent:.1f} s of a processor"
        )


if __name__ == "__main__":
    main()
