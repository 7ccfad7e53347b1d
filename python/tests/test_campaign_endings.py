"""How a leaf ends that does not end well: what is said of it, and that nothing waits for it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from campaign_trees import Campaign

from iosonar.campaign import endings, outcome
from iosonar.campaign.state import InstanceState


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    return Campaign(tmp_path / "top")


@pytest.mark.parametrize("options", ["--help", "--version"])
def test_a_replay_without_a_result_fails_its_leaf_at_once(campaign: Campaign, options: str) -> None:
    campaign.leaf("a", f"replay_options=({options})")
    campaign.leaf("b")
    done = campaign.run(status=1)
    assert "the replay ended before its start, with exit code 0 and without a result" in done.stderr
    assert campaign.state("a").state == "failed" and campaign.state("b").state == "done"
    assert campaign.left() == []


def when_running(campaign: Campaign, leaf: str, signal_to: str, number: int) -> None:
    """Sends a signal to the shell or the replay of a leaf, when its replay has begun."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        time.sleep(0.05)
        try:
            progress = json.loads((campaign.top / ".campaign/progress").read_text())["progress"]
            shell = int((campaign.top / ".campaign/shell").read_text().split()[0])
        except (OSError, ValueError):
            continue
        # The journal is written after a quarter of a second, on a busy machine later.
        if not progress.startswith(("0 s", "1 s", "2 s")):
            break
    if signal_to == "shell":
        os.kill(shell, number)
        return
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            words = (directory / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if words[1:2] == [b"replay"] and os.fsencode(campaign.device) in words:
            os.kill(int(directory.name), number)


@pytest.mark.parametrize(
    ("signal_to", "number", "words"),
    [
        ("shell", signal.SIGKILL, "the shell of the leaf was ended by SIGKILL in main_run, not by the campaign"),
        ("replay", signal.SIGKILL, "the replay was ended by SIGKILL at "),
        ("replay", signal.SIGTERM, "the replay was stopped by a signal at "),
    ],
)
def test_a_leaf_ended_by_a_signal_says_who_sent_it_and_when(
    campaign: Campaign, signal_to: str, number: int, words: str
) -> None:
    campaign.leaf("a", "replay_duration=60; replay_options=(--edit 'repeat')")
    killer = threading.Thread(target=when_running, args=(campaign, "a", signal_to, number))
    killer.start()
    done = campaign.run(status=1)
    killer.join()
    reason = campaign.state("a").reason
    assert words in reason and "exit code" not in reason, done.stderr
    assert " s of 60 s" in reason and "not by the campaign" in reason
    if signal_to == "replay":
        (kept,) = (campaign.top / "a/failed-1.old").iterdir()
        assert pq.read_table(kept).num_rows > 0, "what was measured until then"
        assert any("until then is in failed-1.old/" in note for note in campaign.state("a").notes)
    assert campaign.left() == []


def test_an_exit_code_of_a_signal_is_named_by_the_signal() -> None:
    assert [endings.signal_of(code) for code in (0, 1, 137, 143, -9, 128, 255)] == [
        *("", "", "SIGKILL", "SIGTERM", "SIGKILL", "", "")
    ]
    assert endings.by_whom("SIGKILL", -1) == "by the kernel, which ran out of memory meanwhile"
    assert "error of its own" in endings.who("SIGSEGV", "a")


def test_a_host_that_cannot_be_reached_is_called_unreachable(campaign: Campaign, tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    ssh = programs / "ssh"
    ssh.write_text("#!/bin/sh\necho 'ssh: connect to host x: No route to host' >&2\nexit 255\n")
    ssh.chmod(0o755)
    campaign.conf("user_modules", "user_module_dir=../modules")
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules/50_check.sh").write_text(
        'check_prepare() { check_installed_on x "pvcreate"; }; prepare_list="check_prepare $prepare_list"'
    )
    campaign.leaf("a")
    done = campaign.run(status=1, PATH=f"{programs}:{os.environ['PATH']}:{Path(campaign.command()[0]).parent}")
    assert done.stderr.count("No route to host") == 1 and "pvcreate" not in done.stderr
    assert done.stderr.endswith("0 leaves done, 1 failed: a\n")
    reason = campaign.state("a").reason
    assert reason.startswith("x is unreachable: ") and "No route to host" in reason and "pvcreate" not in reason


def test_a_replay_that_never_began_did_not_use_the_device(campaign: Campaign) -> None:
    campaign.leaf("a", "replay_options=(--no-such-option)")
    campaign.leaf("b")
    campaign.run(status=1)
    assert not any("replayed on" in note for note in campaign.state("b").notes)
    campaign.leaf("c")
    campaign.run(status=1)
    assert any("b replayed on" in note for note in campaign.state("c").notes)


def test_a_leaf_says_if_its_reads_return_only_zeros(campaign: Campaign) -> None:
    campaign.leaf("a")
    done = campaign.run()
    [note] = [text for text in campaign.state("a").notes if "returned only zeros" in text]
    assert "the target was not filled there; set enable_wipe=1" in note
    [line] = [text for text in done.stderr.splitlines() if text.startswith("leaf a: done")]
    assert "returned only zeros: fill the target" in line
    found: subprocess.CompletedProcess[str] = campaign.run(
        "report", "--json", "--fail-on", "verdict = unfilled", status=3
    )
    leaf = json.loads(found.stdout)["leaves"][0]
    # On a busy machine the replay may be unfaithful, too.
    assert leaf["unfilled"] and leaf["fidelity"] != "faithful" and "returned only zeros" in leaf["doubt"]
    assert "the run is unfilled" in found.stderr


def test_the_line_of_a_leaf_has_latency_and_verdict() -> None:
    summary = {
        "completed": 2000,
        "reads": 1000,
        "zero_reads": 0,
        "latency_us": {"p50": 210.0, "p99": 1200.0},
        "verdict": {"faithful": True},
    }
    one, other = InstanceState(summary=summary), InstanceState(summary=summary | {"verdict": {"faithful": False}})
    assert outcome.line([one]) == "1 result, p50 210 µs, p99 1.2 ms, faithful"
    assert outcome.line([one, other]) == "2 results, p50 210 µs, p99 1.2 ms, NOT faithful"
    faster = InstanceState(summary=summary | {"latency_us": {"p50": 143.0, "p99": 1200.0}})
    assert outcome.line([one, faster]) == "2 results, p50 143 µs … 210 µs, p99 1.2 ms, faithful"
    assert outcome.line([InstanceState(summary=summary | {"fake": "FAKE RESULT: x"})]).endswith("FAKE")
    assert outcome.line([InstanceState()]) == "1 result"
