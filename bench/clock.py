#!/usr/bin/env python3
"""Measures how well a controller knows the clocks of its hosts, and how well it starts them together; needs root.

    bench/clock.py [--hosts 8] [--trials 1000] [--starts 10]

Hosts are network namespaces of this machine, each with an sshd whose sessions have a CLOCK_MONOTONIC of their own (a
namespace of times), so that the truth is known. In the first part, ssh goes through a relay that delays each direction
by another time with jitter. A trial is a measurement of one host and its truth at a random time around it. The second
part starts replays with the null engine on all hosts at once, without a relay, and reads their CLOCK_MONOTONIC; beside
it, bench/wake.c shows how far apart the processors of this machine start as many processes.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import selectors
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "python/tests"))

import common
import pyarrow.parquet as pq
from campaign_hosts import EmulatedHosts, emulated_hosts

from iosonar.campaign.hosts import HostClock, Hosts
from iosonar.campaign.undo import Undo


class Relay:
    """Passes connections on to a host; each direction has a delay and jitter of its own, in seconds."""

    def __init__(self, address: str, delays: tuple[float, float], jitter: tuple[float, float]) -> None:
        self.delays, self.jitter, self.address = delays, jitter, address
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            here, _ = self.listener.accept()
            there = socket.create_connection((self.address, 22))
            for end in (here, there):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for direction, (source, target) in enumerate(((here, there), (there, here))):
                threading.Thread(target=self._pass, args=(source, target, direction), daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket, direction: int) -> None:
        chance = random.Random(direction)
        waiting: deque[tuple[float, bytes]] = deque()
        with selectors.DefaultSelector() as selector:
            selector.register(source, selectors.EVENT_READ)
            is_open = True
            while is_open or waiting:
                left = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
                if is_open and selector.select(left):
                    try:
                        data = source.recv(65536)
                    except OSError:
                        data = b""
                    is_open = bool(data)
                    due = time.monotonic() + self.delays[direction] + chance.expovariate(1 / self.jitter[direction])
                    # Bytes keep their order.
                    waiting.append((max(due, waiting[-1][0]) if waiting else due, data))
                elif waiting and not is_open:
                    time.sleep(max(0.0, waiting[0][0] - time.monotonic()))
                while waiting and waiting[0][0] <= time.monotonic():
                    try:
                        target.sendall(waiting[0][1])
                    except OSError:
                        return
                    if not waiting.popleft()[1]:
                        target.close()


def offsets(made: EmulatedHosts, chance: random.Random) -> dict[str, int]:
    """Gives each host a clock of its own; returns how far it is ahead, in seconds."""
    found = {}
    for name, host in made.hosts.items():
        host.stop_sshd()
        host.clock_s = found[name] = chance.randrange(1, 10_000_000)
        host.start_sshd()
    return found


def measured(made: EmulatedHosts, ahead: dict[str, int], trials: int, chance: random.Random, asymmetry: bool) -> None:
    relays = {}
    config = made.config.read_text()
    if asymmetry:
        for name, host in made.hosts.items():
            delays = chance.uniform(0, 3e-3), chance.uniform(0, 3e-3)
            relays[name] = Relay(host.address, delays, (chance.uniform(1e-5, 1e-3), chance.uniform(1e-5, 1e-3)))
            there = f"HostName 127.0.0.1\n    Port {relays[name].port}\n    HostKeyAlias {host.address}\n"
            config = config.replace(f"HostName {host.address}\n", there)
    path = made.directory / ("relayed" if asymmetry else "direct")
    path.write_text(config)
    os.environ["IOSONAR_SSH_CONFIG"] = str(path)
    errors, widths, hits, total, lock = [], [], [0], [0], threading.Lock()
    each = -(-trials // len(made.hosts))

    with tempfile.TemporaryDirectory() as directory, Hosts(Undo(Path(directory))) as hosts:

        def of_host(name: str) -> None:
            own = random.Random(f"{name}{asymmetry}")
            host = hosts.get(name)
            for _ in range(each):
                exchanges = host.clock(20).exchanges
                clock = HostClock.of(exchanges)
                at = exchanges[0].sent_ns + own.randrange(-(10**9), 10**9)
                bounds = clock.offset_at(at)
                error = bounds.middle - ahead[name] * 1e9
                with lock:
                    errors.append(abs(error) / 1e3)
                    widths.append(bounds.uncertainty / 1e3)
                    hits[0] += abs(error) <= bounds.uncertainty + 2
                    total[0] += 1

        threads = [threading.Thread(target=of_host, args=(name,)) for name in made.hosts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    print(
        f"{'relay with delays of 0-3 ms and jitter of up to 1 ms' if asymmetry else 'no relay'}: "
        f"{total[0]} trials, truth within the bounds in {hits[0] / total[0]:.2%}; error median "
        f"{statistics.median(errors):.0f} µs, worst {max(errors):.0f} µs; uncertainty median "
        f"{statistics.median(widths):.0f} µs, worst {max(widths):.0f} µs",
        flush=True,
    )


def started(made: EmulatedHosts, ahead: dict[str, int], starts: int) -> None:
    """How far apart all hosts began, by clocks of which the truth is known."""
    from campaign_trees import Campaign

    os.environ["IOSONAR_SSH_CONFIG"] = str(made.config)
    with tempfile.TemporaryDirectory() as directory:
        pairs = " ".join(f"{name}:/dev/null" for name in made.hosts)
        campaign = Campaign(Path(directory) / "top", replay_host_list=pairs, fake_io=1)
        for number in range(starts):
            campaign.leaf(f"leaf-{number}", "")
        environment = campaign.environment(IOSONAR_SSH_CONFIG=str(made.config))
        subprocess.run(campaign.command(), cwd=campaign.top, env=environment, stdout=subprocess.DEVNULL, check=True)
        spreads, said, issued = [], [], []
        for number in range(starts):
            began, first = [], []
            for instance in campaign.state(f"leaf-{number}").instances:
                zero, late = start_of(campaign.top / f"leaf-{number}" / instance.output)
                began.append(zero - ahead[instance.host] * 10**9)
                first.append(began[-1] + late)
                said.append((instance.start_skew_uncertainty_s or 0) * 1e6)
            spreads.append((max(began) - min(began)) / 1e3)
            issued.append((max(first) - min(first)) / 1e3)
    with common.directory() as place:
        woke = common.sh(common.compiled("wake", place), len(made.hosts), starts).split()
    print(
        f"{starts} starts of {len(made.hosts)} hosts, first to last: start {shown(spreads)}; first request "
        f"{shown(issued)}; a bare loop of as many processes {shown(list(map(float, woke)))}; stated uncertainty median "
        f"{statistics.median(said):.0f} µs"
    )


def shown(values: list[float]) -> str:
    return f"median {statistics.median(values):.0f} µs, worst {max(values):.0f} µs"


def start_of(result: Path) -> tuple[int, int]:
    """When a run began, by CLOCK_MONOTONIC of its host, and how late it issued its first request."""
    rows = pq.ParquetFile(result)
    times = rows.read(["scheduled_ns", "issued_ns"]).sort_by("scheduled_ns").slice(0, 1).to_pylist()[0]
    footer = json.loads(rows.schema_arrow.metadata[b"iosonar"])
    return int(footer["run"]["started_monotonic_ns"]), times["issued_ns"] - times["scheduled_ns"]


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--hosts", type=int, default=8), p.add_argument("--trials", type=int, default=1000)
    p.add_argument("--starts", type=int, default=10), p.add_argument("--seed", type=int, default=1)
    args = p.parse_args()
    chance = random.Random(args.seed)
    with emulated_hosts(args.hosts, devices=0) as made:
        ahead = offsets(made, chance)
        if args.trials:
            measured(made, ahead, args.trials, chance, asymmetry=True)
            measured(made, ahead, args.trials, chance, asymmetry=False)
        if args.starts:
            started(made, ahead, args.starts)


if __name__ == "__main__":
    main()
