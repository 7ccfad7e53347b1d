"""Both halves together: what the binary writes is what this half, and the documented contracts, expect."""

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
    """A short artificial load, replayed on a file: the result, and the closing statistics that were printed."""
    folder = tmp_path_factory.mktemp("replay")
    load, target, run = folder / "a.load.parquet", folder / "target", folder / "a.replay.parquet"
    target.write_bytes(bytes(8 << 20))
    iosonar("generate", "poisson", load, "--rate", 500, "--duration", "1s", "--span", "8M")
    return run, replay(load, target, run)


def test_statistics_of_the_footer_are_those_that_were_printed(replayed: tuple[Path, dict[str, Any]]) -> None:
    run, printed = replayed
    assert printed["requests"] > 0
    footer = json.loads(pyarrow.parquet.read_schema(run).metadata[b"iosonar"])
    assert footer["run"]["statistics"] == printed


def test_as_fast_as_possible_has_no_delay(replayed: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    run, timed = replayed
    load, target = run.with_name("a.load.parquet"), run.with_name("target")
    statistics = replay(load, target, tmp_path / "b.replay.parquet", "--asap")
    assert timed["delay_us"] is not None and statistics["delay_us"] is None
    assert statistics["requests"] == timed["requests"]


def test_report_takes_what_replay_wrote(replayed: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    iosonar("report", replayed[0], "--format", "png", "--out", tmp_path)
    assert (tmp_path / "a.g01.latency.realtime.png").exists()


@pytest.mark.parametrize("name", ["report", "compare", "sql"])
def test_the_binary_describes_the_commands_of_this_half_as_they_describe_themselves(name: str) -> None:
    listed = " ".join(iosonar("--help").split())
    own = iosonar(name, "--help").split("\n\n")[1]
    description = " ".join(own.split()).removesuffix(".")
    assert re.search(rf" {name} {re.escape(description)} ", listed), f"{description!r} is not in: {listed}"
