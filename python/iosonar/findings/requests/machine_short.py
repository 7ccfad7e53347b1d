"""S23: the machine of the replay ran out of processors or memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from iosonar import units
from iosonar.findings.course import between
from iosonar.findings.detector import Detector
from iosonar.findings.finding import Confidence, Evidence, Finding, Severity
from iosonar.findings.thresholds import Limits, Measured, Threshold
from iosonar.study.check import Topic
from iosonar.study.requests import Study


def find(study: Study, limits: Limits) -> Finding | None:
    """By what the runs counted of their machine."""
    said: list[str] = []
    values: dict[str, float] = {}
    for file in study.files:
        usage = file.run.statistics.usage
        if usage is None:
            continue
        for text, name, value in _short(usage, file.run.machine.memory_kib, limits):
            where = f"{file.run.machine.hostname or file.name}: " if len(study.files) > 1 else ""
            said.append(f"{where}{text}")
            values.setdefault(name, value)
    if not said:
        return None
    text = "; ".join(said)
    return DETECTOR.found(
        Severity.WARNING,
        f"{text[:1].upper()}{text[1:]}.",
        Evidence(between(study, study.first_s, study.last_s), "machine.processors"),
        sure=(Confidence.HIGH, "The kernel's counters of the machine, sampled during the run."),
        values=values,
    )


def _short(usage: object, memory_kib: float | None, limits: Limits) -> Iterator[tuple[str, str, float]]:
    busy = float(getattr(usage, "busy_pct", 0.0)) / 100
    samples = np.asarray(getattr(usage, "samples").busy_pct, np.float64) / 100  # noqa: B009
    full = float((samples >= limits["busy"]).mean()) if len(samples) else float(busy >= limits["busy"])
    if full >= limits["time"]:
        yield (
            f"On average, the processors were {units.percent(busy)} busy; they were fully busy "
            f"{units.percent(full)} of the time",
            "busy",
            busy,
        )
    available = float(getattr(usage, "available_bytes", 0))
    if memory_kib and 0 < available < limits["memory"] * memory_kib * 1024:
        yield f"only {units.binary_bytes(available)} of memory were left at one time", "available_bytes", available


DETECTOR = Detector[Study](
    "S23",
    "machine-short",
    "The machine is short of processors or memory",
    "The replayer shared a machine that had nothing left. Completions may have been seen late, which counts as "
    "latency, and "
    "buffers of the kernel may have been too small.",
    (
        "Stop other programs during the replay, or use a larger machine.",
        "These help: a lower `--depth`, less verification, or `--isolate` for the replayer's processor.",
    ),
    find,
    (
        Threshold("busy", 0.98, Measured.SHARE, "From when on the processors count as fully busy."),
        Threshold("time", 0.5, Measured.SHARE, "The share of the samples with fully busy processors."),
        Threshold("memory", 0.02, Measured.SHARE, "The share of the memory that is left."),
    ),
    about=Topic.RESULT,
    why_not=lambda study: (
        "" if any(file.run.statistics.usage for file in study.files) else "the run did not count what the machine did"
    ),
)
