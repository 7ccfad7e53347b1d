"""Campaigns whose loads are calls to files, and instances of a replay on several hosts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from binary import iosonar
from campaign_hosts import EmulatedHosts
from campaign_trees import Campaign
from test_report import report

PROGRAM = Path(sys.executable).with_name("iosonar")


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Reads of a file, and no writes."""
    path = tmp_path_factory.mktemp("trace") / "t.calls.parquet"
    iosonar("files", "generate", "cms-analysis", path, "--scale", "0.0001", "--rate", "2k")
    return path


def campaign_of(tmp_path: Path, trace: Path, **variables: object) -> Campaign:
    root = tmp_path / "root"
    return Campaign(
        tmp_path / "top", input_file_list=trace, replay_device_list=root, **{"replay_duration": 0, **variables}
    )


def test_a_leaf_of_calls_replays_them_below_its_root(tmp_path: Path, trace: Path) -> None:
    campaign = campaign_of(tmp_path, trace)
    campaign.leaf("a")
    plan = campaign.run("--dry-run").stdout
    assert "a: iosonar files replay --depth 4\n" in plan and ".calls-run.parquet\n" in plan
    done = campaign.run("--fail-if", "mismatches > 0")
    root = str(tmp_path / "root").strip("/").replace("/", ".")
    assert campaign.results("a") == [f"T.a.localhost.{root}.calls-run.parquet"]
    assert "no condition of --fail-if holds" in done.stderr
    (instance,) = campaign.state("a").instances
    assert instance.summary is not None and instance.summary["issued"] > 0
    assert instance.summary["usage"]["available_bytes"] > 0
    assert campaign.state("a").options == ["--depth", "4"]
    assert [row["state"] for row in json.loads(campaign.run("status", "--json").stdout)] == ["done"]
    found = json.loads(campaign.run("report", "--json").stdout)
    assert [leaf["metrics"]["mismatches"] for leaf in found["leaves"]] == [0]
    assert campaign.run("--fail-if", "requests > 1", status=3)
    assert campaign.left() == []


def test_files_are_restored_before_each_leaf_of_calls(tmp_path: Path, trace: Path) -> None:
    campaign = campaign_of(tmp_path, trace)
    campaign.leaf("a", "replay_options=(--instances 2)")
    campaign.run()
    root = tmp_path / "root"
    assert sorted(path.name for path in root.iterdir() if not path.name.startswith(".")) == ["instance-0", "instance-1"]
    other = root / "instance-1/other"
    other.touch()
    campaign.leaf("b", "replay_options=(--instances 2)")
    assert "left" not in campaign.run().stderr
    assert not other.exists()
    campaign.leaf("c", "replay_options=(--instances 2); files_prepare=0")
    other.touch()
    assert "finds files as that one left them; set files_prepare=reset" in campaign.run().stderr
    assert other.exists()


@pytest.mark.parametrize(
    ("conf", "why"),
    [
        ("simulate_io=0.001", "simulate_io is for loads of requests: use fake_io=1"),
        ("replay_options=(--root /tmp)", "the campaign sets --root from replay_device_list"),
        ("replay_options=(--start-file x)", "--start-file is the campaign's own"),
        ("files_prepare=yes", "files_prepare=yes: use one of reset, add, 0"),
        ("input_pipe_list=' | cat'", "the filters of loads"),
        ("replay_device_list=/nowhere/root", "files prepare failed: "),
        ('input_file_list="$input_file_list $PWD/../made.load.gz"', "use two leaves"),
        ("replay_host_list='localhost localhost'; output_add_host=1; output_add_input=1", "same result name"),
    ],
)
def test_what_calls_cannot_have_fails_with_what_to_do(tmp_path: Path, trace: Path, conf: str, why: str) -> None:
    campaign = campaign_of(tmp_path, trace)
    campaign.leaf("a", conf)
    campaign.run(status=1)
    assert why in campaign.state("a").reason
    assert campaign.results("a") == []


def test_hosts_replay_calls_from_one_common_start(tmp_path: Path, trace: Path, emulated: EmulatedHosts) -> None:
    roots = {name: emulated[name].directory / "root" for name in "ab"}
    campaign = campaign_of(tmp_path, trace, replay_host_list=" ".join(f"{host}:{roots[host]}" for host in roots))
    campaign.leaf("a")
    campaign.run(IOSONAR_SSH_CONFIG=str(emulated.config))
    assert len(campaign.results("a")) == 2
    assert [instance.host for instance in campaign.state("a").instances] == ["a", "b"]
    assert all(instance.start_skew_s is not None for instance in campaign.state("a").instances)
    found = json.loads(campaign.run("report", "--json").stdout)
    assert found["leaves"][0]["metrics"]["mismatches"] == 0
    assert emulated.leftovers() == []


def scale(emulated: EmulatedHosts, trace: Path, root: Path, output: Path, *words: str, status: int = 0) -> str:
    done = subprocess.run(
        [PROGRAM, "files", "scale", trace, "--root", root, "--output", output, *words],
        env={**os.environ, **emulated.environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status, done.stderr
    return done.stdout if status == 0 else done.stderr


def test_instances_are_dealt_to_hosts(tmp_path: Path, trace: Path, emulated: EmulatedHosts) -> None:
    root, output = tmp_path / "root", tmp_path / "t.scale.parquet"
    root.mkdir()
    words = ("--hosts", "a,b", "--instances", "1,3", "--json", "--", "--asap")
    found = json.loads(scale(emulated, trace, root, output, *words))
    assert found["complete"] and found["mismatches"] == 0
    hosts = [[(each["host"], each["instances"]) for each in point["hosts"]] for point in found["points"]]
    assert hosts == [[("a", 1)], [("a", 2), ("b", 1)]]
    for point in found["points"]:
        assert 0 < point["shortest_s"] <= point["average_s"] <= point["longest_s"]
        # At least what ssh needs.
        assert point["received_bytes"] == sum(each["received_bytes"] for each in point["hosts"])
    rows = pq.read_table(output).to_pylist()
    assert [(row["instances"], row["host"], row["instance"]) for row in rows] == [
        (1, "a", 0),
        (3, "a", 0),
        (3, "a", 1),
        (3, "b", 2),
    ]
    assert list(root.iterdir()) == [] and emulated.leftovers() == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["root", "t.scale.parquet"]
    assert report(output, "--out", tmp_path) == 0
    assert "Bytes on the network" in (tmp_path / "t.scale.report.html").read_text(encoding="utf-8")


def test_a_signal_ends_a_scale_and_nothing_is_left(tmp_path: Path, emulated: EmulatedHosts) -> None:
    trace, root, output = tmp_path / "t.calls.parquet", tmp_path / "root", tmp_path / "t.scale.parquet"
    root.mkdir()
    # Of few reads, each minutes after the one before.
    iosonar("files", "generate", "cms-analysis", trace, "--scale", "0.0001", "--rate", "1")
    words = ["--root", root, "--output", output, "--hosts", "a,b", "--instances", "2", "--", "--speedup", "0.001"]
    process = subprocess.Popen(
        [PROGRAM, "files", "scale", trace, *map(str, words)],
        env={**os.environ, **emulated.environment},
        stderr=subprocess.PIPE,
    )
    while len(list(emulated["b"].temporary.glob("*/*.start"))) == 0:
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    assert process.communicate()[1].decode().splitlines()[-1] == "cut short: no table"
    assert process.returncode == 5 and not output.exists()
    assert list(root.iterdir()) == [] and emulated.leftovers() == []


def test_hosts_that_cannot_be_used_are_named(tmp_path: Path, trace: Path, emulated: EmulatedHosts) -> None:
    output = tmp_path / "t.scale.parquet"
    for hosts, root, why in (
        ("a,a", tmp_path, "a is named twice"),
        ("a,never.invalid", tmp_path, "never.invalid"),
        ("a", tmp_path / "missing", f"a: cannot create {tmp_path}/missing/iosonar-scale-a: no directory"),
        ("-x", tmp_path, "is not a host name"),
    ):
        words = (f"--hosts={hosts}", "--instances", "2")
        status = 2 if hosts == "a,a" else 1
        assert why in scale(emulated, trace, root, output, *words, status=status)
    (tmp_path / "iosonar-scale-a").mkdir()
    said = scale(emulated, trace, tmp_path, output, "--hosts", "a", status=1)
    assert "remove what an earlier experiment left" in said
    assert (tmp_path / "iosonar-scale-a").exists() and not output.exists()
    assert emulated.leftovers() == []
