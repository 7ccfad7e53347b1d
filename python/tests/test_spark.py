"""Spark computes the same results as the embedded engine: every diagram of two runs, on a cluster of the test."""

from __future__ import annotations

import dataclasses
import re
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from factory import MS, RUN_SCHEMA, US, as_version_1, run_row, write_run
from s3_server import s3_server
from test_original import made as made_with_original
from test_original import study_of

from iosonar import open as open_files
from iosonar.diagrams import CATALOGUE
from iosonar.diagrams.original import DIAGRAMS as ORIGINAL
from iosonar.errors import UserError
from iosonar.figures.model import CloudPart, Empty, Figure
from iosonar.findings.diagnosis import Diagnosis, Doubt, diagnose
from iosonar.findings.registry import OF_REQUESTS
from iosonar.table import open_requests
from iosonar.table.engine import EngineKind, EngineOptions

pytestmark = [
    pytest.mark.spark,
    # PySpark's sockets are closed by the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]

PROGRAM = {
    "name": "orders",
    "about": "Orders.",
    "text": "",
    "streams": [{"name": "client", "instances": 2, "open": False}, {"name": "scan", "instances": 1, "open": True}],
}

WORKERS = 2
PATIENCE_S = 120


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A master and its workers on this machine; its URL."""
    directory = tmp_path_factory.mktemp("cluster")
    (directory / "spark-defaults.conf").write_text("spark.sql.shuffle.partitions 2\nspark.executor.memory 512m\n")
    environment = pytest.MonkeyPatch()
    environment.setenv("SPARK_CONF_DIR", str(directory))
    environment.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"spark://127.0.0.1:{port}"
    host = ("--host", "127.0.0.1", "--webui-port", "0")
    with started(directory / "master", "master.Master", *host, "--port", port) as master:
        wait_for(master, r"New state: ALIVE", 1)
        with (
            started(
                directory / "a", "worker.Worker", *host, "--cores", 1, "--memory", "1g", "-d", directory / "a", url
            ),
            started(
                directory / "b", "worker.Worker", *host, "--cores", 1, "--memory", "1g", "-d", directory / "b", url
            ),
        ):
            wait_for(master, r"Registering worker", WORKERS)
            yield url
    environment.undo()


@contextmanager
def started(directory: Path, what: str, *words: object) -> Iterator[Path]:
    """Runs a part of the cluster; yields its log."""
    import pyspark

    directory.mkdir()
    log = directory / "log"
    program = Path(pyspark.__file__).parent / "bin" / "spark-class"
    with log.open("wb") as file:
        process = subprocess.Popen(
            [program, f"org.apache.spark.deploy.{what}", *map(str, words)], stdout=file, stderr=subprocess.STDOUT
        )
    try:
        yield log
    finally:
        process.terminate()
        process.wait()


def wait_for(log: Path, text: str, times: int) -> None:
    until = time.monotonic() + PATIENCE_S
    while len(re.findall(text, log.read_text())) < times:
        assert time.monotonic() < until, log.read_text()
        time.sleep(0.1)


def made(directory: Path, name: str, seed: int, rows: int) -> Path:
    """A run with all kinds of values, in order of completion."""
    chance = np.random.default_rng(seed)
    scheduled = np.sort(chance.integers(0, 40_000_000_000, rows))
    issued = scheduled + chance.lognormal(8, 2, rows).astype(np.int64)
    completed = issued + chance.lognormal(13, 2, rows).astype(np.int64)
    never = chance.random(rows) < 0.01
    columns: dict[str, Any] = {
        "request": np.arange(rows),
        "iteration": np.zeros(rows, np.int32),
        "device": chance.integers(0, 2, rows).astype(np.int32),
        "source_sector": np.zeros(rows, np.int64),
        "sector": chance.zipf(1.3, rows) % 4_000_000 * 8,
        "sectors": chance.choice([0, 1, 8, 64, 1000], rows),
        "op": chance.choice(["read", "write", "flush"], rows, p=[0.6, 0.35, 0.05]),
        "flags": np.zeros(rows, np.int32),
        "scheduled_ns": scheduled,
        "issued_ns": pa.array(issued, mask=never),
        "completed_ns": pa.array(completed, mask=never),
        "bytes_done": np.zeros(rows, np.int64),
        # Only the first run has recorded depths.
        "in_flight": pa.array(chance.integers(1, 30, rows).astype(np.int32), mask=never | (seed > 1)),
        "waiting": pa.array(chance.integers(0, 9, rows).astype(np.int32), mask=never),
        "pushed_back": chance.random(rows) < 0.1,
        "widened": np.zeros(rows, bool),
        "delay_reason": chance.choice(["none", "depth", "input"], rows),
        "outcome": np.where(never, "dropped", chance.choice(["ok", "error"], rows, p=[0.98, 0.02])),
        "errno": np.zeros(rows, np.int32),
        "ready_ns": scheduled - chance.integers(0, 9_000_000, rows),
        "submitted_ns": pa.array(issued + 2_000, mask=never),
        "last_empty_poll_ns": pa.array(issued + 2_500, mask=never),
    }
    inner = [pa.field(f"{name}_ns", pa.int64()) for name in ("ready", "submitted", "last_empty_poll")]
    # Only the first run is one of a program.
    streams = [pa.field("stream", pa.int32()), pa.field("cause", pa.int64())]
    columns["stream"] = pa.array(chance.integers(0, 2, rows).astype(np.int32), mask=np.full(rows, seed > 1))
    columns["cause"] = pa.array(np.arange(rows) - 1, mask=(chance.random(rows) < 0.5) | (seed > 1))
    table = pa.table(columns, schema=pa.schema([*RUN_SCHEMA, *inner, *streams]))
    footer = {"run": {"program": PROGRAM}} if seed == 1 else {}
    return write_run(directory / f"{name}.replay.parquet", table.take(np.argsort(completed, kind="stable")), **footer)


def figures(paths: Sequence[Path], engine: str, with_original: bool) -> dict[str, Figure | Empty]:
    with open_files(*paths, engine=engine) as run:
        study = study_of(run)
        if engine != "duckdb":
            workers = study.requests.engine.backend._session._jsc.sc().statusTracker().getExecutorInfos()
            # One of them is this program.
            assert len(workers) == 1 + WORKERS
        return {diagram.name: diagram.build(study) for diagram in CATALOGUE if (diagram in ORIGINAL) == with_original}


def test_every_diagram_is_the_same_on_a_cluster(cluster: str, tmp_path: Path) -> None:
    runs = [made(tmp_path, "a", 1, 6_000), as_version_1(made(tmp_path, "b", 2, 3_000))]
    _, replay = made_with_original(tmp_path)
    # The footers have no samples of the machine; a window of the original has too few requests for p99.
    no_samples, too_few = ["machine.processors", "machine.network"], ["original.p99"]
    for paths, with_original, empty in ((runs, False, no_samples), ([replay], True, too_few)):
        expected = figures(paths, "duckdb", with_original)
        found = figures(paths, f"spark={cluster}", with_original)
        assert [name for name, figure in expected.items() if isinstance(figure, Empty)] == empty
        for name, figure in expected.items():
            same(found[name], figure, name)


def test_findings_are_the_same_on_a_cluster(cluster: str, tmp_path: Path) -> None:
    late = [
        run_row(n, scheduled=n * MS, delay=n * MS, latency=2 * MS + n % 7 * US, delay_reason="depth")
        for n in range(4_000)
    ]
    saturated = write_run(tmp_path / "saturated.replay.parquet", late)
    for path, is_found in ((saturated, True), (made(tmp_path, "a", 1, 6_000), False)):
        expected, found = (diagnosis_of([path], engine) for engine in ("duckdb", f"spark={cluster}"))
        assert bool(expected.findings) == is_found
        same(found, expected, path.name)


def test_workers_read_the_copy_of_an_object(cluster: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = made(tmp_path, "a", 1, 6_000)
    with s3_server() as store:
        store.objects["bucket/a.replay.parquet"] = run.read_bytes()
        for name, value in store.variables().items():
            monkeypatch.setenv(name, value)
        found = diagnosis_of([Path("s3://bucket/a.replay.parquet")], f"spark={cluster}")
    expected = diagnosis_of([run], "duckdb")
    assert list(found.files) == ["s3://bucket/a.replay.parquet"]
    same(dataclasses.replace(found, files=expected.files), expected, "diagnosis")


def diagnosis_of(paths: Sequence[Path], engine: str) -> Diagnosis:
    with open_files(*paths, engine=engine) as run:
        return diagnose(study_of(run), OF_REQUESTS, Doubt())


def same(found: Any, expected: Any, where: str) -> None:
    """Asserts deep equality; sums may differ by the order of addition, cells of clouds may be in any order."""
    assert type(found) is type(expected), where
    if isinstance(expected, CloudPart):
        assert (found.role, found.label) == (expected.role, expected.label), where
        cells = [
            sorted(zip(part.columns.tolist(), part.rows.tolist(), part.counts.tolist(), strict=True))
            for part in (found, expected)
        ]
        assert cells[0] == cells[1], where
    elif dataclasses.is_dataclass(expected):
        for field in dataclasses.fields(expected):
            same(getattr(found, field.name), getattr(expected, field.name), f"{where}.{field.name}")
    elif isinstance(expected, np.ndarray):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9, err_msg=where)
    elif isinstance(expected, Sequence) and not isinstance(expected, str):
        assert len(found) == len(expected), where
        for index, pair in enumerate(zip(found, expected, strict=True)):
            same(*pair, f"{where}[{index}]")
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-9), where
    else:
        assert found == expected, where


def test_a_missing_cluster_is_reported(tmp_path: Path) -> None:
    path = made(tmp_path, "a", 1, 10)
    options = EngineOptions(kind=EngineKind.SPARK, url="nonsense://there")
    with pytest.raises(UserError, match="nonsense://there"), open_requests([path], options):
        pass
