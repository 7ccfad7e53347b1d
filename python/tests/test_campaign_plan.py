"""What a leaf replays: instances, names of results, and the options of `iosonar replay`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from campaign_shell import shell_in

from iosonar.campaign import inputs, names, plan
from iosonar.campaign.hosts import Hosts
from iosonar.campaign.plan import Instance
from iosonar.campaign.shell import Shell
from iosonar.campaign.undo import Undo
from iosonar.errors import UserError


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    """A shell with nothing set but the modes."""
    with shell_in(tmp_path) as made:
        set_all(made, cmode="with-partial", vmode="no-overhead", sub_prefix=".a.b", output_label="T")
        (tmp_path / "x.load.gz").touch()
        made.set_scalar("input_file_list", "x.load.gz")
        yield made


def set_all(shell: Shell, **variables: object) -> None:
    for name, value in variables.items():
        shell.set_scalar(name, str(value))


def no_expansion(host: str, pattern: str) -> list[str]:
    raise AssertionError(f"{pattern} was expanded on {host}")


def devices(shell: Shell, hosts: str, patterns: str = "", **variables: object) -> list[tuple[str, str]]:
    set_all(shell, replay_host_list=hosts, replay_device_list=patterns, **variables)
    return plan.devices(shell, no_expansion)


def instances(shell: Shell, directory: Path, pairs: list[tuple[str, str]], **variables: object) -> list[Instance]:
    set_all(shell, **variables)
    shell.set("replay_host", [host for host, _ in pairs])
    shell.set("replay_device", [device for _, device in pairs])
    shell.set("replay_device_orig", [device for _, device in pairs])
    return plan.instances(shell, [directory / "leaf", directory])


def options(shell: Shell, **variables: object) -> str:
    set_all(shell, **variables)
    return " ".join(plan.options(shell, lambda _: None))


# Hosts and devices.


def test_instances_are_the_product_of_both_lists_by_host(shell: Shell) -> None:
    found = devices(shell, "h{1..2}\n  user@z", "/dev/dm-{7,9}")
    hosts = ("h1", "h2", "user@z")
    assert found == [(host, device) for host in hosts for device in ("/dev/dm-7", "/dev/dm-9")]


def test_braces_keep_leading_zeros(shell: Shell) -> None:
    assert [host for host, _ in devices(shell, "h{08..10}", "/dev/sdb")] == ["h08", "h09", "h10"]


def test_with_pairs_the_list_of_devices_is_ignored(shell: Shell) -> None:
    found = devices(shell, "b:/dev/sd{c,b} user@a:/dev/disk/by-path/pci-0:1 root@[fe80::1]:/dev/sdb", "/dev/unused")
    assert found == [
        ("b", "/dev/sdc"),
        ("b", "/dev/sdb"),
        ("user@a", "/dev/disk/by-path/pci-0:1"),
        ("root@fe80::1", "/dev/sdb"),
    ]


@pytest.mark.parametrize("hosts", ["a:/dev/sdb b", "a b:/dev/sdb", ":/dev/sdb", "a:/dev/sdb b:"])
def test_pairs_and_plain_hosts_must_not_be_mixed(shell: Shell, hosts: str) -> None:
    with pytest.raises(UserError, match="either all are host:device pairs, or none"):
        devices(shell, hosts, "/dev/sdb")


def test_an_empty_list_is_an_error_that_names_it(shell: Shell) -> None:
    with pytest.raises(UserError, match="replay_host_list is empty"):
        devices(shell, " ", "/dev/sdb")
    with pytest.raises(UserError, match="replay_device_list is empty"):
        devices(shell, "a", "\n")
    with pytest.raises(UserError, match=r"input_file_list is empty"):
        instances(shell, Path("/"), [("a", "/dev/sdb")], input_file_list="")


def test_too_many_names_are_an_error(shell: Shell) -> None:
    with pytest.raises(UserError, match="expands to more than"):
        devices(shell, "h{1..1000000000}", "/dev/sdb")


def test_globs_of_devices_are_expanded_on_the_host(shell: Shell, tmp_path: Path) -> None:
    for name in ("sdb", "sda", "sdc1", "sd $(touch CANARY)"):
        (tmp_path / name).touch()
    set_all(shell, replay_host_list="localhost", replay_device_list=f"{tmp_path}/sd[a-c] {tmp_path}/{{none,sdc*}}")
    with Hosts(Undo(tmp_path / "undo")) as hosts:
        found = plan.devices(shell, lambda host, pattern: hosts.get(host).expand(pattern))
        with pytest.raises(UserError, match=r"no device .*/nothing\* on localhost"):
            set_all(shell, replay_device_list=f"{tmp_path}/nothing*")
            plan.devices(shell, lambda host, pattern: hosts.get(host).expand(pattern))
    assert [device for _, device in found] == [f"{tmp_path}/{name}" for name in ("sda", "sdb", "none", "sdc1")]


def test_replay_max_parallelism_keeps_the_first_instances(shell: Shell) -> None:
    assert len(devices(shell, "h{1..3}", "/dev/sd{b,c}", replay_max_parallelism=0)) == 6
    assert devices(shell, "h{1..3}", "/dev/sd{b,c}", replay_max_parallelism="03") == [
        ("h1", "/dev/sdb"),
        ("h1", "/dev/sdc"),
        ("h2", "/dev/sdb"),
    ]
    assert len(devices(shell, "h1", "/dev/sdb", replay_max_parallelism=99)) == 1


def test_devices_and_hosts_that_a_module_changed_are_obeyed(shell: Shell, tmp_path: Path) -> None:
    shell.set("replay_host", ["a", "b"])
    shell.set("replay_device", ["/dev/new1", "/dev/new2"])
    shell.set("replay_device_orig", ["/dev/old1", "/dev/old2"])
    found = plan.instances(shell, [tmp_path])
    assert [(each.host, each.device, each.original) for each in found] == [
        ("a", "/dev/new1", "/dev/old1"),
        ("b", "/dev/new2", "/dev/old2"),
    ]
    assert found[1].output == "T.a.b.b.old2.replay.gz", "names do not depend on what a module made of the device"


def test_hosts_and_devices_of_different_number_are_an_error(shell: Shell, tmp_path: Path) -> None:
    shell.set("replay_host", ["a", "b"])
    shell.set("replay_device", ["/dev/new1"])
    with pytest.raises(UserError, match="2 hosts and 1 device: a module changed only one of the two lists"):
        plan.instances(shell, [tmp_path])


# Loads.


def test_input_files_that_a_module_changed_are_obeyed(shell: Shell, tmp_path: Path) -> None:
    pairs = [("a", "/dev/sdb"), ("a", "/dev/sdc")]
    for name in ("1.gz", "2.gz"):
        (tmp_path / name).touch()
    assigned = [str(tmp_path / "x.load.gz")] * 2
    shell.set("input_file", assigned)
    for device in ("replay_device", "replay_device_orig"):
        shell.set(device, [name for _, name in pairs])
    shell.set("replay_host", [name for name, _ in pairs])
    shell.set_scalar("input_file_list", "1.gz")
    found = plan.instances(shell, [tmp_path], assigned)
    assert [each.source.name for each in found] == ["1.gz", "1.gz"], "the list counts, which a module may change too"
    shell.set("input_file", ["2.gz", str(tmp_path / "1.gz")])
    assert [each.source.name for each in plan.instances(shell, [tmp_path], assigned)] == ["2.gz", "1.gz"]
    shell.set("input_file", ["2.gz"])
    with pytest.raises(UserError, match="2 devices and 1 input files"):
        plan.instances(shell, [tmp_path], assigned)
    shell.set("input_file", ["2.gz", "missing.gz"])
    with pytest.raises(UserError, match=r"input_file: no file .*/missing\.gz"):
        plan.instances(shell, [tmp_path], assigned)


def test_loads_are_looked_for_in_the_leaf_and_then_at_the_top(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "leaf").mkdir()
    for path in ("leaf/y2.gz", "leaf/y1.gz", "y3.gz", "z.gz"):
        (tmp_path / path).touch()
    found = inputs.find(f"y*.gz z.gz x.load.gz {tmp_path}/y3.gz ../z.gz", [tmp_path / "leaf", tmp_path])
    shown = [str(path.resolve().relative_to(tmp_path)) for path in found]
    assert shown == ["leaf/y1.gz", "leaf/y2.gz", "z.gz", "x.load.gz", "y3.gz", "z.gz"]


def test_special_characters_in_the_directory_are_no_pattern(tmp_path: Path) -> None:
    directory = tmp_path / "[ab]*"
    directory.mkdir()
    (directory / "y.gz").touch()
    assert inputs.find("*.gz", [directory]) == [directory / "y.gz"]


def test_a_pattern_that_matches_no_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "directory").mkdir()
    for text in ("missing.gz", "*.gz", "directory", "direct*"):
        with pytest.raises(UserError, match="input_file_list: no file"):
            inputs.find(text, [tmp_path])


def test_loads_are_used_again_if_there_are_more_instances(shell: Shell, tmp_path: Path) -> None:
    for name in ("1.gz", "2.gz"):
        (tmp_path / name).touch()
    pairs = [("h", f"/dev/sd{letter}") for letter in "abcde"]
    found = instances(shell, tmp_path, pairs, input_file_list="{1,2}.gz")
    assert [each.source.name for each in found] == ["1.gz", "2.gz", "1.gz", "2.gz", "1.gz"]


def test_replay_delta_moves_the_window_of_each_further_instance(shell: Shell, tmp_path: Path) -> None:
    pairs = [("h", f"/dev/sd{letter}") for letter in "abc"]
    found = instances(shell, tmp_path, pairs, replay_start="0.5", replay_delta="010")
    assert [each.start_s for each in found] == [0.5, 10.5, 20.5]


# Names of results.


def test_a_name_has_label_path_host_device_and_input(shell: Shell, tmp_path: Path) -> None:
    pairs = [("host1", "/dev/mapper/vg-lv")]
    (tmp_path / "in.put.load.gz").touch()

    def name(**variables: object) -> str:
        return instances(shell, tmp_path, pairs, input_file_list="in.put.load.gz", **variables)[0].output

    assert name() == "T.a.b.host1.mapper.vg-lv.replay.gz"
    assert name(output_add_input=1) == "T.a.b.host1.mapper.vg-lv.in.put.replay.gz"
    assert name(output_add_path=0) == "T.host1.mapper.vg-lv.in.put.replay.gz"
    assert name(output_add_host=0) == "T.mapper.vg-lv.in.put.replay.gz"
    assert name(output_add_device=0) == "T.in.put.replay.gz"
    assert name(output_format="parquet") == "T.in.put.replay.parquet"
    assert name(output_label="X/Y", output_add_input="00") == "X.Y.replay.parquet"
    assert name(output_label="") == "TEST.replay.parquet"


def test_an_unknown_format_is_an_error(shell: Shell, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"output_format=csv: use replay\.gz or parquet"):
        instances(shell, tmp_path, [("a", "/dev/sdb")], output_format="csv")


def test_two_results_with_one_name_are_refused(shell: Shell, tmp_path: Path) -> None:
    for pairs in ([("a", "/dev/sdb")] * 2, [("a", "/dev/x/y"), ("a", "/dev/x.y")]):
        with pytest.raises(UserError, match="two instances have the same result name, T"):
            instances(shell, tmp_path, pairs)
    with pytest.raises(UserError, match="set output_add_host=1"):
        instances(shell, tmp_path, [("a", "/dev/sdb"), ("b", "/dev/sdb")], output_add_host=0)


@pytest.mark.parametrize("label", ["../x", "-x", ".x", "a\nb", "a\x1b[1m", "\udcff"])
def test_a_label_that_makes_an_odd_file_name_is_an_error(label: str) -> None:
    with pytest.raises(UserError, match="invalid name of a result"):
        names.output_name(label, ["a"], ".replay.gz")


def test_a_name_that_is_too_long_for_a_file_is_an_error() -> None:
    assert len(names.output_name("é" * 90, [], ".replay.gz").encode()) <= 200
    with pytest.raises(UserError, match="longer than 200 bytes"):
        names.output_name("é" * 100, [], ".replay.gz")


# Options of the replay.


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, "--depth 512 --conflicts partial --verify off --strong 1"),
        ({"threads": "008"}, "--depth 8"),
        ({"threads": " 16 "}, "--depth 16"),
        ({"cmode": "with-conflicts"}, "--conflicts allow"),
        ({"cmode": "with-drop"}, "--conflicts drop"),
        ({"cmode": "with-ordering"}, "--conflicts ordering"),
        ({"vmode": "with-verify"}, "--verify reads"),
        ({"vmode": "with-final-verify"}, "--verify final"),
        ({"vmode": "with-paranoia"}, "--verify paranoia"),
        ({"strong": 2}, "--strong 2"),
        ({"fill_random": "33.3333333"}, "--fill-random 33.3333333"),
        ({"replay_duration": "00600"}, "--duration 600"),
        ({"replay_duration": ".5"}, "--duration 0.5"),
        ({"speedup": "1.23456789"}, "--speedup 1.23456789"),
        ({"replay_out_start": 7}, "--output-offset 7"),
        ({"fill_random": 0}, "--fill-random 0"),
        ({"fill_null": 1}, "--fill-random 0"),
        ({"bottleneck": 100}, "--bottleneck 100"),
        ({"ahead_limit": 2}, "--ahead-time 2"),
        ({"verbose": 10}, "--verbose"),
        ({"o_sync": 1}, "--o-sync"),
        ({"no_o_direct": 1}, "--no-o-direct"),
        ({"simulate_io": "0.001"}, "--engine simulate --simulate constant=0.001000000s"),
        ({"fake_io": 1}, "--engine null"),
        ({"dry_run": 1}, "--engine dry-run"),
    ],
)
def test_each_variable_becomes_its_option(shell: Shell, variables: dict[str, str], expected: str) -> None:
    assert f"{expected} " in options(shell, **variables) + " "


def test_variables_with_their_defaults_add_no_options(shell: Shell) -> None:
    plain = options(shell)
    unchanged = {
        "fill_random": "",
        "fill_null": 0,
        "replay_duration": 0,
        "speedup": "1.0",
        "replay_out_start": "",
        "bottleneck": 0,
    }
    unchanged |= {"verbose": 9, "o_sync": 0, "no_o_direct": 0, "simulate_io": 0, "fake_io": "00", "dry_run": ""}
    assert options(shell, **unchanged) == plain


def test_further_options_are_words_of_an_array(shell: Shell) -> None:
    shell.set("replay_options", ["--edit", "spread factor=2 $(touch CANARY)"])
    assert plan.options(shell, lambda _: None)[-2:] == ["--edit", "spread factor=2 $(touch CANARY)"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--depth", "5"], "the campaign sets --depth from threads; set threads, remove --depth"),
        (["--wait", "spin", "--threads=5"], "from threads"),
        (["--conflicts=allow"], "from cmode"),
        (["-t", "/dev/sdx"], "the campaign sets --target from replay_device_list"),
        (["--duration", "5"], "from replay_duration"),
        (["--start", "5"], "from replay_start"),
        (["--engine", "null"], "from dry_run"),
        (["--start-file", "x"], "--start-file is the campaign's own: remove it"),
        (["--repeat", "2"], "add a leaf for each repetition"),
        (["--start-at", "5"], "--start-at is the campaign's own"),
        (["--loop"], "a leaf with --loop never ends: add --for"),
    ],
)
def test_options_that_a_variable_sets_are_refused(shell: Shell, words: list[str], said: str) -> None:
    set_all(shell, replay_duration=7, replay_start=3, dry_run=1)
    shell.set("replay_options", words)
    with pytest.raises(UserError, match=re.escape(said)):
        plan.options(shell, lambda _: None)
    # What no variable sets is the user's.
    set_all(shell, replay_duration=0, replay_start=0)
    shell.set("replay_options", ["--duration", "5", "--wait", "spin"])
    assert plan.options(shell, lambda _: None)[-4:] == ["--duration", "5", "--wait", "spin"]


def test_variables_without_effect_and_missing_modes_are_named(shell: Shell) -> None:
    notes: list[str] = []
    set_all(shell, fan_out=8, no_dispatcher=0, enable_compress_ssh=2, cmode="", vmode="")
    assert "--conflicts partial --verify off" in " ".join(plan.options(shell, notes.append))
    assert notes == [
        "fan_out has no effect: there is one issuing loop",
        "enable_compress_ssh has no effect: loads and results are compressed files",
        "cmode is not set: with-partial is used",
        "vmode is not set: no-overhead is used",
    ]


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("threads", "many", "threads=many: a number is expected"),
        ("threads", "1.5", r"threads=1\.5: an integer is expected"),
        ("threads", "0x10", "threads=0x10: a number is expected"),
        ("threads", "1e999", "threads=1e999: a number is expected"),
        ("threads", "16\r", None),
        ("replay_duration", "5m", "replay_duration=5m: a number is expected"),
        ("replay_duration", "nan", "replay_duration=nan: a number is expected"),
        ("replay_duration", "-1", "replay_duration=-1: a number of seconds is expected, 0 or more"),
        ("cmode", "partial", "cmode=partial: use one of with-conflicts"),
        ("vmode", "with\nverify", r"vmode=with\\nverify: use one of no-overhead"),
        ("speedup", "1,5", "speedup=1,5: a number is expected"),
        ("strong", "a[$(touch CANARY)]", r"strong=a\[\$\(touch CANARY\)\]: a number is expected"),
    ],
)
def test_a_bad_value_is_an_error_that_names_the_variable(
    shell: Shell, tmp_path: Path, name: str, value: str, words: str | None
) -> None:
    if words is None:
        assert "--depth 16 " in options(shell, **{name: value})
        return
    with pytest.raises(UserError, match=words):
        options(shell, **{name: value})
    assert not (tmp_path / "CANARY").exists()


@pytest.mark.parametrize("name", ["replay_start", "replay_delta"])
def test_a_negative_start_is_an_error(shell: Shell, tmp_path: Path, name: str) -> None:
    with pytest.raises(UserError, match=f"{name}=-5: a number of seconds is expected"):
        instances(shell, tmp_path, [("a", "/dev/sdb")], **{name: -5})


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--simulate=hdd", True),
        ("--engine null", True),
        ("--engine=dry-run", True),
        ("--engine threads --force", False),
    ],
)
def test_replays_without_io_do_not_change_devices(words: str, expected: bool) -> None:
    assert plan.without_device(words.split()) is expected
