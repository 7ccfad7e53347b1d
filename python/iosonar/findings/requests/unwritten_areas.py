"""S12: reads returned only zeros, or were too fast for a medium, as of areas that were never written."""

from __future__ import annotations

from dataclasses import dataclass

from iosonar import units
from iosonar.findings.course import timeline_of, without_latency
from iosonar.findings.detector import Detector
from iosonar.findings.finding import Confidence, Evidence, Finding, Severity
from iosonar.findings.requests.cache_levels import reads_of
from iosonar.findings.thresholds import Limits
from iosonar.quantities.first_use import first_uses
from iosonar.quantities.modes import modes
from iosonar.quantities.timeline import Op
from iosonar.study.base import cached
from iosonar.study.check import Topic
from iosonar.study.grades import Grade
from iosonar.study.of_requests import judgement_of
from iosonar.study.requests import Study
from iosonar.study.runs import runs_of

CHUNKS = (128, 2048, 32768)
"""Sectors: 64 KiB, 1 MiB and 16 MiB."""

FEWEST, FEWEST_READS = 200, 50
"""The fewest reads and writes, and reads of new and of written places."""

QUICK, FACTOR = 0.01, 3.0
"""At least that share of the reads is so many times as fast as others."""

SHARE, FEW = 0.1, 0.3
"""At least that share of the reads of new places is fast, and of those of written ones at most that part of it."""


@dataclass(frozen=True)
class Unwritten:
    """Reads are fast below a latency: which share of those of new places, and of those of written ones."""

    limit_ns: float
    fast_s: float
    slow_s: float
    new: float
    written: float
    many: tuple[int, int]


@cached
def unwritten_of(study: Study) -> Unwritten | None:
    """By the latencies of reads: of what the run had not touched before, many are fast, of what it had written, few.

    A cache would do the contrary.
    """
    line, reads = timeline_of(study), reads_of(study)
    if min(float(line.known[Op.WRITE].sum()), reads.count) < FEWEST:
        return None
    low, high = max(reads.quantile(QUICK), 1.0), max(reads.quantile(1 - QUICK), 1.0)
    if high < FACTOR * low:
        return None
    levels = modes(reads, QUICK, FACTOR)
    if len(levels) < 2:
        return None
    best: Unwritten | None = None
    for used in first_uses(study.table, CHUNKS, study.span.first_ns, study.span.last_ns):
        many = int(used.new.sum()), int(used.written.sum())
        if min(many) < FEWEST_READS:
            continue
        for level in levels[:-1]:
            written, new = used.shares_below(level.high)
            if new >= SHARE and written <= FEW * new and (best is None or new - written > best.new - best.written):
                best = Unwritten(level.high, levels[0].median / 1e9, levels[-1].median / 1e9, new, written, many)
    return best


def find(study: Study, limits: Limits) -> Finding | None:
    """By the reads that returned zeros, as the replayer counted them; else by latencies."""
    return _counted(study) if _counts(study) else _inferred(study)


def _counted(study: Study) -> Finding | None:
    """By the check of the verdict."""
    check = judgement_of(study)["zero_reads"]
    if check.grade not in (Grade.WARNING, Grade.BAD):
        return None
    counted = [run.zero_reads for run in runs_of(study) if run.zero_reads]
    zeros, reads = sum(zero for zero, _ in counted), sum(read for _, read in counted)
    return DETECTOR.found(
        Severity(check.grade),
        f"{zeros:,} of {units.counted(reads, 'read')} ({units.percent(zeros / max(reads, 1))}) returned only zeros.",
        Evidence("op = 'read'", "latency.realtime"),
        sure=(
            Confidence.HIGH if check.grade is Grade.BAD else Confidence.MEDIUM,
            "The replayer looked at the data of all reads; it does not mark them, so the rows are all reads.",
        ),
        values={"zero_reads": zeros, "reads": reads, "share": zeros / max(reads, 1)},
    )


def _inferred(study: Study) -> Finding | None:
    found = unwritten_of(study)
    if found is None:
        return None
    return DETECTOR.found(
        Severity.WARNING,
        f"Of the reads of places that the run had not touched before, {units.percent(found.new)} take about "
        f"{units.span(found.fast_s)}; of the reads of what it had written, {units.percent(found.written)} do, and the "
        f"others about {units.span(found.slow_s)}.",
        Evidence(f"op = 'read' AND latency_ns < {int(found.limit_ns)}", "latency.bins"),
        sure=(
            Confidence.MEDIUM,
            f"{units.counted(found.many[0], 'read')} of untouched places beside {found.many[1]:,} of written ones; the "
            "data of reads was not looked at.",
        ),
        ruled_out=("A cache: it would answer what was used lately, not what is read for the first time.",),
        values={"share": found.new, "share_of_written": found.written, "reads": sum(found.many)},
    )


def _counts(study: Study) -> bool:
    """Whether the replayer counted the reads that returned only zeros."""
    return any(run.zero_reads for run in runs_of(study))


def why_not(study: Study) -> str:
    """Why it cannot be looked for."""
    if not study.requests.is_run:
        return "a load was not replayed"
    return "" if _counts(study) else without_latency(study)


DETECTOR = Detector[Study](
    "S12",
    "unwritten-areas",
    "Reads of areas that were never written",
    "The target is thin or new: it answers reads of areas that were never written without reading its medium, up to "
    "thousands of times as fast as real data. Latencies of such reads say nothing about the storage.",
    (
        "Fill the whole target with random data before the replay (`iosonar device wipe`), then replay once.",
        "Do not fill with zeros, and do not trust a function that allocates without writing.",
    ),
    find,
    about=Topic.RESULT,
    why_not=why_not,
)
