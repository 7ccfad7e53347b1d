"""The common start of a leaf's replays."""

from __future__ import annotations

from pathlib import Path

import pytest
from campaign_trees import Campaign

from iosonar.campaign import loop, replays, state


def test_a_missed_start_time_is_tried_again_with_more_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    campaign = Campaign(tmp_path / "top")
    (campaign.top / "a").mkdir()
    campaign.conf("a", "")
    monkeypatch.setattr(replays, "MORE_GRACE_S", (-60.0, 1.0, 10.0))
    assert loop.run(campaign.top, loop.Options()).done == ["a"]
    known = state.read(campaign.top / "a")
    assert known and known.instances[0].exit_code == 0
    assert "starting again, with more time" in (campaign.top / "a/campaign.log").read_text()


def test_a_host_that_is_never_ready_in_time_fails_the_leaf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    campaign = Campaign(tmp_path / "top")
    (campaign.top / "a").mkdir()
    campaign.conf("a", "")
    monkeypatch.setattr(replays, "MORE_GRACE_S", (-60.0, -61.0))
    ((leaf, reason),) = loop.run(campaign.top, loop.Options()).failed
    assert leaf == "a" and "the start time passed" in reason
    assert not list((campaign.top / "a").glob("*.replay.*"))


def test_replays_in_virtual_time_have_no_common_start(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "top")
    campaign.leaf("a", "replay_options=(--simulate hdd --virtual-time)")
    campaign.run()
    (instance,) = campaign.state("a").instances
    assert (instance.state, instance.exit_code, instance.start_skew_s) == ("done", 0, None)
    assert instance.summary is not None and instance.summary["completed"] == 8
    assert not any("enable_wipe" in note for note in campaign.state("a").notes)
    assert campaign.left() == []


def test_the_reason_of_a_refused_option_is_whole(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "top")
    campaign.leaf("a", "replay_options=(--virtual-time)")
    campaign.run(status=1)
    reason = campaign.state("a").reason
    assert reason.endswith("the following required arguments were not provided: --simulate <MODEL>")
