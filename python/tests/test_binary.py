"""Both halves together: the output of the binary conforms to the schemas, and the Python half reads it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from binary import iosonar, replay
from factory import STATISTICS, run_row, write_run
from test_compare import compare

from iosonar import units
from iosonar.diagrams import Options, Study
from iosonar.quantities.blocks import rates
from iosonar.quantities.work import work
from iosonar.report.run_page import run_page
from iosonar.study.calls import CallStudy
from iosonar.study.of_calls import summary_of_calls
from iosonar.table import open_requests
from iosonar.table.calls import open_calls


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A short artificial load, replayed on a file: the result, and the printed statistics."""
    directory = tmp_path_factory.mktemp("replay")
    load, target, run = directory / "a.load.parquet", directory / "target", directory / "a.replay.parquet"
    target.write_bytes(bytes(8 << 20))
    iosonar("generate", "poisson", load, "--rate", 500, "--duration", "1s", "--span", "8M")
    return run, replay(load, target, run)


def test_the_footer_has_the_printed_statistics(replayed: tuple[Path, dict[str, Any]]) -> None:
    run, printed = replayed
    assert printed["requests"] > 0
    footer = json.loads(pyarrow.parquet.read_schema(run).metadata[b"iosonar"])
    assert footer["run"]["statistics"] == printed


def test_an_asap_run_has_no_delay(replayed: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    run, timed = replayed
    load, target = run.with_name("a.load.parquet"), run.with_name("target")
    statistics = replay(load, target, tmp_path / "b.replay.parquet", "--asap")
    assert timed["delay_us"] is not None and statistics["delay_us"] is None
    assert statistics["requests"] == timed["requests"]


def test_report_reads_a_result_of_replay(replayed: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    iosonar("report", replayed[0], "--format", "png", "--only", "latency.realtime", "--out", tmp_path)
    assert (tmp_path / "a.g01.latency.realtime.png").exists()


@pytest.mark.parametrize("name", ["report", "compare", "ab", "sql", "sweep", "sensitivity", "campaign"])
def test_the_binary_has_the_same_descriptions_of_python_commands(name: str) -> None:
    listed = " ".join(iosonar("--help").split())
    own = iosonar(name, "--help").split("\n\n")[0]
    description = " ".join(own.split())
    assert re.search(rf" {name} {re.escape(description)} ", listed), f"{description!r} is not in: {listed}"


def test_a_run_has_one_rate_everywhere(tmp_path: Path) -> None:
    # It begins late, and its last requests complete after the load's end.
    load, run = tmp_path / "a.load.parquet", tmp_path / "a.replay.parquet"
    iosonar("generate", "poisson", load, "--rate", 200, "--duration", "20s", "--span", "1G", "--seed", 3)
    words = ("--simulate", "hdd", "--virtual-time", "--depth", 4, "--start", "3.7")
    printed = json.loads(iosonar("replay", load, "--output", run, "--json", *words))
    info = json.loads(iosonar("info", "--json", run))
    with open_requests([run]) as requests:
        done = work(requests.table)
        tiles = {tile.label: tile.value for tile in run_page(Study(requests, Options()), ()).summary.tiles}
        blocks = rates(requests.table)
    rate = printed["iops"]
    assert info["requests_per_s"] == pytest.approx(rate, rel=1e-9)
    assert info["duration_s"] == pytest.approx(printed["elapsed_s"], rel=1e-9)
    assert done.requests / done.seconds == pytest.approx(rate, rel=1e-9)
    assert blocks.mean() == pytest.approx(rate, rel=1e-6)
    assert tiles["Throughput"] == f"{units.count(rate)} requests/s"
    assert compare(run, replayed_again(load, tmp_path / "b.replay.parquet", words), "--out", tmp_path) == 0
    page = (tmp_path / "a.compare.html").read_text()
    assert f"{units.count(rate)} requests/s" in page.replace("\u00a0", " ")


def test_calls_have_one_rate_everywhere(tmp_path: Path) -> None:
    trace, root, run = tmp_path / "a.calls.parquet", tmp_path / "root", tmp_path / "a.calls-run.parquet"
    iosonar("files", "generate", "cms-analysis", trace, "--scale", "0.001", "--rate", "1k")
    iosonar("files", "prepare", trace, "--root", root)
    printed = json.loads(iosonar("files", "replay", trace, "--root", root, "--output", run, "--json"))
    assert printed["calls_per_s"] == pytest.approx(printed["issued"] / printed["elapsed_s"], rel=1e-9)
    for file, rate in ((trace, None), (run, printed["calls_per_s"])):
        info = json.loads(iosonar("info", "--json", file))
        count = info.get("issued", info["counts"]["calls"])
        assert count / info["duration_s"] == pytest.approx(info["load_per_s"]["mean"], rel=1e-9)
        with open_calls(file) as calls:
            summary = summary_of_calls(CallStudy([calls], Options()).first)
        assert summary.seconds == pytest.approx(info["duration_s"], rel=1e-9)
        assert summary.rate_per_s == pytest.approx(rate or info["load_per_s"]["mean"], rel=1e-9)


def replayed_again(load: Path, run: Path, words: tuple[object, ...]) -> Path:
    iosonar("replay", load, "--output", run, *words, "--speedup", "1.5")
    return run


def test_percentiles_of_too_few_requests_are_null(tmp_path: Path) -> None:
    load, run = tmp_path / "a.load.parquet", tmp_path / "a.replay.parquet"
    iosonar("generate", "uniform", load, "--rate", 100, "--duration", "5s", "--span", "1G")
    words = ("--simulate", "constant=1ms", "--virtual-time")
    printed = json.loads(iosonar("replay", load, "--output", run, "--json", *words))
    for found in (printed, json.loads(iosonar("info", "--json", run))):
        assert found["latency_us"]["p50"] is not None and found["latency_us"]["p98"] is not None
        assert found["latency_us"]["p99"] is None and found["latency_us"]["p999"] is None
    shown = iosonar("info", run)
    assert "p99 –, max" in shown and "; –: too few requests" in shown


def test_info_on_a_run_says_target_and_verdict(tmp_path: Path) -> None:
    verdict = {"faithful": True, "sentence": "This replay was faithful: all was well."}
    targets = [{"path": f"/dev/loop{number}", "kind": "block"} for number in range(5)]
    run = {"targets": targets, "statistics": STATISTICS | {"verdict": verdict}}
    lines = iosonar("info", write_run(tmp_path / "a.replay.parquet", [run_row()], run=run)).splitlines()
    assert "target      /dev/loop0, /dev/loop1, /dev/loop2 and 2 more" in lines
    assert "verdict     This replay was faithful: all was well." in lines
