"""Reads that returned only zeros, as the runs counted them: of blocks that were never written."""

from __future__ import annotations

from iosonar import units
from iosonar.study.check import Check
from iosonar.study.grades import Grade
from iosonar.study.requests import Study
from iosonar.study.runs import runs_of

MAX_ZERO_READS = 0.01
"""The share of reads of only zeros above which they may have hit unwritten blocks instead of data."""


def zero_reads(study: Study) -> Check:
    """Whether reads found data; not known where no run counted them."""
    runs = runs_of(study)
    known = [run.zero_reads for run in runs if run.zero_reads is not None]
    if not known:
        return Check("zero_reads", None, {"requests": None})
    zero, reads = sum(zero for zero, _ in known), sum(reads for _, reads in known)
    share, never_filled = zero / max(reads, 1), [run.unfilled for run in runs if run.unfilled]
    grade = Grade.BAD if never_filled else Grade.WARNING if share > MAX_ZERO_READS else Grade.GOOD
    reason = (
        f"{'; '.join(never_filled)}, as of blocks that were never written: fill the target before the replay"
        if never_filled
        else f"{units.percent(share, MAX_ZERO_READS)} of the reads returned only zeros: they may have hit blocks that "
        "were never written"
    )
    whole = " of the whole run" if study.is_part else ""
    sentence = f"{units.counted(zero, 'read') if zero else 'No read'}{whole} returned only zeros"
    return Check("zero_reads", grade, {"requests": zero}, reason, sentence)
