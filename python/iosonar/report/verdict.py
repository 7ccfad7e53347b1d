"""The verdict on a run for scripts: one JSON object, documented by docs/schemas/verdict.json, and an exit code.

The replay's own fidelity stands first: a run that missed its times is no verdict on the device.
"""

from __future__ import annotations

import json
import math
from enum import StrEnum
from pathlib import Path
from typing import Any

from iosonar import units
from iosonar.diagrams import Study
from iosonar.diagrams.notes import (
    WRAP_HIGH,
    WRAP_LOW,
    decisive,
    fidelity_of,
    grade_of,
    stated_verdict,
    wrap_factor,
)
from iosonar.diagrams.parts import beyond_limit
from iosonar.diagrams.study import DELAY, LATENCY, Measure
from iosonar.quantities.outcomes import SKIPPED, Outcomes, outcomes
from iosonar.report.outputs import write_whole
from iosonar.table import SourceFile

DROPPED_TOO_MANY = 0.05
"""Above this share of dropped requests the manual advises another mode."""

ZERO_READS_MANY = 0.01
"""Above this share of reads that return zeros only, holes may have been read instead of data."""


class Grade(StrEnum):
    """From good to bad."""

    GOOD = "good"
    WARNING = "warning"
    BAD = "bad"


ORDER = (Grade.GOOD, Grade.WARNING, Grade.BAD)


def verdict_of(study: Study) -> dict[str, Any]:
    """All single verdicts, and `grade`, the worst of them, with the `reasons` for it."""
    found = _outcomes(study)
    total = max(study.span.requests, 1)
    dropped = found.of("dropped")
    parts = {
        "fidelity": _fidelity(study),
        "complete": _complete(study),
        "real": _real(study),
        "bad_latency": _measure(study, LATENCY),
        "bad_delay": _measure(study, DELAY),
        "errors": _count(found.of("error", "short", "corrupt", "unfinished"), Grade.BAD, "failed"),
        "dropped": _count(dropped, Grade.BAD if dropped > DROPPED_TOO_MANY * total else Grade.WARNING, "dropped"),
        "skipped": _count(found.of(*SKIPPED) - dropped, Grade.WARNING, "skipped"),
        "zero_reads": _zero_reads(study),
        "wrap_around": _wrap(study),
    }
    # What is not known has no grade.
    worst = max((part["grade"] for part in parts.values() if part["grade"]), key=ORDER.index)
    reasons = [part["reason"] for part in parts.values() if part["grade"] in (Grade.WARNING, Grade.BAD)]
    files = [file.path for file in study.requests.files]
    shown = {name: {key: value for key, value in part.items() if key != "reason"} for name, part in parts.items()}
    return {
        "schema_version": 1,
        "files": files,
        "grade": worst,
        "reasons": reasons,
        "requests": study.span.requests,
        **shown,
    }


def write_verdict(verdict: dict[str, Any], path: Path) -> None:
    """Writes it; under its final name the file is whole or not there."""
    content = json.dumps(verdict, indent=2, ensure_ascii=False) + "\n"
    write_whole(path, lambda unfinished: _write(content, unfinished))


def _write(content: str, path: Path) -> None:
    path.write_text(content, encoding="utf-8")


def fails(verdict: dict[str, Any], limit: Grade) -> bool:
    """Whether the verdict is as bad as `limit` or worse."""
    return ORDER.index(verdict["grade"]) >= ORDER.index(limit)


def _fidelity(study: Study) -> dict[str, Any]:
    """The worst of all runs."""
    worst: dict[str, Any] = {"grade": Grade.GOOD, "reason": ""}
    for index, file in enumerate(study.requests.files):
        found = fidelity_of(study, index, file)
        if found is None or not found.requests or file.option("asap"):
            continue
        grade, words = grade_of(found)
        part = {
            "grade": Grade(grade),
            "requests": found.requests,
            "within_10_us": _down(found.within_10_us),
            "within_50_us": _down(found.within_50_us),
            "within_100_us": _down(found.within_100_us),
            "p99_s": found.p99_s,
            "reason": f"the replay of {file.name} was {words}: {decisive(found)}{_remedies(file)}",
        }
        if len(worst) == 2 or ORDER.index(part["grade"]) > ORDER.index(worst["grade"]):
            worst = part
    return worst


def _down(share: float) -> float:
    """To six digits, so that none reaches a threshold that it misses."""
    return math.floor(share * 1e6 + 1e-6) / 1e6


def _remedies(file: SourceFile) -> str:
    """What to try, as the run itself says."""
    remedies = stated_verdict(file).get("remedies") or []
    steps = [f"{number}. {step['try']} (costs: {step['costs']})" for number, step in enumerate(remedies, start=1)]
    return f"; try, in this order: {', '.join(steps)}" if steps else ""


def _complete(study: Study) -> dict[str, Any]:
    cut = [file.name for file in study.requests.files if not file.complete]
    return {"grade": Grade.BAD if cut else Grade.GOOD, "complete": not cut, "reason": f"cut short: {', '.join(cut)}"}


def _real(study: Study) -> dict[str, Any]:
    fakes = [
        str(file.run["fake"]).removeprefix("FAKE RESULT: ") for file in study.requests.files if file.run.get("fake")
    ]
    return {
        "grade": Grade.BAD if fakes else Grade.GOOD,
        "real": not fakes,
        "reason": f"fake result: {'; '.join(fakes)}",
    }


def _measure(study: Study, measure: Measure) -> dict[str, Any]:
    found = study.verdict(measure)
    return {
        "grade": Grade.GOOD if found.passed else Grade.BAD,
        "limit_s": found.limit_s,
        "beyond": found.beyond,
        "first_at_s": None if found.first_at_s is None else found.first_at_s + study.origin_ns / 1e9,
        "max_s": found.maximum_s,
        "reason": beyond_limit(found.beyond, found.limit_s, measure),
    }


def _count(number: int, grade: Grade, what: str) -> dict[str, Any]:
    return {"grade": grade if number else Grade.GOOD, "requests": number, "reason": counted(number, what)}


def counted(number: int, what: str) -> str:
    """So many requests failed, or were dropped or skipped."""
    verb = "" if what == "failed" else " was" if number == 1 else " were"
    return f"{number:,} request{'' if number == 1 else 's'}{verb} {what}"


def _outcomes(study: Study) -> Outcomes:
    return study.once("outcomes", lambda: outcomes(study.requests.table))


def _zero_reads(study: Study) -> dict[str, Any]:
    """Reads that returned nothing but zeros, as the runs counted them: from where nothing was ever written."""
    counted = [file.run.get("statistics", {}).get("zero_reads") for file in study.requests.files]
    known = [int(number) for number in counted if number is not None]
    reads = max(_outcomes(study).by_op.get("read", 0), 1) if known else 1
    share = sum(known) / reads
    return {
        "grade": (Grade.WARNING if share > ZERO_READS_MANY else Grade.GOOD) if known else None,
        "requests": sum(known) if known else None,
        "reason": f"{units.percent(share)} of the reads returned only zeros: they may have hit blocks that were never "
        "written",
    }


def _wrap(study: Study) -> dict[str, Any]:
    factors = [factor for file in study.requests.files if (factor := wrap_factor(file)) is not None]
    odd = [factor for factor in factors if factor >= WRAP_HIGH or factor < WRAP_LOW]
    return {
        "grade": Grade.WARNING if odd else Grade.GOOD,
        "factor": odd[0] if odd else factors[0] if factors else None,
        "reason": f"the load spans {units.number(odd[0] if odd else 0)} times the target's size",
    }
