"""What is measured on the results of a leaf that replayed calls to files."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from iosonar.campaign.report.found import found_in
from iosonar.errors import UserError
from iosonar.findings.finding import Severity
from iosonar.findings.registry import diagnose_calls
from iosonar.report.call_answers import fell_behind, waiting_of
from iosonar.report.gate_subjects import subject_of_calls
from iosonar.study.base import Options
from iosonar.study.calls import CallSide, CallStudy
from iosonar.table import open_calls


def measured_calls(files: Sequence[Path], metrics: Sequence[str]) -> dict[str, Any]:
    """The same as of requests; the devices are the roots of the replays."""
    with ExitStack() as stack:
        studies = [CallStudy([stack.enter_context(open_calls(path))], Options()) for path in files]
        sides = [study.first for study in studies]
        if not all(side.is_run for side in sides):
            raise UserError("its result is a trace, not a run")
        subject = subject_of_calls(*sides)
        waits = [(waiting_of(side).last_s, side.seconds) for side in sides if side.keeps_times]
        begins = [at / 1e9 for side in sides if (at := side.calls.file.run.started_unix_ns)]
        return {
            "started": min(begins, default=math.nan),
            "metrics": {name: subject.value(name) for name in metrics},
            "fidelity": str(subject.fidelity),
            "doubt": subject.doubt,
            "unfilled": "",
            "grade": str(subject.grade),
            "devices": sorted((_device(side) for side in sides), key=lambda each: -each["p99_s"]),
            "slow": [],
            "findings": _findings(studies),
            "late_s": max((last_s for last_s, _ in waits), default=None),
            "fell_behind": any(fell_behind(last_s, seconds) for last_s, seconds in waits),
        }


def _findings(studies: Sequence[CallStudy]) -> list[dict[str, Any]]:
    """Those of all instances; of the same finding, the worst."""
    every = [found for study in studies for found in found_in(diagnose_calls(study))]
    every.sort(key=lambda found: -Severity(found["severity"]).rank)
    return list({found["number"]: found for found in reversed(every)}.values())[::-1]


def _device(side: CallSide) -> dict[str, Any]:
    file, times = side.calls.file, side.pooled_response
    root = file.run.root.path if file.run.root else ""
    p50, p99 = (times.percentile(share) / 1e9 for share in (0.5, 0.99))
    return {"name": f"{file.run.machine.hostname}:{root}", "requests": times.count, "p50_s": p50, "p99_s": p99}
