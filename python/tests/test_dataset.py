"""A directory of Parquet files is a run like one file."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from binary import iosonar as run_binary
from factory import US, run_row, write_run

import iosonar
from iosonar.errors import UserError
from iosonar.table import dataset, embedded, requests

HOSTS = ("db1", "db2")
DEVICES = ("/dev/sda", "/dev/sdb")
ROWS = 300


def made(directory: Path) -> list[Path]:
    """A part for each host and device, all of the same name; the second host is slower."""
    found = []
    for number, (host, device) in enumerate((host, device) for host in HOSTS for device in DEVICES):
        part = directory / f"host={host}" / f"device={device[5:]}" / "part-0.replay.parquet"
        part.parent.mkdir(parents=True)
        rows = [
            run_row(n, scheduled=n * 1000 * US, latency=(100 + number * 50 + n % 7) * US, delay=US, sector=n * 8)
            for n in range(ROWS)
        ]
        target = {"path": device, "kind": "block", "sectors": 4194304}
        run = {"machine": {"hostname": host}, "target": target, "started_unix_ns": 10**18 + number}
        found.append(write_run(part, rows, run=run))
    (directory / "_SUCCESS").touch()
    (directory / "_temporary").mkdir()
    (directory / "_temporary/x.parquet").touch()
    (directory / "README").write_text("text")
    return found


def test_a_directory_is_the_same_run_as_its_files(tmp_path: Path) -> None:
    parts = made(tmp_path / "run")
    with iosonar.open(tmp_path / "run") as whole, iosonar.open(*parts) as files:
        assert repr(whole.summary) == repr(files.summary)
        assert whole.summary.rows == len(parts) * ROWS
        assert whole.verdict.as_json() == files.verdict.as_json()
        assert [each.given for each in whole.files] == sorted(parts)


@pytest.mark.parametrize("rows", [ROWS // 3, ROWS, 3 * ROWS + 1])
def test_rows_are_kept_in_parts(rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(tmp_path / "run")
    with iosonar.open(tmp_path / "run") as whole:
        known = repr(whole.summary), whole.verdict.as_json()
    monkeypatch.setattr(requests, "ROWS_OF_A_PART", rows)
    monkeypatch.setattr(requests, "MAX_ROWS_OF_A_PART", max(rows, ROWS // 2))
    monkeypatch.setattr(embedded, "MAX_ROWS_IN_MEMORY", 0)
    with iosonar.open(tmp_path / "run") as whole:
        assert (repr(whole.summary), whole.verdict.as_json()) == known


def test_report_sql_and_diagnose_take_a_directory(tmp_path: Path) -> None:
    made(tmp_path / "run")
    run_binary("report", tmp_path / "run", "--out", tmp_path / "pages", "--format", "html")
    (page,) = (tmp_path / "pages").glob("*.html")
    text = page.read_text()
    assert all(f"{host}:{device}" in text for host in HOSTS for device in DEVICES)
    asked = "SELECT source, count(*) AS n, max(latency_ns) AS worst FROM requests GROUP BY source ORDER BY worst"
    found = run_binary("sql", tmp_path / "run", asked, "--format", "json")
    assert [each["n"] for each in json.loads(found)] == [ROWS] * 4
    said = json.loads(run_binary("diagnose", tmp_path / "run", "--json"))
    assert said


def test_directories_without_parts_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty/_temporary").mkdir(parents=True)
    (tmp_path / "empty/_temporary/x.parquet").touch()
    with pytest.raises(UserError, match=r"empty: Is a directory, and no file \*\.parquet is below it"):
        iosonar.open(tmp_path / "empty")


def test_more_parts_than_may_be_open_raise_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = made(tmp_path / "run")
    limits = [(dataset.RESERVED, 100_000)]
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits[-1])
    monkeypatch.setattr(resource, "setrlimit", lambda kind, value: limits.append(value))
    assert dataset.files_in([tmp_path / "run"]) == parts
    assert limits[-1] == (len(parts) + dataset.RESERVED, 100_000)
    limits[:] = [(dataset.RESERVED, dataset.RESERVED)]
    with pytest.raises(UserError, match=rf"only {dataset.RESERVED} may be open: raise the limit"):
        dataset.files_in([tmp_path / "run"])
    assert resource.RLIMIT_NOFILE >= 0


def test_the_limit_of_the_process_suffices_for_many_parts(tmp_path: Path) -> None:
    one = made(tmp_path / "run")[0]
    words = "import iosonar,sys; print(iosonar.open(sys.argv[1]).summary.rows)"
    for number in range(40):
        row = [run_row(0, scheduled=0, latency=US, delay=US, sector=0)]
        write_run(one.with_name(f"part-{number + 1}.parquet"), row, run={"started_unix_ns": number + 1})
    python = [sys.executable, "-c", words, str(tmp_path / "run")]
    done = subprocess.run(["sh", "-c", 'ulimit -Sn 64; exec "$@"', "sh", *python], capture_output=True, check=True)
    assert int(done.stdout) == 4 * ROWS + 40
