"""S12: reads returned only zeros, as of areas that were never written."""

from __future__ import annotations

from iosonar import units
from iosonar.findings.detector import Detector
from iosonar.findings.finding import Confidence, Evidence, Finding, Severity
from iosonar.findings.thresholds import Limits
from iosonar.study.check import Topic
from iosonar.study.grades import Grade
from iosonar.study.of_requests import judgement_of
from iosonar.study.requests import Study
from iosonar.study.runs import runs_of


def find(study: Study, limits: Limits) -> Finding | None:
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


def why_not(study: Study) -> str:
    """Why it cannot be looked for."""
    if not study.requests.is_run:
        return "a load was not replayed"
    return "" if any(run.zero_reads for run in runs_of(study)) else "no run counted the reads that returned only zeros"


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
