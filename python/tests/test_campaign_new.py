from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from iosonar.campaign.new import DEFAULTS, create
from iosonar.errors import UsageError, UserError


def values(conf: Path, *names: str) -> list[str]:
    """The values of variables after bash has sourced a conf."""
    script = 'source "$1"; shift; for name; do printf "%s\\0" "${!name}"; done'
    words = ["bash", "-euc", script, "bash", str(conf), *names]
    done = subprocess.run(words, capture_output=True, text=True, check=True, env={"base_dir": "/base"})
    return done.stdout.split("\0")[:-1]


def test_a_new_campaign_has_two_loads_at_three_depths(tmp_path: Path) -> None:
    leaves = create(tmp_path / "new", ["localhost"], ["/dev/sdx"], 1)
    assert [leaf.relative_to(tmp_path / "new").parts for leaf in leaves] == [
        (load, depth) for load in ("bursts", "steady") for depth in ("depth-001", "depth-016", "depth-256")
    ]
    for leaf in leaves:
        assert leaf.is_dir()
        assert not list(leaf.iterdir())
        assert all((tmp_path / "new" / f"{name}.conf").is_file() for name in leaf.relative_to(tmp_path / "new").parts)
    assert {path.name for path in DEFAULTS.iterdir()} <= {path.name for path in (tmp_path / "new").iterdir()}


def test_hosts_devices_and_the_label_stand_in_the_conf(tmp_path: Path) -> None:
    create(tmp_path / "disks-2026", ["a", "root@b{1..3}"], ["/dev/nvme{0..3}n1", "/dev/dm-*"], 1)
    conf = tmp_path / "disks-2026" / "default-main.conf"
    found = values(conf, "replay_host_list", "replay_device_list", "output_label", "replay_duration")
    assert found == ["a root@b{1..3}", "/dev/nvme{0..3}n1 /dev/dm-*", "disks-2026", "60"]


def test_a_new_campaign_fills_devices_first_and_draws_pages(tmp_path: Path) -> None:
    create(tmp_path / "new", ["localhost"], ["/dev/sdx"], 1)
    assert values(tmp_path / "new" / "default-wipe.conf", "enable_wipe") == ["1"]
    assert values(tmp_path / "new" / "default-graph.conf", "graph_output") == ["page"]


def test_without_devices_the_list_is_empty(tmp_path: Path) -> None:
    create(tmp_path / "new", [], [], 1)
    assert values(tmp_path / "new" / "default-main.conf", "replay_host_list", "replay_device_list") == ["localhost", ""]


def test_each_conf_changes_one_thing(tmp_path: Path) -> None:
    create(tmp_path / "new", [], [], 1)
    for depth in ("001", "016", "256"):
        assert values(tmp_path / "new" / f"depth-{depth}.conf", "threads") == [depth]
    for load in ("bursts", "steady"):
        [name] = values(tmp_path / "new" / f"{load}.conf", "input_file_list")
        assert (DEFAULTS.parent / name.removeprefix("/base/")).is_file()


def test_repeats_are_a_level_whose_confs_change_nothing(tmp_path: Path) -> None:
    leaves = create(tmp_path / "new", [], [], 12)
    assert len(leaves) == 72
    assert leaves[0].name == "repeat-01"
    assert "\n      repeat-01 to repeat-12    the same again" in (tmp_path / "new" / "README").read_text()
    conf = (tmp_path / "new" / "repeat-12.conf").read_text()
    assert all(line.startswith("#") for line in conf.splitlines())


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    for target in (tmp_path, tmp_path / "mine"):
        with pytest.raises(UserError, match="exists already: name a new directory"):
            create(target, [], [], 1)
    assert (tmp_path / "mine").read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


@pytest.mark.parametrize(
    ("hosts", "devices"),
    [
        (['a"; touch x; "'], []),
        (["$(touch x)"], []),
        (["-oProxyCommand=x"], []),
        ([], ["/dev/`x`"]),
        ([], ["/dev/a b"]),
        ([], ["sdb"]),
        ([""], []),
    ],
)
def test_names_that_a_shell_would_evaluate_are_refused(tmp_path: Path, hosts: list[str], devices: list[str]) -> None:
    with pytest.raises(UsageError, match="invalid"):
        create(tmp_path / "new", hosts, devices, 1)
    assert not (tmp_path / "new").exists()


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=r"cannot create .*file"):
        create(tmp_path / "file" / "new", [], [], 1)


@pytest.mark.parametrize("place", ["new/inner", "new/bursts/deep/inner"])
def test_a_campaign_inside_another_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    create(tmp_path / "new", [], [], 1)
    monkeypatch.chdir(tmp_path / "new")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(UserError, match=r"/new is a campaign, .* \(iosonar campaign new \.\./inner\)"):
        create(tmp_path / place, [], [], 1)
    assert sorted(tmp_path.rglob("*")) == before
    assert len(create(Path("../inner"), [], [], 1)) == 6


def test_a_campaign_where_no_leaves_are_is_not_refused(tmp_path: Path) -> None:
    create(tmp_path / "new", [], [], 1)
    assert create(tmp_path / "new/old/inner", [], [], 1)
