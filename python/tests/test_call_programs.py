"""Real traces: the binary records and generates, the workbench names and draws."""

from __future__ import annotations

from pathlib import Path

import pytest
from binary import iosonar
from test_report import report

from iosonar.quantities.calls.access import Pattern, access_patterns, largest_accesses
from iosonar.quantities.calls.series import with_series
from iosonar.table.calls import open_calls

pytestmark = pytest.mark.slow

NAMES = {
    "atlas-old": Pattern.RANDOM,
    "atlas-new": Pattern.SEQUENTIAL,
    "cms-analysis": Pattern.WITH_GAPS,
    "cms-reconstruction": Pattern.WITH_BACKWARD_JUMPS,
}


@pytest.mark.parametrize("job", NAMES)
@pytest.mark.parametrize("scale", [0.05, 1])
def test_generated_jobs_of_cern_are_named(tmp_path: Path, job: str, scale: float) -> None:
    trace = tmp_path / f"{job}.calls.parquet"
    iosonar("files", "generate", job, trace, "--scale", scale)
    with open_calls(trace) as calls:
        found = largest_accesses(access_patterns(with_series(calls.table)), 20)
    assert {each.pattern for each in found} == {NAMES[job]}
    assert len(found) == (9 if job.startswith("atlas") else 1)


def test_a_generated_job_has_a_page(tmp_path: Path) -> None:
    trace = tmp_path / "job.calls.parquet"
    iosonar("files", "generate", "cms-reconstruction", trace, "--scale", 0.05)
    assert report(trace, "--out", tmp_path) == 0
    assert "Offset over time: sequential with backward jumps" in (tmp_path / "job.calls.report.html").read_text()
