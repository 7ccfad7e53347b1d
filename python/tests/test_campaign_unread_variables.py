"""Variables that nothing reads are named; the plan shows window and filters."""

from __future__ import annotations

from pathlib import Path

from campaign_trees import Campaign

from iosonar.campaign import outcome, unread_variables
from iosonar.campaign.state import InstanceState


def test_a_mistyped_variable_is_named_with_the_nearest_name() -> None:
    names = ("thraeds", "enable_grahp", "threads", "enable_pipe_cmd", "fan_out", "LC_ALL", "zzz", "mine", "k")
    sources = ("mine=4\nthreads=$((mine * 2))  # zzz", "(( k++ ))\nthraeds=4\nzzz+=5\nzzz[1]=2")
    assert list(unread_variables.warnings(names, sources)) == [
        "warning: nothing reads the variable enable_grahp: did you mean enable_graph?",
        "warning: nothing reads the variable thraeds: did you mean threads?",
        "warning: nothing reads the variable zzz",
    ]


def test_an_unknown_variable_is_named_once_in_a_campaign(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "c")
    for name in ("a", "b"):
        campaign.leaf(name, "thraeds=4\n")
    said = campaign.run("--dry-run", "--override", "enable_grahp=0").stderr
    assert said.count("nothing reads the variable") == 2, said


def test_a_dry_run_shows_window_and_filters(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "c", replay_start=1.5)
    (campaign.top / "default-pipe_subst.conf").write_text("enable_pipe_subst=1\npipe_subst_from=R\npipe_subst_to=W\n")
    campaign.leaf("a")
    shown = campaign.run("--dry-run").stdout
    assert "--duration 0.2 --start 1.5\n" in shown
    assert "  filtered by iosonar edit - - " in shown


def test_a_done_leaf_may_be_not_faithful() -> None:
    def instances(*verdicts: bool) -> list[InstanceState]:
        return [InstanceState(summary={"verdict": {"faithful": each}}) for each in verdicts]

    assert outcome.is_unfaithful(instances(True, False))
    assert not outcome.is_unfaithful([*instances(True), InstanceState()])
