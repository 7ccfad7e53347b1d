#!/usr/bin/env python3
"""Measures a controller with many agents: one start of them all, their results collected; needs root.

    bench/agents.py [--agents 200] [--lose 1]

Agents are replays with the null engine, each a host of its own to the controller: an ssh connection to the same sshd in
a network namespace of this machine. Time and memory are those of the controller and its ssh processes. Then the campaign
runs again, and the connections and processes of `--lose` agents are killed meanwhile: the report must name their hosts.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "python/tests"))

from campaign_hosts import EmulatedHost, EmulatedHosts, emulated_hosts
from campaign_trees import Campaign
from report import process_tree, pss_kib

from iosonar.campaign.program import own_program


def named(made: EmulatedHosts, agents: int) -> list[str]:
    """Gives the one host many names; each gets a connection of its own."""
    (host,) = made.hosts.values()
    host.stop_sshd()
    with (host.directory / "sshd_config").open("a") as config:
        config.write("MaxStartups 1000\n")
    # Else each agent would have a copy of the program, in memory.
    (host.programs / "iosonar").symlink_to(own_program())
    host.start_sshd()
    names = [f"agent-{number:03}" for number in range(agents)]
    blocks = [f"Host {name}\n    HostName {host.address}\n    HostKeyAlias {host.address}\n" for name in names]
    made.config.write_text("".join(blocks) + made.config.read_text())
    return names


def lose(host: EmulatedHost, number: int) -> None:
    """Kills the first replays that have begun."""
    killed: set[int] = set()
    until = time.monotonic() + 600
    while len(killed) < number and time.monotonic() < until:
        for pid in host.processes():
            with contextlib.suppress(OSError):
                words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                if b"replay" in words and b"--start-file" in words and len(killed) < number and pid not in killed:
                    start = Path(os.fsdecode(words[words.index(b"--start-file") + 1]))
                    if start.exists():
                        os.kill(pid, signal.SIGKILL)
                        killed.add(pid)
        time.sleep(0.2)


def watched(campaign: Campaign, made: EmulatedHosts) -> tuple[float, float, float, int]:
    """Runs the campaign: its time, the most memory of the controller, that of it and ssh, in MiB, and its exit code."""
    environment = campaign.environment(IOSONAR_SSH_CONFIG=str(made.config))
    begin = time.monotonic()
    process = subprocess.Popen(
        campaign.command(), cwd=campaign.top, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    own = whole = 0.0
    while process.poll() is None:
        own = max(own, pss_kib(process.pid) / 1024)
        ssh = made.ssh_processes()
        whole = max(whole, sum(pss_kib(pid) for pid in {*process_tree(process.pid), *ssh}) / 1024)
        time.sleep(1)
    return time.monotonic() - begin, own, whole, process.returncode


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--agents", type=int, default=200), p.add_argument("--lose", type=int, default=1)
    args = p.parse_args()
    with emulated_hosts(1, devices=0) as made, tempfile.TemporaryDirectory() as directory:
        names = named(made, args.agents)
        pairs = " ".join(f"{name}:/dev/null" for name in names)
        options = "(--wait sleep)"
        campaign = Campaign(Path(directory) / "top", replay_host_list=pairs, fake_io=1, start_grace=5)
        campaign.leaf("all", f"replay_options={options}\n")
        took, own, whole, code = watched(campaign, made)
        instances = campaign.state("all").instances
        skews = [abs(each.start_skew_s) * 1e6 for each in instances if each.start_skew_s is not None]
        print(
            f"{args.agents} agents: {took:.0f} s, exit code {code}, {len(campaign.results('all'))} results; controller "
            f"{own:.0f} MiB, with ssh {whole:.0f} MiB; start skew up to {max(skews, default=0):.0f} µs of "
            f"{len(skews)} agents",
            flush=True,
        )
        if code:
            print(
                f"failed: {campaign.state('all').reason}\n{(campaign.top / 'all/campaign.log').read_text()}", flush=True
            )
        if args.lose:
            campaign.leaf("loses", f"replay_options={options}\nreplay_duration=2\n")
            killer = threading.Thread(target=lose, args=(next(iter(made.hosts.values())), args.lose), daemon=True)
            killer.start()
            took, _, _, code = watched(campaign, made)
            failed = [each for each in campaign.state("loses").instances if each.state == "failed"]
            report = json.loads(campaign.run("report", "--json").stdout)
            print(
                f"{args.lose} killed: {took:.0f} s, exit code {code}, named: "
                f"{', '.join(f'{each.host} ({each.reason})' for each in failed) or 'none'}; the report "
                f"{'names' if all(each.host in json.dumps(report) for each in failed) else 'DOES NOT NAME'} them"
            )


if __name__ == "__main__":
    main()
