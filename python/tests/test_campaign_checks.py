"""Checks before a run: temperatures, RAID arrays, free space."""

from __future__ import annotations

from pathlib import Path

import pytest
from binary import loop_device
from campaign_trees import Campaign

from iosonar.campaign import checks, confs, loop
from iosonar.campaign.hosts import Hosts
from iosonar.campaign.undo import Undo

MDSTAT = """\
Personalities : [raid1]
md0 : active raid1 sdb1[1] sda1[0]
      1048576 blocks super 1.2 [2/2] [UU]
md1 : active raid1 sdc1[1]
      1048576 blocks super 1.2 [2/1] [_U]
md2 : active raid5 sde[3] sdf[1] sdg[0]
      209 blocks level 5 [3/2] [UU_]
      [==>..................]  recovery = 12.6% (13/104) finish=1.2min speed=12K/sec
md3 : inactive sdh[0](S)
      1048576 blocks super 1.2
unused devices: <none>
"""
CONF = (confs.BASE / "defaults/default-check.conf").read_text()


def facts(*lines: str) -> checks.Facts:
    return checks.parse("\n".join(lines))


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        ("md0", ""),
        ("md1", "a: md1, below /dev/vg/x, is degraded, with 1 of 2 disks: replace"),
        ("md2", "a: md2, below /dev/vg/x, runs a recovery (12.6%): wait"),
        ("md3", "a: md3, below /dev/vg/x, is inactive: start it"),
    ],
)
def test_a_sick_array_below_a_device_is_refused(array: str, expected: str) -> None:
    found = facts(f"below /dev/vg/x {array}", *(f"mdstat {line}" for line in MDSTAT.splitlines()))
    said = list(checks.raid("a", found))
    assert len(said) == bool(expected) and all(text.startswith(expected) for text in said)


def test_arrays_of_other_devices_are_not_the_campaigns_matter() -> None:
    assert not list(checks.raid("a", facts("below /dev/sdz sdz", *(f"mdstat {line}" for line in MDSTAT.splitlines()))))


def test_a_drive_is_too_hot_by_the_limit_or_its_own() -> None:
    found = facts("heat sda 61000 60000", "heat nvme0n1 65000 0", 'smart sdb {"temperature": {"current": 71}}')
    assert list(checks.hot("a", found, 70)) == [
        "a: sda is at 61 °C, above 60 °C (the limit of the drive)",
        "a: sdb is at 71 °C, above 70 °C (check_temperature)",
    ]
    assert list(checks.hot("a", found, 0)) == []
    assert facts("smart sdc ", "smart sdd {}", "heat sde  x").heat == {}


def test_temperatures_of_disks_are_found_below_arrays(
    tmp_path: Path, hosts: Hosts, monkeypatch: pytest.MonkeyPatch
) -> None:
    sys, proc = tmp_path / "sys", tmp_path / "proc"
    monkeypatch.setattr(checks, "SYS", str(sys))
    monkeypatch.setattr(checks, "PROC", str(proc))
    partition = sys / "devices/sda/sda1"
    partition.mkdir(parents=True)
    (partition / "partition").touch()
    (sys / "class/block").mkdir(parents=True)
    (sys / "class/block/sda1").symlink_to(partition)
    sensor = sys / "devices/sda/device/hwmon/hwmon3"
    sensor.mkdir(parents=True)
    (sensor / "temp1_input").write_text("64000\n")
    (sensor / "temp1_max").write_text("60000\n")
    proc.mkdir()
    (proc / "mdstat").write_text(MDSTAT)
    with loop_device(1 << 20) as device:
        (sys / "class/block" / device.name / "slaves/sda1").mkdir(parents=True)
        both = [checks.facts(hosts.get(name), [str(device)]) for name in ("a", "localhost")]
    for found in both:
        assert found.below == {str(device): [device.name, "sda"]}
        assert found.heat == {"sda": (64.0, 60.0)} and found.mdstat == MDSTAT.splitlines()
        assert found.free[found.temporary][1] > 0


def test_a_sparse_target_needs_the_space_that_it_has_not_yet(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "top")
    (name, needed), *_ = [
        (path, bytes_) for _, path, bytes_ in checks.parse(f"file 7 1 {4 << 20} 8 {campaign.device}").files
    ]
    assert (name, needed) == (str(campaign.device), (4 << 20) - 8 * 512)
    with Hosts(Undo(tmp_path / "undo")) as hosts:
        found = checks.facts(hosts.get("localhost"), [str(campaign.device)])
    assert found.files == [(campaign.device.stat().st_dev, str(campaign.device), 4 << 20)]
    (said,) = checks.space("a", facts("space 7 1 /tmp"), {7: 1000.0}, 100.0)
    assert said.startswith(
        "a: 1 KiB are free in the file system of /tmp, but 1.07 KiB are needed (100 B for check_free)"
    )


def test_a_failed_check_stops_the_leaf_before_any_change(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "top", dry_run=1)
    campaign.conf("default-check", CONF)
    campaign.conf("default-wipe")
    campaign.leaf("a", "check_free=1e9; enable_wipe=1; dry_run=0")
    campaign.leaf("b", "check_free=-1")
    campaign.leaf("c", "check_free=1e9; enable_check=0")
    campaign.leaf("d", "check_raid=yes")
    campaign.run(status=1)
    reason = campaign.state("a").reason
    assert (
        "are needed" in reason and "make room, set TMPDIR" in reason and "wipe_setup" not in campaign.state("a").took_s
    )
    assert [campaign.state(leaf).state for leaf in "bc"] == ["done", "done"]
    assert campaign.state("d").reason == "check_raid=yes: a number is expected"


def test_a_leaf_waits_for_hot_drives_and_then_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    campaign = Campaign(tmp_path / "top")
    campaign.conf("default-check", CONF)
    campaign.leaf("a", "check_wait=0.1")
    monkeypatch.setattr(checks, "parse", lambda _: checks.Facts(heat={"sda": (90.0, 60.0)}))
    ((_, reason),) = loop.run(campaign.top, loop.Options()).failed
    assert reason.startswith("localhost: sda is at 90 °C, above 60 °C (the limit of the drive): cool the drives")
    assert any("waiting up to 100 ms" in note for note in campaign.state("a").notes)
