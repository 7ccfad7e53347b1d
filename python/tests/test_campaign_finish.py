"""Leaves that are interrupted or killed after their replay: their results stay, and the next start does the rest."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from campaign_trees import Campaign

from iosonar.campaign.report.results import read_results

DRAWS = """
first_finish() { echo first >>ended; }
draw_finish() {
    touch begun
    [[ ! -e ../hold ]] || sleep 300
    echo "draw ${replay_device[0]} ${input_file[0]} ${output_file[0]} $replay_count" >>ended
}
finish_list+=" first_finish draw_finish"
"""


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    """A campaign whose leaf takes minutes to be finished, while the file `hold` is there."""
    made = Campaign(tmp_path / "top", dry_run=1)
    made.leaf("a", DRAWS)
    (made.top / "hold").touch()
    return made


def end_while_it_draws(campaign: Campaign, send: Callable[[int, int], None], number: int) -> int:
    """Starts the campaign, and ends it in the finish phase of its leaf; returns the exit code."""
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
    send(process.pid, number)
    return process.wait(60)


ENDS = pytest.mark.parametrize(
    ("send", "number", "code"),
    [
        (os.killpg, signal.SIGINT, 130),
        (os.kill, signal.SIGTERM, 130),
        (os.kill, signal.SIGKILL, -9),
    ],
    ids=["Ctrl-C of a terminal", "SIGTERM", "SIGKILL"],
)


@ENDS
def test_a_leaf_that_was_replayed_is_only_finished(
    campaign: Campaign, send: Callable[[int, int], None], number: int, code: int
) -> None:
    assert end_while_it_draws(campaign, send, number) == code
    (result,) = (campaign.top / "a" / name for name in campaign.results("a"))
    before, known = result.stat(), campaign.state("a")
    shown = json.loads(campaign.run("status", "--json").stdout)
    assert [(row["leaf"], row["state"], row["results"]) for row in shown] == [("a", "replayed", 1)]
    assert read_results(campaign.top)[0].done, "the report counts its result"

    (campaign.top / "hold").unlink()
    done = campaign.run()
    assert "leaf a: was replayed, and is finished now\nleaf a: done, 1 result" in done.stderr
    assert (result.stat().st_mtime_ns, result.stat().st_ino) == (before.st_mtime_ns, before.st_ino)
    found = campaign.state("a")
    assert (found.state, found.attempt, found.reason, found.started) == ("done", 1, "", known.started)
    assert found.notes == known.notes, "nothing is said of the interrupt"
    (each,) = found.instances
    ended = (campaign.top / "a/ended").read_text().splitlines()
    assert ended == ["first", f"draw {each.device} {each.input} {each.output} 1"]
    assert campaign.left() == []


def test_what_cannot_be_finished_stays_replayed(campaign: Campaign) -> None:
    end_while_it_draws(campaign, os.kill, signal.SIGTERM)
    conf = (campaign.top / "a.conf").rename(campaign.top / "kept")
    assert "leaf a: was replayed, but cannot be finished: no a.conf in" in campaign.run(status=1).stderr
    (row,) = json.loads(campaign.run("status", "--json").stdout)
    assert row["state"] == "replayed" and "no a.conf in" in row["reason"]
    (campaign.top / "hold").unlink()
    conf.rename(campaign.top / "a.conf")
    campaign.run()
    assert (campaign.state("a").state, campaign.state("a").attempt) == ("done", 1)


def test_the_plan_says_that_a_leaf_is_only_finished(campaign: Campaign) -> None:
    end_while_it_draws(campaign, os.kill, signal.SIGTERM)
    assert "a: was replayed; only its finish phase runs\n" in campaign.run("--dry-run").stdout
    first = json.loads(campaign.run("--dry-run", "--json").stdout.splitlines()[0])
    assert first == {"leaf": "a", "state": "replayed"}
