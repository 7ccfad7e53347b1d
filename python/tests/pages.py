"""A page for browser tests."""

from __future__ import annotations

from pathlib import Path

from factory import write_run
from made_run import made_run
from test_report import report

STORY = ("latency.realtime", "position.realtime", "latency.flying", "overview.thrp", "delay.setpoint", "latency.bands")
"""The first diagrams of the page."""


def page_of_a_run(directory: Path) -> Path:
    """Writes the page of a synthetic run."""
    run = write_run(directory / "db.replay.parquet", made_run(3000, seconds=10))
    assert report(run, "--out", directory) == 0
    return directory / "db.report.html"
