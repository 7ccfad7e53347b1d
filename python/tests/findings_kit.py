"""Makes runs for tests of findings: on simulated devices in virtual time, or from arrays."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import jsonschema
import numpy as np
import pyarrow as pa
from binary import TOP, iosonar
from factory import RUN_SCHEMA, write_run

from iosonar.findings.diagnosis import Diagnosis
from iosonar.findings.finding import Finding
from iosonar.library.run import open_run

SCHEMA = json.loads((TOP / "docs/schemas/diagnosis.json").read_text())

STEADY = """
servers = 8
[service.exponential]
mean = "200us"
"""
"""A device without any property that is found."""


def simulated(directory: Path, device: str, *load: object, name: str = "run", options: tuple[object, ...] = ()) -> Path:
    """Replays a generated load on a device in virtual time; `load` are the words of `iosonar generate`."""
    source, description = directory / f"{name}.load.parquet", directory / f"{name}.toml"
    run = directory / f"{name}.replay.parquet"
    description.write_text(device)
    kind, *words = load
    iosonar("generate", kind, source, *words)
    depth = () if "--depth" in options else ("--depth", 4096)
    words = ["replay", source, "--simulate", description, "--virtual-time", "--output", run, *depth, *options]
    iosonar(*words)
    return run


def poisson(rate: float, duration: str, *more: object) -> tuple[object, ...]:
    """The words of a usual load: 4 KiB at random places of 4 GiB, 70 % reads."""
    defaults: dict[object, object] = {"--size": "4k", "--reads": 0.7, "--span": "4G"}
    given = dict(zip(more[::2], more[1::2], strict=True))
    words = [word for pair in (defaults | given).items() for word in pair]
    return ("poisson", "--rate", rate, "--duration", duration, *words)


def diagnosed(*runs: Path, thresholds: Mapping[str, Mapping[str, float]] | None = None) -> Diagnosis:
    """All findings; the rows of each are checked."""
    with open_run(*runs, original="none") as run:
        found = run.diagnose(thresholds)
        view, drawn = run.files[0].kind.view, set(run.diagrams)
    jsonschema.validate(json.loads(json.dumps(found.as_json())), SCHEMA)
    for each in found.findings:
        assert each.evidence.diagram in drawn, each.evidence.diagram
        assert rows_of(each, *runs, view=view) > 0, f"no row shows {each.number}: {each.evidence.filter}"
    return found


def numbers(found: Diagnosis) -> list[str]:
    """The numbers of all findings, in their order."""
    return sorted(each.number for each in found.findings)


def only(found: Diagnosis, number: str) -> Finding:
    """The finding of that number."""
    chosen = [each for each in found.findings if each.number == number]
    assert len(chosen) == 1, f"{number} is not among {numbers(found)}"
    return chosen[0]


def rows_of(finding: Finding, *runs: Path, view: str = "requests") -> int:
    """How many rows `iosonar sql` selects by the filter of a finding."""
    text = iosonar(
        "sql", *runs, f"SELECT count(*) AS n FROM {view} WHERE {finding.evidence.filter}", "--format", "json"
    )
    return int(json.loads(text)[0]["n"])


def query(run: Path, text: str) -> list[Any]:
    """The result of a query on the table `run`."""
    with duckdb.connect() as connection:
        connection.read_parquet(str(run)).create_view("run")
        return connection.execute(text).fetchall()


@cache
def _defaults(rows: int) -> dict[str, Any]:
    zeros = np.zeros(rows, np.int64)
    return {
        "request": np.arange(rows),
        "iteration": zeros,
        "device": zeros,
        "source_sector": zeros,
        "sector": zeros,
        "sectors": zeros + 8,
        "op": ["read"] * rows,
        "flags": zeros,
        "bytes_done": zeros + 4096,
        "in_flight": zeros + 1,
        "waiting": zeros,
        "pushed_back": [False] * rows,
        "widened": [False] * rows,
        "delay_reason": ["none"] * rows,
        "outcome": ["ok"] * rows,
        "errno": zeros,
    }


def made(path: Path, scheduled_ns: Any, latency_ns: Any, footer: Mapping[str, Any] | None = None, **more: Any) -> Path:
    """Writes a real-looking run of these times; other columns may be given, also `issued_ns`."""
    scheduled = np.asarray(scheduled_ns, np.int64)
    issued = np.asarray(more.pop("issued_ns", scheduled), np.int64)
    times = {"scheduled_ns": scheduled, "issued_ns": issued, "completed_ns": issued + np.asarray(latency_ns, np.int64)}
    columns = _defaults(len(scheduled)) | times | more
    table = pa.table({name: pa.array(columns[name], RUN_SCHEMA.field(name).type) for name in RUN_SCHEMA.names})
    return write_run(path, table.take(np.argsort(times["completed_ns"], kind="stable")), **(footer or {}))
