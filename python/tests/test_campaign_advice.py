"""Warnings before a leaf runs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from iosonar.campaign.advice import EarlierLeaf, Instance, PlannedLeaf, before

GOOD = PlannedLeaf(
    ("short", "016-threads"),
    {"threads": "16", "replay_duration": "0300", "enable_wipe": "1", "output_label": "a"},
    (
        Instance("a", "/dev/sdb", "x.load.gz", 0.0, 3600.0),
        Instance("b", "/dev/sdb", "x.load.gz", 600.0, 3600.0),
    ),
    free_bytes={"a": 100 << 30},
)


def changed(**variables: str) -> PlannedLeaf:
    return replace(GOOD, variables={**GOOD.variables, **variables})


def test_a_careful_campaign_gets_no_warning() -> None:
    assert before(GOOD) == []


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"enable_wipe": "0"}, "nothing fills the devices"),
        ({"enable_wipe": "0", "enable_recreate_lvm": "1"}, "recreated but not filled"),
        ({"replay_duration": "030"}, "replay_duration=30 is short"),
        ({"replay_duration": "3100"}, "x.load.gz ends 3,000 s after the start of the window"),
    ],
)
def test_each_omission_is_named(variables: dict[str, str], words: str) -> None:
    (warning,) = before(changed(**variables))
    assert words in warning


def test_no_warning_where_it_does_not_apply() -> None:
    assert before(replace(changed(enable_wipe="0"), without_device=True)) == []
    assert before(changed(replay_duration="9000", enable_pipe_repeat="1")) == []


def test_a_device_that_an_earlier_leaf_has_filled_is_named() -> None:
    earlier = EarlierLeaf("long/x", ("long", "x"), {}, (("a", "/dev/sdb"),))
    (warning,) = before(replace(changed(enable_wipe="0"), earlier=[earlier]))
    assert warning.startswith("long/x replayed on a:/dev/sdb before")
    assert before(replace(GOOD, earlier=[earlier])) == []
    (warning,) = before(replace(changed(enable_wipe="0"), earlier=[replace(earlier, replayed=False)]))
    assert "nothing fills" in warning


def test_one_load_on_several_devices_at_a_time_is_named() -> None:
    same = tuple(replace(each, start_s=0.0) for each in GOOD.instances)
    (warning,) = before(replace(GOOD, instances=same))
    assert "2 devices replay the same requests of x.load.gz" in warning
    assert before(replace(GOOD, instances=(same[0], replace(same[1], input="y")))) == []


def test_siblings_differ_in_one_variable() -> None:
    other = EarlierLeaf("short/004-threads", ("short", "004-threads"), {**GOOD.variables, "threads": "4"}, ())
    assert before(replace(GOOD, earlier=[other])) == []
    two = replace(other, variables={**other.variables, "strong": "0"})
    (warning,) = before(replace(changed(strong="1"), earlier=[two]))
    assert "016-threads differs from 004-threads in strong, threads" in warning
    cousin = replace(two, path=("long", "004-threads"))
    assert before(replace(changed(strong="1"), earlier=[cousin])) == []


def test_the_variables_of_one_module_are_one_thing() -> None:
    def siblings(name: str, **variables: str) -> PlannedLeaf:
        return replace(changed(**variables), path=("short", name))

    near = siblings("near", enable_pipe_spread="0", pipe_spread_factor="2.0", input_pipe_list="")
    far = siblings("far", enable_pipe_spread="1", pipe_spread_factor="4.0", input_pipe_list="| iosonar edit")
    earlier = EarlierLeaf("short/near", near.path, near.variables, ())
    assert before(replace(far, earlier=[earlier])) == []


def test_a_full_temporary_directory_is_named() -> None:
    (warning,) = before(replace(GOOD, free_bytes={"a": 1 << 30, "b": 9 << 30}))
    assert warning.startswith("a: only 1.0 GiB are free")


def test_no_instances_are_no_error() -> None:
    assert before(replace(GOOD, instances=())) == []
