"""Results in blkreplay's text: the same verdicts as from Parquet; without the reasons for delays, none."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jsonschema
import pyarrow.parquet as pq
import pytest
from binary import TOP, iosonar, replay
from campaign_trees import Campaign
from factory import MS, run_row, write_run

from iosonar.cli.compare import main as compare
from iosonar.cli.report import main as report
from iosonar.table import open_requests

SCHEMA = json.loads((TOP / "docs/schemas/verdict.json").read_text())
FOREIGN = "orig_start ; sector; length ; op ;  replay_delay; replay_duration\n"


def program(main: Any, name: str, words: Sequence[object], monkeypatch: pytest.MonkeyPatch) -> int:
    """Runs a program of the Python half; returns its exit code."""
    monkeypatch.setattr(sys, "argv", [name, *map(str, words)])
    try:
        return int(main() or 0)
    except SystemExit as end:
        return int(end.code or 0)


def verdict(directory: Path) -> dict[str, Any]:
    (path,) = directory.glob("*.verdict.json")
    found: dict[str, Any] = json.loads(path.read_text())
    jsonschema.validate(found, SCHEMA)
    return found


@pytest.fixture
def overloaded(tmp_path: Path) -> Path:
    """A run whose requests wait for one that is in flight, on a simulated disk in virtual time."""
    iosonar("generate", "poisson", tmp_path / "a.load.gz", "--rate", 400, "--duration", 3, "--span", "64M")
    words = ("--simulate", "hdd", "--virtual-time", "--depth", 1, "--verbose")
    replay(tmp_path / "a.load.gz", Path("none"), tmp_path / "run.replay.parquet", *words)
    return tmp_path / "run.replay.parquet"


def without_comments(text: Path, foreign: Path) -> None:
    """A result as blkreplay writes it: six columns, no comments of iosonar, not marked as fake."""
    lines = gzip.decompress(text.read_bytes()).decode().splitlines()
    rows = [";".join(line.split(";")[:6]) for line in lines if ";" in line and "orig_start" not in line]
    end = f"# completed requests : {len(rows)}\nblkreplay on /dev/sdx ended at an hour\n"
    foreign.write_bytes(gzip.compress((FOREIGN + "\n".join(rows) + f"\n{end}").encode()))


@pytest.fixture
def foreign(overloaded: Path) -> Path:
    """The same run as a result of blkreplay."""
    text, found = overloaded.with_name("text.replay.gz"), overloaded.with_name("foreign.replay.gz")
    iosonar("convert", overloaded, text)
    without_comments(text, found)
    return found


def test_a_run_has_the_same_bytes_after_text_and_table_again(overloaded: Path, tmp_path: Path) -> None:
    iosonar("convert", overloaded, tmp_path / "b.replay.gz")
    iosonar("convert", tmp_path / "b.replay.gz", tmp_path / "c.replay.parquet")
    tables = [pq.read_table(path) for path in (overloaded, tmp_path / "c.replay.parquet")]
    assert tables[0].equals(tables[1], check_metadata=True)


def test_text_has_the_pages_verdicts_and_pictures_of_parquet(
    overloaded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for kind in ("replay.gz", "replay.parquet"):
        directory = tmp_path / kind
        directory.mkdir()
        iosonar("convert", overloaded, directory / f"same.{kind}")
        monkeypatch.chdir(directory)
        assert program(report, "report", [f"same.{kind}", "--format", "svg", "--verbose"], monkeypatch) == 0
        assert program(report, "report", [f"same.{kind}"], monkeypatch) == 0
        judged = verdict(directory)
        judged.pop("files")
        page = next(directory.glob("*.html")).read_text().replace(kind, "KIND")
        page = re.sub(r'<div id="[^"]*" data-root-id="[^"]*"', "<div", page[: page.index("<script")])
        found.append((judged, sorted(path.name for path in directory.glob("*.svg")), page))
    assert found[0] == found[1]
    assert any("submit_lag" in name for name in found[0][1]), "the columns of --verbose are there"


def test_a_result_without_reasons_has_no_verdict_anywhere(
    foreign: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert program(report, "report", [foreign, "--fail-on", "warning"], monkeypatch) == 3
    judged = verdict(tmp_path)
    assert judged["fidelity"] == {"grade": None}
    assert judged["grade"] == "warning"
    assert "not known" in judged["reasons"][0]
    page = next(tmp_path.glob("*.html")).read_text()
    assert "Replay verdict not known" in page
    assert "NOT faithful" not in page
    assert "Good run" not in page
    others = [tmp_path / f"{letter}.replay.gz" for letter in "bcdefg"]
    for number, other in enumerate(others):
        rows = gzip.decompress(foreign.read_bytes()).decode()
        other.write_bytes(gzip.compress(rows.replace(" ; 0.0", f" ; 0.0{number}", 7).encode()))
    words = [*others[:3], "vs", *others[3:], "--fail-if", "p99 > +1%"]
    capsys.readouterr()
    assert program(compare, "compare", words, monkeypatch) == 4
    said = capsys.readouterr()
    assert "Replay verdict not known:" in said.out
    assert "not faithful" not in said.out.lower()
    assert "is undecided" in said.err


@pytest.mark.parametrize("name", ["a-text", "b-foreign"])
def test_an_unchanged_campaign_has_the_verdict_of_its_replays(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Without output_format, as in campaigns of blkreplay; one request at a time, so that the device delays many.
    campaign = Campaign(tmp_path / "top", threads=1, replay_duration=1)
    conf = campaign.top / "default-main.conf"
    conf.write_text(conf.read_text().replace('output_format="parquet"\n', ""))
    campaign.leaf(name, "verbose=10")
    campaign.run()
    (result,) = (campaign.top / name).glob("*.replay.gz")
    (instance,) = campaign.state(name).instances
    assert instance.summary is not None
    stated = instance.summary["verdict"]
    table = result.with_name(result.name.replace(".gz", ".parquet"))
    iosonar("convert", result, table)
    run = json.loads((pq.read_metadata(table).metadata or {})[b"iosonar"])["run"]
    assert run["statistics"] == instance.summary
    table.unlink()
    # As its graph_options="--static --verbose" does.
    monkeypatch.chdir(campaign.top / name)
    words = [result.name, "--static", "--verbose", "--only", "submit_lag", "--format", "svg"]
    assert program(report, "report", words, monkeypatch) == 0
    assert list(result.parent.glob("*submit_lag*.svg"))
    judged = verdict(result.parent)
    shares = [judged["fidelity"][f"within_{us}_us"] for us in (10, 50, 100)]
    assert shares == pytest.approx([stated["own"]["within_pct"][us] / 100 for us in ("10", "50", "100")], abs=2e-6)
    assert (judged["fidelity"]["grade"] == "good") is stated["faithful"]
    if name == "b-foreign":
        without_comments(result, result)
    (leaf,) = campaign_report(campaign)["leaves"]
    # Nothing was written to the target before.
    word = "unfilled" if stated["faithful"] else "unfaithful"
    expected = "unknown" if name == "b-foreign" else word
    assert leaf["fidelity"] == expected
    gate = campaign_report(campaign, "--fail-on", "verdict = unfaithful")["gate"]
    assert gate["exit_code"] == {"unfilled": 0, "unfaithful": 3, "unknown": 4}[expected]
    if name == "a-text":
        iosonar("convert", result, table)
        result.unlink()
        (of_table,) = campaign_report(campaign)["leaves"]
        assert of_table == leaf


def campaign_report(campaign: Campaign, *words: str) -> dict[str, Any]:
    done = subprocess.run(
        campaign.command("report", "--json", *words),
        cwd=campaign.top,
        env=campaign.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 3, 4), done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_fake_result_in_text_stays_fake_even_if_it_is_cut(
    overloaded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    iosonar("convert", overloaded, tmp_path / "x.replay")
    text = (tmp_path / "x.replay").read_text()
    directory = tmp_path / "cut"
    directory.mkdir()
    (directory / "x.replay").write_text(text[: len(text) // 2])
    monkeypatch.chdir(directory)
    program(report, "report", ["x.replay"], monkeypatch)
    judged = verdict(directory)
    assert (judged["real"]["real"], judged["complete"]["complete"], judged["fidelity"]) == (
        False,
        False,
        {"grade": None},
    )


def test_a_load_and_its_diagrams_have_the_trace_latencies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load = "start ; sector; length ; op ;  replay_delay=0 ; replay_duration (guessed)\n"
    load += "".join(f"{0.01 * i:.3f} ; {8 * i} ; 8 ; R ; 0.0 ; {0.001 * (1 + i % 5):.9f}\n" for i in range(200))
    (tmp_path / "x.load.gz").write_bytes(gzip.compress(load.encode()))
    iosonar("convert", tmp_path / "x.load.gz", tmp_path / "x.load.parquet")
    latencies = pq.read_table(tmp_path / "x.load.parquet")["latency_ns"].to_pylist()
    assert latencies == [1_000_000 * (1 + i % 5) for i in range(200)]
    iosonar("convert", tmp_path / "x.load.parquet", tmp_path / "y.load.gz")
    iosonar("convert", tmp_path / "y.load.gz", tmp_path / "y.load.parquet")
    assert pq.read_table(tmp_path / "y.load.parquet")["latency_ns"].to_pylist() == latencies
    shutil.move(tmp_path / "y.load.gz", tmp_path / "z.load.gz")
    monkeypatch.chdir(tmp_path)
    assert program(report, "report", ["z.load.gz", "--dynamic", "--format", "svg"], monkeypatch) == 0
    assert list(tmp_path.glob("*latency.realtime*.svg"))


def test_unreadable_rows_are_not_the_bad_lines_of_the_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [run_row(number, scheduled=number * MS, sector=8 * number) for number in range(6)]
    # Another program wrote these tables, with the footer of a run whose load had three bad lines.
    counts = {"requests": 6, "bad_lines": 3}
    good = write_run(tmp_path / "good.replay.parquet", rows, counts=counts)
    for row in rows[4:]:
        row["sector"] = row["source_sector"] = 2**62
    write_run(tmp_path / "other.replay.parquet", rows, counts=counts)
    text = tmp_path / "text.replay"
    iosonar("convert", good, text)
    text.write_text(text.read_text().replace("   0.003000000", "   0.00x000000"))
    iosonar("convert", text, tmp_path / "again.replay.parquet")
    monkeypatch.chdir(tmp_path)
    for name, unreadable in (
        ("good.replay.parquet", 0),
        ("other.replay.parquet", 2),
        ("text.replay", 1),
        ("again.replay.parquet", 1),
    ):
        info, limit = (json.loads(iosonar(command, name, "--json")) for command in ("info", "limit"))
        assert (info["unreadable_rows"], limit["unreadable_rows"]) == (unreadable, unreadable), name
        assert info["counts"]["bad_lines"] == 3 + unreadable, name
        with open_requests([Path(name)]) as requests:
            (file,) = requests.files
            assert (file.unreadable_rows, len(file.skipped_rows)) == (unreadable, unreadable), name
        assert program(report, "report", [name, "--out", f"{name}.out"], monkeypatch) == 0
        judged = verdict(tmp_path / f"{name}.out")
        assert judged["complete"]["complete"] is (unreadable == 0), name
        page = next((tmp_path / f"{name}.out").glob("*.html")).read_text()
        assert ("Damaged: " in page) is bool(unreadable), name
        assert "Skipped 3 lines of the source" in page, name
