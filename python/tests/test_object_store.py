"""Runs in an object store: their answers are those of the same files on a disk."""

from __future__ import annotations

import gzip
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from binary import iosonar as run_binary
from factory import write_run
from made_run import made_run
from s3_server import KEYS_OF_A_PAGE, S3, s3_server
from test_dataset import made as made_parts
from test_report import report

import iosonar
from iosonar import progress
from iosonar.cli.run import INTERRUPTED
from iosonar.errors import UserError
from iosonar.table import dataset, object_store, open_files
from iosonar.table.embedded import connect
from iosonar.table.engine import EngineOptions
from iosonar.table.views import define_views
from iosonar.text import address_of, shown
from iosonar.view.index import index_of

ASKED = "SELECT source, op, count(*) AS n, sum(latency_ns), max(latency_ns) FROM requests GROUP BY ALL ORDER BY ALL"
KEY = "bucket/a study/run 1%20+é.replay.parquet"
ADDRESS = f"s3://{KEY}"


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """TMPDIR of a test."""
    directory = tmp_path / "temporary"
    directory.mkdir()
    monkeypatch.setenv("TMPDIR", str(directory))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return directory


@pytest.fixture
def store(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3]:
    """A server with the bucket `bucket`, which programs use by their environment. Nothing temporary is left."""
    with s3_server() as server:
        for name, value in server.variables().items():
            monkeypatch.setenv(name, value)
        yield server
    assert not list(temporary.iterdir())


@pytest.fixture
def run(tmp_path: Path, store: S3) -> Path:
    """A run that is on a disk and in the store."""
    path = write_run(tmp_path / "run.replay.parquet", made_run(3000, seconds=10))
    store.objects[KEY] = path.read_bytes()
    return path


def verdict_of(run: iosonar.Run) -> dict[str, Any]:
    """Without the names of the files."""
    found: dict[str, Any] = run.verdict.as_json()
    assert found.pop("files") == [file.path for file in run.files]
    return found


def message_of(*paths: str) -> str:
    with pytest.raises(UserError) as error:
        iosonar.open(*paths)
    return str(error.value)


def test_a_path_keeps_the_address_that_was_typed() -> None:
    assert shown(Path("s3://bucket/a/b")) == address_of(Path("s3://bucket/a/b")) == "s3://bucket/a/b"
    for file in ("s3:", "/x/s3:/bucket", "s4://bucket", "as3://bucket"):
        assert address_of(Path(file)) is None


def test_an_object_has_the_answers_of_its_file(run: Path, store: S3, tmp_path: Path) -> None:
    known, found = (run_binary("sql", each, ASKED, "--format", "json") for each in (run, ADDRESS))
    assert found == known and json.loads(found)[0]["n"] > 0
    with iosonar.open(run) as local, iosonar.open(ADDRESS) as stored:
        assert verdict_of(stored) == verdict_of(local)
        assert repr(stored.summary) == repr(local.summary)
        assert stored.files[0].path == ADDRESS
    # Each program has read each byte once.
    assert len(store.ranges) == 2


def test_a_page_of_an_object_names_its_address(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert report(ADDRESS, "--out", out) == report(ADDRESS, "--out", out) == 0
    (page,) = out.glob("*.html")
    text = page.read_text()
    assert "s3://bucket/a study/run 1%20+" in text
    assert "fetched-" not in text and str(tmp_path) not in text
    # Another input needs another directory.
    assert report(run.rename(run.with_name("run 1%20+é.replay.parquet")), "--out", out) == 1


def test_a_prefix_is_a_directory(tmp_path: Path, store: S3) -> None:
    made_parts(tmp_path / "run")
    for path in (tmp_path / "run").rglob("*"):
        if path.is_file():
            store.objects[f"bucket/study/{path.relative_to(tmp_path / 'run')}"] = path.read_bytes()
    assert len(store.objects) > 2 * KEYS_OF_A_PAGE
    known = run_binary("sql", tmp_path / "run", ASKED, "--format", "json")
    assert run_binary("sql", "s3://bucket/study/", ASKED, "--format", "json") == known
    with iosonar.open(tmp_path / "run") as local, iosonar.open("s3://bucket/study") as stored:
        assert verdict_of(stored) == verdict_of(local)
        assert [file.path for file in stored.files] == [
            f"s3://bucket/study/{file.given.relative_to(tmp_path / 'run')}" for file in local.files
        ]
    with iosonar.open("s3://bucket/study/host=db1") as half, iosonar.open(tmp_path / "run/host=db1") as local:
        assert half.summary.rows == local.summary.rows
        assert verdict_of(half) == verdict_of(local)


def test_diagnose_and_compare_read_objects(run: Path, tmp_path: Path) -> None:
    known, found = (json.loads(run_binary("diagnose", each, "--json")) for each in (run, ADDRESS))
    assert found["findings"] == known["findings"]
    other = write_run(tmp_path / "other.replay.parquet", made_run(2000, seconds=10, seed=2))
    with iosonar.compare(run, other) as local, iosonar.compare(ADDRESS, other) as stored:
        assert stored.to_arrow() == local.to_arrow()


def test_other_formats_are_converted(store: S3, tmp_path: Path) -> None:
    run = write_run(tmp_path / "run.replay.parquet", made_run(50))
    run_binary("convert", run, tmp_path / "run.replay.gz")
    store.objects["bucket/run.replay.gz"] = (tmp_path / "run.replay.gz").read_bytes()
    with iosonar.open("s3://bucket/run.replay.gz") as stored:
        assert (stored.summary.rows, stored.files[0].stem) == (50, "run")
    store.objects["bucket/wrong.gz"] = gzip.compress(b"no trace")
    assert message_of("s3://bucket/wrong.gz").startswith("s3://bucket/wrong.gz: not recognised")


def test_large_objects_are_fetched_in_pieces(run: Path, store: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    size = run.stat().st_size
    monkeypatch.setattr(object_store, "PIECE", size // 7)
    monkeypatch.setattr(object_store, "WAITING", 3)
    steps: list[tuple[str, int, int]] = []
    with progress.shown_by(lambda *step: steps.append(step)), open_files([Path(ADDRESS)]) as (files, _):
        assert files[0].local.read_bytes() == run.read_bytes()
    ends = [int(asked.removeprefix("bytes=").split("-")[1]) for _, asked in store.ranges]
    assert len(ends) == len(set(ends)) == 8 and max(ends) == size - 1
    assert steps == [(f"MiB of {ADDRESS}", 1, 1)] * 8


def test_what_is_not_there_is_named(run: Path, store: S3) -> None:
    assert message_of("s3://other/a.parquet") == "s3://other/a.parquet: no such bucket; check the address"
    assert message_of("s3://other") == "s3://other: no such bucket; check the address"
    assert message_of("s3://bucket/a") == (
        "s3://bucket/a: no such object, and none below s3://bucket/a/; check the address"
    )
    store.objects |= {"bucket/empty/_x/a.parquet": b"", "bucket/empty/.a.parquet": b"", "bucket/empty/README": b""}
    assert message_of("s3://bucket/empty/") == "s3://bucket/empty: no object *.parquet is below it; check the address"
    assert message_of("gs://bucket/a").startswith("gs://bucket/a: only s3://BUCKET/KEY is read of object stores; copy")
    assert message_of(ADDRESS, ADDRESS) == f"{ADDRESS} is named twice; name each run once"


def test_without_access_the_variables_are_named(store: S3, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store.denies = True
    known = message_of(ADDRESS)
    assert known.startswith(f"{ADDRESS}: access denied; set AWS_PROFILE, or AWS_ACCESS_KEY_ID and")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    assert message_of(ADDRESS) == known


def test_an_unreachable_server_is_named(store: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    # Not listening: connections are refused.
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        assert message_of("s3://bucket/a").startswith(f"s3://bucket/a: cannot reach {url} (")
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", store.url)
        assert "no such object" in message_of("s3://bucket/a")


def test_a_server_that_does_not_answer_is_given_up(store: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        monkeypatch.setattr(object_store, "ATTEMPTS", 1)
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{silent.getsockname()[1]}")
        assert "cannot reach http://127.0.0.1:" in message_of("s3://bucket/a")


def test_damaged_objects_are_named(run: Path, store: S3) -> None:
    whole = run.read_bytes()
    store.objects["bucket/cut.parquet"] = whole[:-100]
    assert message_of("s3://bucket/cut.parquet").startswith("s3://bucket/cut.parquet: truncated: the Parquet footer")
    store.objects["bucket/zeros.parquet"] = whole[:4] + bytes(len(whole) // 2) + whole[4 + len(whole) // 2 :]
    assert message_of("s3://bucket/zeros.parquet").startswith("s3://bucket/zeros.parquet: damaged Parquet")
    store.objects["bucket/text.parquet"] = b"no table"
    assert message_of("s3://bucket/text.parquet").startswith("s3://bucket/text.parquet: not recognised")
    store.objects["bucket/none.parquet"] = b""
    assert message_of("s3://bucket/none.parquet").startswith("s3://bucket/none.parquet: ")


def test_damaged_rows_that_an_engine_finds_are_named(run: Path, store: S3) -> None:
    metadata = pq.read_metadata(run).row_group(0)
    columns = [metadata.column(number) for number in range(metadata.num_columns)]
    [at] = [column.data_page_offset for column in columns if column.path_in_schema == "in_flight"]
    content = bytearray(run.read_bytes())
    content[at : at + 16] = b"\xff" * 16
    store.objects[KEY] = bytes(content)
    with pytest.raises(UserError) as error, iosonar.open(ADDRESS) as opened:
        opened.report(run.parent, static=True)
    assert str(error.value).startswith(f"{ADDRESS}: damaged Parquet: its rows cannot be read; copy the file again")


def test_objects_that_change_or_break_off_are_refused(run: Path, store: S3) -> None:
    store.replaced[KEY] = run.read_bytes()[:-1]
    assert message_of(ADDRESS) == f"{ADDRESS} was replaced while it was fetched; try again"
    store.replaced.clear()
    store.objects[KEY] = run.read_bytes()
    store.breaks = True
    assert message_of(ADDRESS).startswith(f"{ADDRESS}: cannot reach {store.url} (")


def test_a_full_directory_is_named_with_what_is_needed(
    run: Path, store: S3, small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.objects["bucket/large"] = bytes(3 << 20)
    expected = rf"s3://bucket/large: its copy needs 3 MiB, which {small_disk} does not have; set TMPDIR to"
    with pytest.raises(UserError, match=expected):
        iosonar.open("s3://bucket/large")
    assert not store.ranges
    # Space that another program takes meanwhile.
    monkeypatch.setattr(object_store, "_refuse_without_space", lambda *_: None)
    with pytest.raises(UserError, match=expected):
        iosonar.open("s3://bucket/large")
    assert store.ranges and not list(small_disk.iterdir())


def test_ctrl_c_while_fetching_leaves_nothing(run: Path, store: S3, temporary: Path) -> None:
    store.may_go_on.clear()
    binary = Path(sys.executable).with_name("iosonar")
    with subprocess.Popen(
        [binary, "sql", ADDRESS, ASKED], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as program:
        assert store.reading.wait(60)
        assert list(temporary.iterdir())
        program.send_signal(signal.SIGINT)
        _, errors = program.communicate()
    assert (program.returncode, errors) == (INTERRUPTED, "iosonar sql: interrupted\n")


def test_a_view_keeps_its_index_of_an_object(run: Path, store: S3, tmp_path: Path) -> None:
    made: list[str] = []

    def open_index() -> Path:
        with open_files([Path(ADDRESS)]) as (files, spill), connect(spill, EngineOptions()) as connection:
            define_views(connection, files)
            found, directory = index_of(files[0], connection, tmp_path / "index", lambda what, _: made.append(what))
            found.release()
        return directory

    first, steps = open_index(), len(made)
    assert open_index() == first and len(made) == steps > 0
    other = write_run(tmp_path / "other.replay.parquet", made_run(2000, seconds=10))
    store.objects[KEY] = other.read_bytes()
    assert open_index() == first and len(made) == 2 * steps


def test_object_stores_are_only_read(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert report(run, "--out", "s3://bucket/out") == 1
    done = subprocess.run(
        [Path(sys.executable).with_name("iosonar"), "sql", run, ASKED, "--out", "s3://bucket/a.csv"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr == (
        "iosonar sql: cannot write s3://bucket/a.csv: name a path on this machine, and copy from there to the store\n"
    )
    assert not Path("s3:").exists()


def test_objects_count_among_open_files(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[int] = []
    monkeypatch.setattr(dataset, "_allow_open", counts.append)
    with iosonar.open(ADDRESS):
        assert counts == [1]
    assert os.environ["AWS_ENDPOINT_URL"]
