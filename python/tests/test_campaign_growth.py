"""Journals that are copied while replays run."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from campaign_hosts import EmulatedHost, EmulatedHosts
from campaign_trees import Campaign

from iosonar.campaign import growth
from iosonar.campaign.hosts import HostError, Hosts


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def replays_on(host: EmulatedHost) -> list[str]:
    return [each for each in host.leftovers() if " replay " in each and "host.sh" not in each]


def test_a_copy_grows_until_its_host_is_lost(
    hosts: Hosts, emulated: EmulatedHosts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(growth, "EVERY_S", 0.05)
    host = hosts.get("a")
    source, late, copy = Path(host.directory) / "journal", Path(host.directory) / "late", tmp_path / "copy"
    journals = {"a": {str(source): copy, str(late): tmp_path / "late"}}
    with pytest.raises(HostError), growth.Growth(hosts, journals):
        source.write_bytes(b"first" * 100)
        wait_until(lambda: copy.exists() and copy.stat().st_size == 500)
        # The start of a journal changes until it has rows.
        source.write_bytes(b"other" * 100)
        wait_until(lambda: copy.read_bytes() == b"other" * 100)
        for size in (30_000, 30_001, 90_000):
            with source.open("ab") as file:
                file.write(bytes(range(250)) * (size // 250 + 1))
            wait_until(lambda: copy.stat().st_size == source.stat().st_size)
        assert copy.read_bytes() == source.read_bytes() and (tmp_path / "late").read_bytes() == b""
        emulated["a"].set_link(up=False)
        raise HostError("a", "lost")
    assert hosts.reconnect_timeout > 0
    assert copy.read_bytes() == source.read_bytes()
    emulated["a"].set_link(up=True)


def test_the_last_rows_are_copied_after_an_error(hosts: Hosts, tmp_path: Path) -> None:
    source = Path(hosts.get("a").directory) / "journal"
    source.write_bytes(b"rows")
    with pytest.raises(KeyError), growth.Growth(hosts, {"a": {str(source): tmp_path / "copy"}}):
        raise KeyError
    assert (tmp_path / "copy").read_bytes() == b"rows"


def test_a_lost_host_leaves_what_it_had_measured(tmp_path: Path, emulated: EmulatedHosts) -> None:
    targets = {name: emulated[name].directory / "target" for name in "ab"}
    for target in targets.values():
        target.write_bytes(bytes(1 << 22))
    places = " ".join(f"{host}:{target}" for host, target in targets.items())
    campaign = Campaign(tmp_path / "top", replay_host_list=places, replay_device_list="", replay_duration=100)
    campaign.leaf("a", "reconnect_timeout=1; replay_options=(--edit 'repeat')")

    def lose() -> None:
        journals = campaign.top / "a"
        wait_until(lambda: sum(path.stat().st_size > 1 << 14 for path in journals.glob(".*.journal")) == 2)
        emulated["b"].stop_sshd()

    loser = threading.Thread(target=lose)
    loser.start()
    campaign.run(status=1, IOSONAR_SSH_CONFIG=str(emulated.config))
    loser.join()
    assert "no connection for 1 s" in campaign.state("a").reason
    # The replay on the lost host goes on, until the host is reached again.
    assert not replays_on(emulated["a"]) and replays_on(emulated["b"])
    emulated["b"].start_sshd()
    campaign.run("undo", IOSONAR_SSH_CONFIG=str(emulated.config))
    assert emulated.leftovers() == []
    kept = list((campaign.top / "a/failed-1.old").iterdir())
    assert len(kept) == 2 and all(pq.read_table(path).num_rows > 100 for path in kept)
    # Only the replay on the host that still answers could write its result itself.
    footers = [pq.read_metadata(path).metadata or {} for path in sorted(kept)]
    statistics = [json.loads(footer[b"iosonar"])["run"]["statistics"] for footer in footers]
    assert [bool(each.get("usage")) for each in statistics] == [True, False]
