"""Both halves together: the output of the binary conforms to the schemas, and the Python half reads it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from binary import iosonar, replay


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A short artificial load, replayed on a file: the result, and the printed statistics."""
    folder = tmp_path_factory.mktemp("replay")
    load, target, run = folder / "a.load.parquet", folder / "target", folder / "a.replay.parquet"
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
    iosonar("report", replayed[0], "--format", "png", "--out", tmp_path)
    assert (tmp_path / "a.g01.latency.realtime.png").exists()


@pytest.mark.parametrize("name", ["report", "compare", "sql", "sweep", "sensitivity", "campaign"])
def test_the_binary_has_the_same_descriptions_of_python_commands(name: str) -> None:
    listed = " ".join(iosonar("--help").split())
    own = iosonar(name, "--help").split("\n\n")[0]
    description = " ".join(own.split())
    assert re.search(rf" {name} {re.escape(description)} ", listed), f"{description!r} is not in: {listed}"
