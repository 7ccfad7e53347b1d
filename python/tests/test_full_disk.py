"""A full temporary directory: a one-line error with a remedy, and no incomplete picture."""

from __future__ import annotations

from pathlib import Path

import pytest
from factory import write_run
from made_run import made_run
from test_report import png_size, report

from iosonar.table import embedded


@pytest.mark.parametrize("kept_on_disk", [True, False])
def test_a_full_temporary_directory_leaves_no_wrong_picture(
    small_disk: Path,
    tmp_path: Path,
    kept_on_disk: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if kept_on_disk:
        # As for a run of twenty million requests.
        monkeypatch.setattr(embedded, "MAX_ROWS_IN_MEMORY", 0)
    run = write_run(tmp_path / "a.replay.parquet", made_run(200_000, seconds=10))
    out = tmp_path / "out"
    words = ("--format", "png", "--out", out, "--static", "--dynamic", "--memory", "1GiB" if kept_on_disk else "32MiB")
    assert report(run, *words) == 1
    message = capsys.readouterr()
    *names, last = message.err.splitlines()
    assert last.startswith("iosonar report: out of memory or temporary disk space") and "TMPDIR" in last, message.err
    assert not names
    written = sorted(out.glob("*"))
    assert [str(path) for path in written] == sorted(message.out.splitlines())
    assert all(png_size(path) == (1200, 800) for path in written)
    assert not list(small_disk.iterdir())


def test_with_enough_memory_a_run_needs_no_temporary_space(small_disk: Path, tmp_path: Path) -> None:
    run = write_run(tmp_path / "a.replay.parquet", made_run(200_000, seconds=10))
    assert report(run, "--format", "png", "--out", tmp_path / "out", "--only", "latency.realtime,ws_log") == 0
