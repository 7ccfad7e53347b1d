"""The common start of hosts whose clocks differ, and what the report says about it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from campaign_hosts import EmulatedHosts
from campaign_trees import Campaign

from iosonar.campaign.host_clocks import HostClocks
from iosonar.campaign.hosts import ClockReading, Exchange, Hosts
from iosonar.campaign.hosts.shell_host import ShellHost
from iosonar.campaign.report.starts import Start, ranks, rows, sentences
from iosonar.campaign.undo import Undo
from iosonar.errors import UserError

START = Start("a", "/dev/sdb", "done", "", 0.0, 40e-6, 1.5, "boot")
AHEAD_S = {"a": 4000, "b": 100}


def test_hosts_with_other_clocks_start_together(tmp_path: Path, emulated: EmulatedHosts) -> None:
    devices = {}
    for name, host in emulated.hosts.items():
        host.stop_sshd()
        host.clock_s = AHEAD_S[name]
        host.start_sshd()
        devices[name] = host.directory / "device"
        devices[name].write_bytes(bytes(4 << 20))
    hosts = " ".join(f"{name}:{device}" for name, device in devices.items())
    campaign = Campaign(tmp_path / "top", replay_host_list=hosts)
    campaign.leaf("x")
    campaign.run(IOSONAR_SSH_CONFIG=str(emulated.config))
    instances = campaign.state("x").instances
    for instance in instances:
        assert instance.clock_offset_s is not None and instance.clock_uncertainty_s is not None
        assert abs(instance.clock_offset_s - AHEAD_S[instance.host]) <= instance.clock_uncertainty_s < 0.02
        drift, doubt = instance.clock_drift_ppm, instance.clock_drift_uncertainty_ppm
        assert drift is not None and doubt is not None and abs(drift) <= doubt
        skew, doubt = instance.start_skew_s, instance.start_skew_uncertainty_s
        # The kernel is the same, so its clock started both at once; the offsets differ by an hour.
        assert skew is not None and doubt is not None and abs(skew) <= 2 * doubt < 0.04
        assert instance.boot_id and (instance.clock_exchanges or 0) > 80
    found = json.loads(campaign.run("report", "--json").stdout)
    (leaf,) = found["leaves"]
    assert [each["host"] for each in leaf["starts"]] == ["a", "b"]
    page = (campaign.top / "campaign.report.html").read_text()
    assert all(words in page for words in ("start skew", "hosts whose ranges overlap may have begun in any order"))


def test_starts_that_overlap_have_no_order() -> None:
    starts = [
        replace(START, host="a", skew_s=0.0001),
        replace(START, host="b", skew_s=0.0),
        replace(START, host="c", skew_s=0.00005),
        replace(START, host="d", skew_s=None),
    ]
    assert ranks(starts) == {0: "1–3", 1: "1–3", 2: "1–3"}
    apart = [replace(each, uncertainty_s=1e-6) for each in starts]
    assert ranks(apart) == {0: "3", 1: "1", 2: "2"}
    assert next(rows("x", starts)) == ("x", "a", "/dev/sdb", "100 µs ± 40 µs", "1–3", "+1.50 ppm", "done")


def test_late_lost_and_restarted_hosts_are_named() -> None:
    starts = [
        START,
        replace(START, host="b", skew_s=0.005),
        replace(START, host="c", state="failed", reason="the host was restarted at 3 s", skew_s=None),
        replace(START, host="d", state="failed", reason="d is unreachable: no connection for 300 s", skew_s=None),
        # Perhaps it was not late.
        replace(START, host="e", skew_s=0.005, uncertainty_s=0.005),
    ]
    assert list(sentences("x", starts)) == [
        "in x, began late: b:/dev/sdb by 5 ms ± 40 µs",
        "in x, restarted: c",
        "in x, lost: d",
    ]
    assert list(sentences("x", [START])) == []


def test_near_hosts_are_measured_again_one_after_the_other(undo: Undo, monkeypatch: pytest.MonkeyPatch) -> None:
    round_trips = {"near": 200_000, "nearer": 100_000, "far": 50_000_000}
    asked, running = [], []

    def clock(self: ShellHost, *_: int) -> ClockReading:
        running.append(self.name)
        assert running == [self.name]
        asked.append(self.name)
        running.remove(self.name)
        return ClockReading("boot", (Exchange(0, 0, round_trips[self.name]),))

    monkeypatch.setattr(ShellHost, "clock", clock)
    with Hosts(undo) as hosts:
        clocks = HostClocks(hosts, lambda _: None)
        for name in round_trips:
            clocks.measure(name)
        asked.clear()
        clocks.refine(round_trips)
        # The slowest exchange first; far hosts are limited by the network.
        assert asked == ["near", "nearer"]
        clocks.forget()
        clocks.refine(round_trips)
        assert len(asked) == 2


def test_a_restart_between_two_measurements_is_an_error(undo: Undo, monkeypatch: pytest.MonkeyPatch) -> None:
    with Hosts(undo) as hosts:
        clocks = HostClocks(hosts, lambda _: None)
        clocks.measure("localhost")
        assert not clocks.restarted("localhost")
        other = ClockReading("another boot", (Exchange(1, 2, 3, 4),))
        monkeypatch.setattr(type(hosts.get("localhost")), "clock", lambda *_: other)
        assert clocks.restarted("localhost")
        with pytest.raises(UserError, match="localhost: the host was restarted during the leaf"):
            clocks.measure("localhost")
