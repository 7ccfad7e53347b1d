"""The estimate of a campaign's duration by --dry-run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from campaign_trees import DEVICE_BYTES, Campaign

from iosonar import units
from iosonar.campaign import estimate
from iosonar.campaign.loads import LoadInfo
from iosonar.campaign.plan import Instance, LeafPlan
from iosonar.campaign.state import InstanceState, LeafState

LOAD = LoadInfo(first_s=10.0, last_s=110.0, requests=1000)


def planned(
    *options: str, start_s: float = 0.0, functions: str = "main_run", device: str = "/dev/x", **variables: object
) -> LeafPlan:
    instance = Instance("a", device, device, Path("x.load.gz"), "x.replay.parquet", start_s)
    values = {"start_grace": "0", **{name: str(value) for name, value in variables.items()}}
    phases = {phase: [each for each in functions.split() if each.endswith(phase)] for phase in ("setup", "run")}
    return LeafPlan([instance], options, values, phases)


def seconds(*options: str, load: LoadInfo | None = LOAD, start_s: float = 0.0, **variables: object) -> object:
    found = planned(*options, start_s=start_s, functions="main_run", device="/dev/x", **variables)
    replay = estimate.replay(found, found.instances[0], load)
    return ("at most", replay.seconds) if replay.at_most else replay.seconds


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("", 100.0),
        ("--speedup 4", 25.0),
        ("--duration 60", 50.0),
        ("--speedup nonsense --for nonsense", 100.0),
        ("--speedup 0", 100.0),
        ("--start 50 --duration 30", 30.0),
        ("--start=1m", 50.0),
        ("--end 30", 20.0),
        ("--duration 1000", 100.0),
        ("--for 10m", 100.0),
        ("--for 20", 20.0),
        ("--loop --for 2h", 7200.0),
        ("--asap", ("at most", None)),
        ("--asap --for 20", ("at most", 20.0)),
        ("--closed=no-think --for 20", ("at most", 20.0)),
        ("--simulate hdd --virtual-time", None),
    ],
)
def test_options_say_how_long_a_replay_takes(options: str, expected: object) -> None:
    assert seconds(*options.split()) == expected


def test_filters_that_change_the_times_count() -> None:
    assert seconds("--duration", "500", enable_pipe_repeat=1) == 500.0
    assert seconds(enable_pipe_select=1, pipe_select_from=20, pipe_select_to=50) == 30.0
    assert seconds("--duration", "30", start_s=5.0, enable_pipe_cmd=1) == ("at most", 30.0)
    assert seconds(enable_pipe_cmd=1) == ("at most", None)


def test_a_load_that_is_not_here_is_not_guessed() -> None:
    assert seconds(load=None) == ("at most", None)
    assert seconds("--duration", "30", "--speedup", "2", load=None) == ("at most", 15.0)


def test_a_wipe_takes_the_size_by_the_stated_speed(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "top")
    for module in ("wipe", "slurp"):
        campaign.conf(f"default-{module}", "")
    campaign.leaf("a", "enable_wipe=1; wipe_speed=2")
    campaign.leaf("b", "enable_wipe=1; enable_slurp=1; slurp_speed=4")
    done = campaign.run("--dry-run", "--override", "start_grace=0")
    first, second, last = [line.split("  ") for line in done.stdout.splitlines()[-3:]]
    assert units.span(DEVICE_BYTES / 2e6) in map(str.strip, first)
    assert units.span(DEVICE_BYTES / 4e6) in map(str.strip, second)
    assert second[-1] == "not counted: wipe (set wipe_speed)"
    assert last[0].startswith("2 leaves: at least ")


def test_what_a_users_module_takes_is_not_known() -> None:
    found = estimate.estimate("x", planned(functions="quiet_setup wipe_setup main_run"), lambda _: LOAD, [])
    assert (found.seconds, found.unknown) == (100.0, ("quiet",))


@pytest.mark.parametrize(
    ("replay", "unknown", "words"),
    [
        (estimate.Replay(60.0), (), "1 min; started now, the campaign ends at "),
        (estimate.Replay(60.0), ("graph",), "at least 1 min; started now, the campaign ends after "),
        (estimate.Replay(60.0, at_most=True), (), "at most 1 min; started now, the campaign ends by "),
        (
            estimate.Replay(60.0, at_most=True),
            ("graph",),
            "about 1 min; started now, the campaign ends at about ",
        ),
        (estimate.Replay(None, at_most=True), ("x",), "at least 0 s; started now, the campaign ends after "),
    ],
)
def test_the_sum_says_in_which_direction_it_is_wrong(
    replay: estimate.Replay, unknown: tuple[str, ...], words: str
) -> None:
    *_, last = estimate.table([estimate.Estimate("a", replay, 0.0, unknown)], now=0.0)
    assert last.startswith(f"1 leaf: {words}")


def test_an_earlier_run_of_the_leaf_or_a_like_one_counts() -> None:
    took = {"wipe_setup": 30.0, "main_run": 90.0, "graph_finish": 3.0}
    variables = {"enable_wipe": "1"}
    same = [InstanceState("a", "/dev/x", "/dev/x")]
    earlier = [
        LeafState("like", "done", started=2.0, variables=variables, instances=same, took_s=took),
        LeafState("own", "done", started=1.0, took_s={**took, "wipe_setup": 40.0}),
        LeafState("failed", "failed", started=3.0, variables=variables, instances=same, took_s={"wipe_setup": 1.0}),
    ]

    def found(leaf: str, *options: str, device: str = "/dev/x") -> estimate.Estimate:
        wipes = planned(*options, functions="wipe_setup main_run", device=device, enable_wipe=1)
        return estimate.estimate(leaf, wipes, lambda _: LOAD, earlier)

    assert (found("own").rest_s, found("own").earlier) == (43.0, "own")
    assert found("own", "--asap").seconds == 133.0
    assert (found("new").rest_s, found("new").earlier) == (33.0, "like")
    assert found("new", "--asap").replay.seconds is None
    assert found("new", device="/dev/y").unknown == ("wipe (set wipe_speed)",)


def test_a_leaf_keeps_how_long_its_functions_took(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "top", dry_run=1)
    campaign.leaf("a")
    campaign.leaf("b")
    campaign.conf("default-slurp")
    (campaign.top / "b/skip").touch()
    campaign.run()
    assert {"main_setup", "main_run"} <= campaign.state("a").took_s.keys()
    (campaign.top / "b/skip").unlink()
    leaf, end = map(json.loads, campaign.run("--dry-run", "--json").stdout.splitlines())
    assert leaf["estimate"]["earlier_run"] == "a" and leaf["estimate"]["not_estimated"] == []
    assert leaf["estimate"]["replay_s"] <= 0.2 and end["seconds"] >= leaf["estimate"]["rest_s"]
