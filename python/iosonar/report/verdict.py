"""The verdict on a run for scripts: one JSON object, documented by docs/schemas/verdict.json, and an exit code.

Fidelity comes first: a run that was not faithful allows no verdict on the device.
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
    decisive,
    fidelity_of,
    grade_of,
    not_known,
    stated_verdict,
    unfilled,
    wrap_factor,
    zero_reads_of,
)
from iosonar.diagrams.parts import beyond_limit
from iosonar.diagrams.study import DELAY, LATENCY, Measure
from iosonar.quantities.outcomes import SKIPPED, Outcomes, outcomes
from iosonar.report.outputs import write_whole
from iosonar.table import SourceFile

MAX_DROPPED = 0.05
"""The share of dropped requests above which the manual recommends another conflict mode."""

MAX_ZERO_READS = 0.01
"""The share of reads of only zeros above which they may have hit unwritten blocks instead of data."""


class Grade(StrEnum):
    """The grades of a verdict."""

    GOOD = "good"
    WARNING = "warning"
    BAD = "bad"


ORDER = (Grade.GOOD, Grade.WARNING, Grade.BAD)


def verdict_of(study: Study) -> dict[str, Any]:
    """All checks, and `grade`, the worst of their grades, with `reasons`."""
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
        "dropped": _count(dropped, Grade.BAD if dropped > MAX_DROPPED * total else Grade.WARNING, "dropped"),
        "skipped": _count(found.of(*SKIPPED) - dropped, Grade.WARNING, "skipped"),
        "zero_reads": _zero_reads(study),
        "wrap_around": _wrap(study),
    }
    # An unknown value has no grade. A run of unknown fidelity is not good, though.
    is_known = parts["fidelity"]["grade"] is not None
    least = Grade.GOOD if is_known else Grade.WARNING
    worst = max((least, *(part["grade"] for part in parts.values() if part["grade"])), key=ORDER.index)
    reasons = [] if is_known else [parts["fidelity"]["reason"]]
    reasons += [part["reason"] for part in parts.values() if part["grade"] in (Grade.WARNING, Grade.BAD)]
    files = [file.path for file in study.requests.files]
    checks = {name: {key: value for key, value in part.items() if key != "reason"} for name, part in parts.items()}
    return {
        "schema_version": 1,
        "files": files,
        "grade": worst,
        "reasons": reasons,
        "requests": study.span.requests,
        **checks,
    }


def write_verdict(verdict: dict[str, Any], path: Path) -> None:
    """Writes the verdict atomically."""
    content = json.dumps(verdict, indent=2, ensure_ascii=False) + "\n"
    write_whole(path, lambda unfinished: _write(content, unfinished))


def _write(content: str, path: Path) -> None:
    path.write_text(content, encoding="utf-8")


def fails(verdict: dict[str, Any], limit: Grade) -> bool:
    """Whether the verdict is as bad as `limit` or worse."""
    return ORDER.index(verdict["grade"]) >= ORDER.index(limit)


def _fidelity(study: Study) -> dict[str, Any]:
    """The fidelity of the worst run; without a grade if that of a run is unknown, and no other is bad."""
    worst: dict[str, Any] = {"grade": Grade.GOOD, "reason": ""}
    unknown = ""
    for index, file in enumerate(study.requests.files):
        found = fidelity_of(study, index, file)
        if found is None or file.option("asap"):
            continue
        if found.unknown:
            unknown = unknown or not_known(file.name, found)
            continue
        if not found.requests:
            continue
        grade, words = grade_of(found)
        part = {
            "grade": Grade(grade),
            "requests": found.requests,
            "within_10_us": _rounded(found.within_10_us),
            "within_50_us": _rounded(found.within_50_us),
            "within_100_us": _rounded(found.within_100_us),
            "p99_s": None if math.isnan(found.p99_s) else found.p99_s,
            "reason": f"the replay of {file.name} was {words}: {decisive(found)}{_remedies(file)}",
        }
        if len(worst) == 2 or ORDER.index(part["grade"]) > ORDER.index(worst["grade"]):
            worst = part
    return {"grade": None, "reason": unknown} if unknown and worst["grade"] != Grade.BAD else worst


def _rounded(share: float) -> float:
    """Rounds to six digits, but never up to the share that a faithful replay needs."""
    near = round(share, 6)
    return near if share >= units.FAITHFUL or near < units.FAITHFUL else math.floor(share * 1e6) / 1e6


def _remedies(file: SourceFile) -> str:
    """The remedies in the run's own verdict."""
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


def _count(number: int, grade: Grade, participle: str) -> dict[str, Any]:
    return {"grade": grade if number else Grade.GOOD, "requests": number, "reason": counted(number, participle)}


def counted(number: int, participle: str) -> str:
    """A phrase such as `2 requests were dropped`, or `1 request failed`."""
    verb = "" if participle == "failed" else " was" if number == 1 else " were"
    return f"{number:,} request{'' if number == 1 else 's'}{verb} {participle}"


def _outcomes(study: Study) -> Outcomes:
    return study.once("outcomes", lambda: outcomes(study.requests.table))


def _zero_reads(study: Study) -> dict[str, Any]:
    """Reads that returned only zeros, as the runs counted them: of blocks that were never written."""
    counted = (zero_reads_of(study, index, file) for index, file in enumerate(study.requests.files))
    known = [counts for counts in counted if counts is not None]
    zero, reads = sum(zero for zero, _ in known), sum(reads for _, reads in known)
    share = zero / max(reads, 1)
    if never_filled := unfilled(study):
        reason = f"{'; '.join(never_filled)}, as of blocks that were never written: fill the target before the replay"
        return {"grade": Grade.BAD, "requests": zero, "reason": reason}
    return {
        "grade": (Grade.WARNING if share > MAX_ZERO_READS else Grade.GOOD) if known else None,
        "requests": zero if known else None,
        "reason": f"{units.percent(share, MAX_ZERO_READS)} of the reads returned only zeros: they may have hit blocks "
        "that were never written",
    }


def _wrap(study: Study) -> dict[str, Any]:
    factors = [factor for file in study.requests.files if (factor := wrap_factor(file)) is not None]
    extreme = [factor for factor in factors if factor >= WRAP_HIGH]
    return {
        "grade": Grade.WARNING if extreme else Grade.GOOD,
        "factor": extreme[0] if extreme else factors[0] if factors else None,
        "reason": f"the load spans {units.number(extreme[0] if extreme else 0)} times the target's size: use one of "
        "about the original's size",
    }
