"""Campaigns that are interrupted or killed: nothing is left, and the leaf is done again."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from campaign_trees import Campaign, processes_of

LONG = """
speedup=0.01
note() { echo "$1" >>calls; }
mark_prepare() {
    undo_add localhost "remove the mark" "rm -f $PWD/mark" && touch mark
    sleep 300 &
}
mark_cleanup() { note "cleanup"; }
mark_finish() { note "finish"; }
prepare_list+=" mark_prepare" cleanup_list+=" mark_cleanup" finish_list+=" mark_finish"
"""


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    """A campaign whose first leaf takes minutes, and marks what it changes."""
    made = Campaign(tmp_path / "top", replay_duration=0)
    made.leaf("a", LONG)
    made.leaf("b", "dry_run=1")
    return made


@contextmanager
def running(campaign: Campaign) -> Iterator[subprocess.Popen[bytes]]:
    """A campaign whose first leaf replays."""
    process = subprocess.Popen(
        campaign.command("--json"),
        cwd=campaign.top,
        env=campaign.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        for line in process.stdout:
            event = json.loads(line)
            if event["event"] == "progress" and (event["progress"] or {}).get("state") == "run":
                break
        assert (campaign.top / "a/mark").exists()
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def finish_first_leaf(campaign: Campaign) -> None:
    """The next start does the interrupted leaf again, and the other."""
    campaign.conf("a", "dry_run=1")
    campaign.run()
    assert (campaign.state("a").state, campaign.state("a").attempt) == ("done", 2)
    assert campaign.state("b").state == "done"
    assert len(campaign.results("a")) == 1
    assert campaign.left() == []


@pytest.mark.parametrize(
    ("number", "send"),
    [(signal.SIGINT, os.kill), (signal.SIGTERM, os.kill), (signal.SIGINT, os.killpg)],
    ids=["SIGINT", "SIGTERM", "Ctrl-C of a terminal"],
)
def test_an_interrupt_undoes_all_and_the_leaf_is_run_again(
    campaign: Campaign, number: signal.Signals, send: Callable[[int, int], None]
) -> None:
    with running(campaign) as process:
        # A terminal sends the signal to all processes in the foreground.
        send(process.pid, number)
        process.communicate(timeout=60)
        assert process.returncode == 130
    assert not (campaign.top / "a/mark").exists()
    assert (campaign.top / "a/calls").read_text().split() == ["cleanup", "finish"]
    assert campaign.left() == []
    assert (campaign.state("a").state, campaign.results("a")) == ("interrupted", [])
    assert not (campaign.top / "b/campaign.json").exists(), "the campaign ends"
    assert [path.name for path in (campaign.top / "a").glob(".*")] == []
    finish_first_leaf(campaign)


def test_after_a_kill_the_next_start_undoes_and_runs_again(campaign: Campaign) -> None:
    with running(campaign) as process:
        process.kill()
        process.communicate(timeout=60)
    assert (campaign.top / "a/mark").exists()
    shown = json.loads(campaign.run("status", "--json").stdout)
    assert [(row["leaf"], row["state"]) for row in shown] == [("a", "interrupted"), ("b", "to do")]
    assert campaign.state("a").state == "running", "status changes nothing"
    finish_first_leaf(campaign)
    assert not (campaign.top / "a/mark").exists()


def test_after_a_kill_undo_removes_what_is_left(campaign: Campaign) -> None:
    with running(campaign) as process:
        process.kill()
        process.communicate(timeout=60)
    assert processes_of(campaign.tmp), "the replay goes on without its controller"
    assert "remove the mark on localhost" in campaign.run("undo").stderr
    assert campaign.left() == []
    assert not (campaign.top / "a/mark").exists()
    assert campaign.state("a").state == "interrupted"
    campaign.run("undo")


def test_an_interrupt_in_cleanup_skips_no_other_function(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "top", dry_run=1)
    campaign.leaf(
        "a",
        """
        slow_cleanup() { touch begun; sleep 300; }
        next_cleanup() { touch next; }
        prepare_list+=" added"
        added() { undo_add localhost "remove the mark" "rm -f $PWD/mark" && touch mark; }
        cleanup_list+=" slow_cleanup next_cleanup"
        """,
    )
    process = subprocess.Popen(
        campaign.command(),
        cwd=campaign.top,
        env=campaign.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    while not (campaign.top / "a/begun").exists():
        assert process.poll() is None
        time.sleep(0.05)
    # As the terminal does, to all processes.
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(60) == 130
    assert (campaign.top / "a/next").exists()
    assert not (campaign.top / "a/mark").exists()
    assert len(campaign.results("a")) == 1, "the result was complete"
    assert campaign.state("a").state == "done", "its finish phase ended"
    assert campaign.left() == []


BEFORE_CLEANUP = """
from iosonar.campaign.shell import Shell
protect, interrupts = Shell.protect, [KeyboardInterrupt]
def interrupted(shell):
    if interrupts:
        raise interrupts.pop()
    protect(shell)
Shell.protect = interrupted
"""


def test_an_interrupt_just_before_cleanup_skips_nothing(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "top", dry_run=1)
    campaign.leaf("a", 'own_cleanup() { touch cleaned; }; cleanup_list+=" own_cleanup"')
    python, option, program, *words = campaign.command()
    command = [python, option, BEFORE_CLEANUP + program, *words]
    done = subprocess.run(
        command, cwd=campaign.top, env=campaign.environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 130, done.stderr
    assert (campaign.top / "a/cleaned").exists()
    assert campaign.left() == []


def test_a_closed_pipe_of_events_ends_the_campaign_and_undoes(campaign: Campaign) -> None:
    with running(campaign) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait(60) == 1
        process.stdout = None
    assert not (campaign.top / "a/mark").exists()
    assert (campaign.top / "a/calls").read_text().split() == ["cleanup", "finish"]
    assert campaign.state("a").state == "interrupted"
    assert campaign.left() == []


def test_an_interrupt_at_a_question_of_a_conf_ends_the_campaign(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "top")
    campaign.leaf("a", 'read -r -p "Is the disk pulled? " answer; touch answered')
    person, terminal = pty.openpty()
    process = subprocess.Popen(
        campaign.command(),
        cwd=campaign.top,
        env=campaign.environment(),
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        start_new_session=True,
        preexec_fn=lambda: os.close(os.open(os.ttyname(0), os.O_RDWR)),
    )
    os.close(terminal)
    output = b""
    while b"Is the disk pulled?" not in output:
        output += os.read(person, 4096)
    # Ctrl-C, which the terminal sends to all processes in the foreground.
    os.write(person, b"\x03")
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        if select.select([person], [], [], 0.1)[0]:
            try:
                output += os.read(person, 4096)
            except OSError:
                break
    assert process.wait(30) == 130, output
    os.close(person)
    assert campaign.state("a").state == "interrupted"
    assert not (campaign.top / "answered").exists()
    assert campaign.left() == []
