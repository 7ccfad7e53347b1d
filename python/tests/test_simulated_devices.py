"""Simulated devices: presets fit the schema, and the properties of a device are found again in the table of a run."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import duckdb
import jsonschema
import pytest
from binary import TOP, iosonar

SCHEMA = json.loads((TOP / "docs/schemas/simulated-device.json").read_text())
PRESETS = sorted((TOP / "crates/replay/src/engine/simulate/presets").glob("*.toml"))

# Each property shows in other rows: the stall in completions, the cliff and the asymmetry in writes, the slow member by
# position, the unwritten areas in the first reads of a place.
DEVICE = """
servers = 4

[service.constant]
time = "200us"

[stripe]
members = 4
chunk = "64K"
slow_member = 2
factor = 5

[write_cache]
size = "4M"
time = "20us"
destage = "256K/s"

[unwritten]
chunk = "1M"
time = "10us"

[stall]
every = "7s"
lasts = "50ms"
"""


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.stem)
def test_a_preset_fits_the_schema(preset: Path) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.validate(tomllib.loads(preset.read_text()), SCHEMA)


@pytest.mark.parametrize(
    "text",
    ["servers = 1", "[service]", '[service.constant]\ntiem = "1ms"', '[service.constant]\ntime = "1ms"\n[stall]'],
)
def test_the_schema_refuses_what_the_program_refuses(text: str, tmp_path: Path) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(tomllib.loads(text), SCHEMA)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Half a minute of load on the device, in virtual time."""
    directory = tmp_path_factory.mktemp("simulated")
    load, device, run = directory / "a.load.parquet", directory / "d.toml", directory / "a.replay.parquet"
    device.write_text(DEVICE)
    iosonar("generate", "uniform", load, "--rate", 500, "--duration", "30s", "--span", "1G", "--reads", 0.6)
    iosonar("replay", load, "--simulate", device, "--virtual-time", "--output", run, "--depth", 4096)
    return run


def rows(run: Path, query: str) -> list[Any]:
    """The result of a query on the table `run`."""
    with duckdb.connect() as connection:
        connection.read_parquet(str(run)).create_view("run")
        return connection.execute(query).fetchall()


def test_the_stall_has_its_period_and_length(run: Path) -> None:
    gaps = rows(
        run,
        """
        SELECT start_ns / 1e9, length_ns / 1e6 FROM (
            SELECT lag(completed_ns) OVER (ORDER BY completed_ns) AS start_ns, completed_ns - start_ns AS length_ns
            FROM run
        ) WHERE length_ns > 20e6 AND start_ns < 30e9 ORDER BY 1
        """,
    )
    assert [start for start, _ in gaps] == pytest.approx([7, 14, 21, 28], abs=6e-3)
    assert [length for _, length in gaps] == pytest.approx([50] * 4, abs=6)


def test_the_cliff_comes_when_the_cache_is_full(run: Path) -> None:
    # Full when size + destaged = written.
    ((at, written),) = rows(
        run,
        """
        WITH writes AS (
            SELECT issued_ns, completed_ns - issued_ns AS latency,
                sum(sectors * 512) OVER (ORDER BY issued_ns) AS written
            FROM run WHERE op = 'write'
        ), cliff AS (
            SELECT min(issued_ns) AS cut FROM writes WHERE latency > 1e6 AND issued_ns % 7e9 > 100e6
        )
        SELECT any_value(cut) / 1e9, max(written) FROM writes, cliff WHERE issued_ns < cut
        """,
    )
    assert written == pytest.approx((4 + at / 4) * (1 << 20), rel=0.01)


def test_the_slow_member_is_found_by_position(run: Path) -> None:
    # Of reads that waited for nothing, on places that were written before.
    means = rows(
        run,
        """
        WITH reads AS (
            SELECT sector // 128 % 4 AS member, completed_ns - issued_ns AS latency FROM run WHERE op = 'read'
        )
        SELECT member, median(latency) FROM reads WHERE latency >= 100e3 GROUP BY 1 ORDER BY 1
        """,
    )
    assert means == [(0, 200_000), (1, 200_000), (2, 1_000_000), (3, 200_000)]


def test_reads_of_unwritten_areas_are_fast(run: Path) -> None:
    fast = rows(
        run,
        """
        WITH places AS (
            SELECT *, count_if(op = 'write') OVER (PARTITION BY sector // 2048 ORDER BY issued_ns) AS writes FROM run
        )
        SELECT writes = 0, max(completed_ns - issued_ns) = 10e3, min(completed_ns - issued_ns) FROM places
        WHERE op = 'read' AND issued_ns % 7e9 > 100e6 GROUP BY 1 ORDER BY 1
        """,
    )
    assert fast == [(False, False, 200_000), (True, True, 10_000)]


def test_two_runs_have_the_same_rows(run: Path, tmp_path: Path) -> None:
    again = tmp_path / "b.replay.parquet"
    load, device = run.with_name("a.load.parquet"), run.with_name("d.toml")
    iosonar("replay", load, "--simulate", device, "--virtual-time", "--output", again, "--depth", 4096)
    every = "SELECT * FROM run"
    assert rows(run, every) == rows(again, every)
