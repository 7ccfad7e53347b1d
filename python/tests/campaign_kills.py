"""Kills a campaign at random moments and resumes it: `campaign_kills.py [TIMES] [SEED]`, as root.

Three hosts with two loop devices each, two loads × two depths × two modes of conflicts. What is killed: the controller
(SIGKILL, SIGTERM), the ssh connections, all processes of a host. After each kill the campaign is started again; every
leaf must have all of its results or none, and in the end nothing may be left on the hosts or on the controller.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from campaign_hosts import EmulatedHosts, emulated_hosts

KINDS = ("controller SIGKILL", "controller SIGTERM", "ssh connections", "processes of a host")
IOSONAR = str(Path(sys.executable).with_name("iosonar"))

RESULTS = 6
"""Of each leaf: one for each device."""

MAIN = """
replay_host_list="{pairs}"
input_file_list="{load}"
threads=16
replay_duration=1
start_grace=1
output_label=K
output_format=parquet
reconnect_timeout=20
"""


@dataclass
class Trial:
    """A campaign that is killed and resumed."""

    top: Path
    hosts: EmulatedHosts
    temporary: Path
    log: list[str] = field(default_factory=list)
    kills: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    rounds: int = 0

    @property
    def leaves(self) -> list[Path]:
        """The directories of the runs."""
        return sorted(path for path in self.top.glob("*/*/*") if path.is_dir())

    def start(self) -> subprocess.Popen[bytes]:
        """Starts the campaign, or resumes it."""
        environment = {**os.environ, **self.hosts.environment, "TMPDIR": str(self.temporary)}
        words = [sys.executable, "-c", "from iosonar.cli.campaign import main; main()", "--work-dir", str(self.top)]
        # Not in the foreground of a terminal, and with signals as a shell gives them.
        return subprocess.Popen(
            words, env=environment, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )

    def kill(self, process: subprocess.Popen[bytes], kind: str, chance: random.Random) -> None:
        """Kills something while the campaign runs."""
        self.kills[kind] += 1
        if kind == "controller SIGKILL":
            process.kill()
        elif kind == "controller SIGTERM":
            process.send_signal(signal.SIGTERM)
        elif kind == "ssh connections":
            self.hosts.kill_ssh()
        else:
            self.hosts[chance.choice(sorted(self.hosts.hosts))].kill_processes()
        print(f"{sum(self.kills.values())}: {kind}", flush=True)

    def run_once(self, times: int, chance: random.Random) -> None:
        """Runs or resumes the campaign, and kills something every few seconds until it ends."""
        process, codes = self.start(), {0, 1}
        while sum(self.kills.values()) < times and codes == {0, 1}:
            try:
                process.wait(chance.uniform(0.2, 16.0))
                break
            except subprocess.TimeoutExpired:
                kind = KINDS[sum(self.kills.values()) % len(KINDS)]
                self.kill(process, kind, chance)
                codes = {"controller SIGKILL": {-9}, "controller SIGTERM": {0, 1, 130, -15}}.get(kind, codes)
        code = self.wait(process)
        assert code in codes, (code, self.log[-1])
        for name, reason in self.failed():
            print(f"  {name}: {reason}", flush=True)

    def wait(self, process: subprocess.Popen[bytes]) -> int:
        """Waits for the end of a campaign."""
        try:
            _, said = process.communicate(timeout=240)
        except subprocess.TimeoutExpired:
            process.kill()
            raise AssertionError(f"the campaign hangs: {process.communicate()[1].decode()}") from None
        self.log.append(said.decode(errors="replace"))
        assert b"Traceback" not in said, said.decode(errors="replace")
        return process.returncode

    def check_leaves(self) -> bool:
        """Whether all leaves are done. Each has all of its results, or none and a reason."""
        done = 0
        for leaf in self.leaves:
            results = list(leaf.glob("*.replay.parquet"))
            state = self.state(leaf)
            # A kill may come while the results get their names.
            is_finishing = state.get("state") == "finishing"
            assert len(results) in (0, RESULTS) or is_finishing, (leaf, results)
            if results:
                assert state["state"] in ("done", "finishing"), (leaf, state["state"])
                done += 1
            elif state.get("state") == "failed":
                assert state["reason"], leaf
                self.reasons[state["reason"].partition(" ")[2]] += 1
        return done == len(self.leaves)

    def check_end(self) -> None:
        """After a campaign that came to its end: nothing is left, and all results are complete."""
        assert self.hosts.leftovers() == []
        assert list((self.top / ".campaign" / "undo").iterdir()) == []
        assert list(self.temporary.iterdir()) == []
        for leaf in self.leaves:
            assert not list(leaf.glob(".*")), list(leaf.iterdir())
            for result in leaf.glob("*.replay.parquet"):
                words = [IOSONAR, "info", "--json", str(result)]
                info = json.loads(subprocess.run(words, check=True, capture_output=True).stdout)
                assert info["complete"] and info["counts"]["requests"] > 0, result

    def state(self, leaf: Path) -> dict[str, Any]:
        """The content of campaign.json."""
        file = leaf / "campaign.json"
        found: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
        return found

    def failed(self) -> list[tuple[str, str]]:
        """The leaves that failed, and why."""
        known = [(str(leaf.relative_to(self.top)), self.state(leaf)) for leaf in self.leaves]
        return [(name, str(state["reason"])) for name, state in known if state.get("state") == "failed"]

    def clear(self) -> None:
        """Removes all results, for another round."""
        for leaf in self.leaves:
            shutil.rmtree(leaf)
            leaf.mkdir()
        self.rounds += 1


def make_tree(top: Path, hosts: EmulatedHosts, depths: tuple[str, ...]) -> None:
    """Two loads, some depths, two modes of conflicts."""
    loads = {}
    for name, rate in (("slow", 50), ("fast", 400)):
        loads[name] = top / f"{name}.load.parquet"
        words = [IOSONAR, "generate", "poisson", str(loads[name]), "--rate", str(rate), "--duration", "3"]
        subprocess.run(words, check=True, capture_output=True)
    pairs = hosts.environment["IOSONAR_TEST_HOSTS"]
    (top / "default-main.conf").write_text(MAIN.format(pairs=pairs, load=loads["slow"]))
    for name, load in loads.items():
        (top / f"{name}.conf").write_text(f"input_file_list={load}\n")
        for threads in depths:
            (top / f"threads-{threads}.conf").write_text(f"threads={threads}\n")
            for mode in ("with-conflicts", "with-partial"):
                (top / f"{mode}.conf").write_text(f"cmode={mode}\n")
                (top / name / f"threads-{threads}" / mode).mkdir(parents=True)


def run(times: int, seed: int, depths: tuple[str, ...] = ("004", "064")) -> Trial:
    """Kills a campaign that often; checks after each kill and at the end."""
    chance = random.Random(seed)
    with emulated_hosts() as hosts, tempfile.TemporaryDirectory(prefix="iosonar-kills.") as directory:
        during = block_layer(hosts.directory)
        trial = Trial(Path(directory) / "top", hosts, Path(directory) / "tmp")
        trial.temporary.mkdir()
        trial.top.mkdir()
        make_tree(trial.top, hosts, depths)
        while sum(trial.kills.values()) < times:
            trial.run_once(times, chance)
            if trial.check_leaves():
                # The kill may have come between the last leaf and the end.
                trial.wait(trial.start())
                trial.check_end()
                trial.clear()
        for _ in range(5):
            trial.wait(trial.start())
            if trial.check_leaves():
                break
        assert trial.check_leaves()
        trial.check_end()
        assert block_layer(hosts.directory) == during
    assert block_layer(hosts.directory) == ([], [])
    return trial


def block_layer(directory: Path) -> tuple[list[str], list[str]]:
    """The loop devices over files of a directory, and the mounts in it."""
    files = [path.read_text().strip() for path in Path("/sys/block").glob("loop*/loop/backing_file")]
    mounts = Path("/proc/self/mounts").read_text().splitlines()
    return sorted(file for file in files if str(directory) in file), [line for line in mounts if str(directory) in line]


if __name__ == "__main__":
    begun = time.monotonic()
    ended = run(int(sys.argv[1]) if len(sys.argv) > 1 else 50, int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    print(f"{sum(ended.kills.values())} kills: {dict(ended.kills)}; {ended.rounds} whole campaigns between them")
    print(f"failed leaves: {dict(ended.reasons)}; {time.monotonic() - begun:.0f} s")
