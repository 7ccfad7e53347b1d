"""Several devices in one report: each by itself, the slow one named."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from factory import MS, S, run_row, write_run
from test_report import report

from iosonar.diagrams import CATALOGUE, Options, Study
from iosonar.diagrams.devices import slow_devices
from iosonar.errors import UsageError
from iosonar.figures.model import Cloud, Empty, Figure, Line, Role, Steps
from iosonar.report.run_tables import devices
from iosonar.study.requests import LATENCY
from iosonar.table import devices_of, only_device, open_requests

SLOW = 3
"""The host whose device is slow."""


def target(path: str) -> dict[str, object]:
    return {"path": path, "kind": "block", "sectors": 4194304}


def runs(directory: Path, hosts: int = 6, requests: int = 1200) -> list[Path]:
    """A run of each host; one device is four times as slow."""
    found = []
    for host in range(hosts):
        latency = 4 * MS if host == SLOW else MS
        rows = [
            run_row(n, scheduled=n * S // 100, latency=latency + n % 7, op="write" if n % 2 else "read", sector=n * 8)
            for n in range(requests)
        ]
        run = {"target": target("/dev/sdb"), "machine": {"hostname": f"host{host}"}}
        found.append(write_run(directory / f"leaf.host{host}.replay.parquet", rows, run=run))
    return found


@pytest.fixture
def study(tmp_path: Path) -> Iterator[Study]:
    with open_requests(runs(tmp_path)) as requests:
        yield Study(requests, Options(each_device=True))


def test_a_device_has_the_name_of_its_host_and_path(tmp_path: Path) -> None:
    with open_requests(runs(tmp_path, 2)) as requests:
        assert [device.name for device in devices_of(requests.files)] == ["host0:/dev/sdb", "host1:/dev/sdb"]


def test_runs_of_the_same_device_have_different_names(tmp_path: Path) -> None:
    paths = [
        write_run(tmp_path / f"{name}.replay.parquet", [run_row(latency=at)], run={"target": target("/dev/sdb")})
        for at, name in enumerate("ab", 1)
    ]
    with open_requests(paths) as requests:
        assert [device.name for device in devices_of(requests.files)] == ["/dev/sdb · a", "/dev/sdb · b"]


def test_files_of_one_name_in_two_directories_are_two_devices(tmp_path: Path) -> None:
    paths = []
    for at, name in enumerate("ab", 1):
        (tmp_path / name).mkdir()
        run = {"target": target("/dev/sdb")}
        paths.append(write_run(tmp_path / name / "x.replay.parquet", [run_row(latency=at * MS)], run=run))
    with open_requests(paths) as requests:
        names = [device.name for device in devices_of(requests.files)]
        assert names == [f"/dev/sdb · {path}" for path in paths]
        assert [each.latency.maximum for each in Study(requests, Options()).devices] == [2 * MS, MS]


def test_the_targets_of_one_run_are_devices(tmp_path: Path) -> None:
    targets = [target("/dev/sdb") | {"sources": [0]}, target("/dev/sdc") | {"sources": [1], "others": True}]
    rows = [run_row(n, device=n % 3) for n in range(9)]
    devices = [{"name": name} for name in ("a", "b", "c")]
    path = write_run(
        tmp_path / "x.replay.parquet", rows, run={"target": targets[0], "targets": targets}, devices=devices
    )
    with open_requests([path]) as requests:
        assert [(each.name, each.of_load) for each in devices_of(requests.files)] == [
            ("/dev/sdb", (0,)),
            ("/dev/sdc", (1, 2)),
        ]
        found = Study(requests, Options())
        assert {each.device.name: each.latency.count for each in found.devices} == {"/dev/sdb": 3, "/dev/sdc": 6}
        only = only_device(requests, "sdc")
        assert only.table.count().to_pyarrow().as_py() == 6
        assert [each.path for each in only.files[0].targets] == ["/dev/sdc"]


@pytest.mark.parametrize("name", ["host3:/dev/sdb", "host3:sdb", "leaf.host3"])
def test_one_device_is_chosen_by_any_of_its_names(tmp_path: Path, name: str) -> None:
    with open_requests(runs(tmp_path)) as requests:
        only = only_device(requests, name)
        found = Study(only, Options())
        assert [file.name for file in only.files] == ["leaf.host3"]
        assert found.pooled(LATENCY).count == 1200
        assert found.pooled(LATENCY).minimum == 4 * MS


def test_a_device_on_all_hosts_is_chosen_by_its_path(tmp_path: Path) -> None:
    with open_requests(runs(tmp_path)) as requests:
        assert len(only_device(requests, "/dev/sdb").files) == 6


def test_an_unknown_device_is_an_error_with_the_known_ones(tmp_path: Path) -> None:
    with open_requests(runs(tmp_path)) as requests, pytest.raises(UsageError, match="did you mean host1:/dev/sdb"):
        only_device(requests, "host1:/dev/sdx")


def test_the_slow_device_is_named_and_comes_first(study: Study) -> None:
    assert study.devices[0].device.name == "host3:/dev/sdb"
    assert slow_devices(study) == [
        "host3:/dev/sdb: its p99 latency, 4 ms, is 4 times the median p99 of the 5 others with the same demand, 1 ms "
        "(95 % interval 4 … 4)"
    ]


def test_every_dynamic_diagram_has_a_series_for_each_device(study: Study) -> None:
    names = {f"host{host}:/dev/sdb" for host in range(6)}
    drawn = 0
    for diagram in CATALOGUE:
        if diagram.group.value not in ("dynamic", "devices") or diagram.name.startswith(("overview", "pushback")):
            continue
        figure = diagram.build(study)
        if isinstance(figure, Empty):
            continue
        assert isinstance(figure, Figure)
        labels = {layer.label for layer in figure.layers if isinstance(layer, Line | Steps)}
        labels |= {part.label for layer in figure.layers if isinstance(layer, Cloud) for part in layer.parts}
        assert names <= labels, diagram.name
        drawn += 1
    assert drawn > 15


def test_of_many_devices_the_slowest_have_series_of_their_own(tmp_path: Path) -> None:
    with open_requests(runs(tmp_path, 9, 300)) as requests:
        found = Study(requests, Options(each_device=True))
        groups = found.device_groups
        assert groups[0].title == "host3:/dev/sdb"
        assert (len(groups), groups[-1].title, len(groups[-1].devices)) == (6, "4 other devices", 4)
        figure = next(diagram for diagram in CATALOGUE if diagram.name == "latency.realtime").build(found)
        assert isinstance(figure, Figure)
        parts = next(layer for layer in figure.layers if isinstance(layer, Cloud)).parts
        assert [int(part.counts.sum()) for part in parts] == [300] * 5 + [1200]
        assert [part.role for part in parts] == [*list(Role)[-6:-1], Role.FAINT]


def test_the_page_of_several_devices_shows_each(tmp_path: Path) -> None:
    assert report(*runs(tmp_path), "--out", tmp_path) == 0
    page = (tmp_path / "leaf.host0-5.report.html").read_text()
    assert len(re.findall("<summary><b>S11 One device is slow</b> host3:/dev/sdb: its p99 latency", page)) == 1
    assert "Slow device:" not in page
    assert "Latency of each device over time" in page


def test_the_page_of_one_device_has_no_section_of_devices(tmp_path: Path) -> None:
    assert report(*runs(tmp_path), "--out", tmp_path, "--device", "host3:sdb") == 0
    page = (tmp_path / "leaf.host3.host3_sdb.report.html").read_text()
    assert 'id="devices"' not in page


def two(directory: Path, *, at: int = 0, every: int = S // 100, **run: object) -> list[Path]:
    """A run of two devices: the second is four times as slow, with requests from `at` on."""
    found = []
    for host, (latency, start, gap) in enumerate([(MS, 0, S // 100), (4 * MS, at, every)]):
        rows = [run_row(n, scheduled=start + n * gap, latency=latency + n % 7, sector=n * 8) for n in range(1200)]
        about = {"target": target("/dev/sdb"), "machine": {"hostname": f"host{host}"}, **run}
        found.append(write_run(directory / f"leaf.host{host}.replay.parquet", rows, run=about))
    return found


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({}, True),
        ({"at": 20 * S}, False),
        ({"every": S // 300}, False),
        ({"statistics": {"within_pct": {"10": 1, "50": 2, "100": 3}, "delay_us": {"p99": 9.0}}}, False),
        ({"fake": "FAKE RESULT: simulated"}, False),
    ],
    ids=["the same demand", "other times", "another rate", "not faithful", "fake"],
)
def test_only_a_valid_run_of_the_same_demand_shows_slow_devices(
    tmp_path: Path, other: dict[str, object], said: bool
) -> None:
    with open_requests(two(tmp_path, **other)) as requests:  # type: ignore[arg-type]
        found = slow_devices(Study(requests, Options()))
    assert bool(found) == said
    assert all("95 % interval" in text for text in found)


def test_a_device_with_a_wide_interval_is_not_called_slow(tmp_path: Path) -> None:
    # The latencies above p99 are those of one short moment.
    paths = []
    for host in range(2):
        rows = [
            run_row(n, scheduled=n * S // 100, latency=9 * MS if host and 600 <= n < 613 else MS, sector=n * 8)
            for n in range(1200)
        ]
        about = {"target": target("/dev/sdb"), "machine": {"hostname": f"host{host}"}}
        paths.append(write_run(tmp_path / f"leaf.host{host}.replay.parquet", rows, run=about))
    with open_requests(paths) as requests:
        assert slow_devices(Study(requests, Options())) == []


def test_the_table_of_devices_has_rate_and_both_depths(tmp_path: Path) -> None:
    # 100 requests/s of 4 ms are 0.4 in flight on average; each waits for another 6 ms: 1 is due and not completed.
    paths = []
    for host, delay in (("slow", 6 * MS), ("fast", 0)):
        rows = [
            run_row(n, scheduled=n * S // 100, delay=delay, latency=4 * MS + (n if delay else 0)) for n in range(1000)
        ]
        run = {"target": target("/dev/sdb"), "machine": {"hostname": host}}
        paths.append(write_run(tmp_path / f"leaf.{host}.replay.parquet", rows, run=run))
    with open_requests(paths) as requests:
        table = devices(Study(requests, Options()))
    place = table.columns.index("rate")
    assert table.columns[place : place + 3] == ("rate", "due, not completed", "in flight")
    found = {row[0]: [float(cell.removesuffix("/s")) for cell in row[place : place + 3]] for row in table.rows}
    assert found["slow:/dev/sdb"] == pytest.approx([100, 1.0, 0.4], rel=0.01)
    assert found["fast:/dev/sdb"] == pytest.approx([100, 0.4, 0.4], rel=0.01)
