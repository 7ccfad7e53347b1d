"""The natural loads in pictures; `make acceptance` says where they are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from test_report import png_size, report

pytestmark = pytest.mark.acceptance

LOADS = ["linux-mysql", "windows-mssql"]


def natural(name: str) -> Path:
    """A natural load's file."""
    return Path(os.environ["IOSONAR_LOADS"]) / f"{name}.load.gz"


@pytest.mark.parametrize("name", LOADS)
def test_pictures_of_a_load(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert report(natural(name), "--out", tmp_path) == 0
    written = {Path(line).name: Path(line) for line in capsys.readouterr().out.splitlines()}
    assert f"{name}.g000.overview.thrp.png" in written
    assert {png_size(path) for path in written.values()} == {(1200, 800)}
