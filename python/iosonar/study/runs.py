"""Whether the times of each run are those of the storage: what the replayer did, and what its reads found."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from iosonar import units
from iosonar.quantities.fidelity import WITHIN_US, Fidelity, fidelity
from iosonar.study.base import cached
from iosonar.study.grades import Grade
from iosonar.study.requests import Study
from iosonar.table import SourceFile, is_of_program_alone, is_unexplained
from iosonar.table.footer import Remedy, Statistics
from iosonar.thresholds import is_unfilled

if TYPE_CHECKING:
    import ibis.expr.types as ir

FAITHFUL = units.FAITHFUL
"""A run is faithful if at least this share of its requests not held back was issued within 50 µs of its time.

Runs have their own verdict by the same rule; this one is for runs without a verdict.
"""

ROUGHLY = 0.9
"""The same share within 100 µs causes only a warning, for runs without a verdict of their own."""

WRAP_HIGH = 1.1
"""A load that spans more of its target than this wraps around so often that caches look better than they are."""

NO_TARGET = ("simulate", "null")
"""Engines without a target: the size in the footers of their runs is none."""

WORDS = {Grade.GOOD: "faithful", Grade.WARNING: "roughly faithful", Grade.BAD: "NOT faithful"}


@dataclass(frozen=True)
class RunJudgement:
    """One file of a study: how faithful it is (None for a load), and its reads.

    `zero_reads` are the reads that returned only zeros, and all reads; None if the run did not count them, or did not
    read at all.
    """

    file: SourceFile
    fidelity: Fidelity | None
    zero_reads: tuple[int, int] | None
    is_part: bool = False
    """Whether it is a window of the run: its fidelity is that of the window, its reads are those of the whole run."""

    @property
    def keeps_times(self) -> bool:
        """Whether it is a run whose requests had times to keep."""
        return self.fidelity is not None and not self.file.option("asap")

    @property
    def unknown(self) -> str:
        """Why it is not known whether the run was faithful, as a clause; empty if that is known."""
        return self.fidelity.unknown if self.fidelity and self.keeps_times else ""

    @property
    def grade(self) -> Grade | None:
        """How faithful the run was; None where that is not known or there was nothing to keep."""
        found = self.fidelity
        if found is None or not self.keeps_times or found.unknown or not found.requests:
            return None
        if found.faithful or (found.faithful is None and found.within_50_us >= FAITHFUL):
            return Grade.GOOD
        return Grade.WARNING if found.faithful is None and found.within_100_us >= ROUGHLY else Grade.BAD

    @property
    def words(self) -> str:
        """The same in words."""
        return "verdict not known" if self.unknown else WORDS[self.grade] if self.grade else ""

    @property
    def decisive(self) -> str:
        """The share that decides, and the required one if the run was not faithful; or another reason for that."""
        within = self.fidelity.within_50_us if self.fidelity else math.nan
        _, _, reason = self._own.partition(": ")
        if within >= FAITHFUL and self.grade is Grade.BAD and reason:
            # Such as perturbed times.
            return reason.partition(". ")[0].rstrip(".")
        needed = "" if within >= FAITHFUL else f", {FAITHFUL * 100:g} % needed"
        return f"{units.percent(within)} within 50 µs{needed}"

    @property
    def not_known(self) -> str:
        """The sentence about a run of which it is not known whether it was faithful; empty for others."""
        return f"the verdict on the replay of {self.file.name} is not known: {self.unknown}" if self.unknown else ""

    @property
    def missed(self) -> str:
        """The sentence about a run that was not faithful, or only roughly."""
        when = " in this window" if self.is_part else ""
        return f"the replay of {self.file.name} was {self.words}{when}: {self.decisive}"

    @property
    def unfilled(self) -> str:
        """The sentence about a run of which too many reads returned only zeros; empty if its reads found data."""
        if self.zero_reads is None or not is_unfilled(*self.zero_reads):
            return ""
        zero, reads = self.zero_reads
        whole = ", the whole run," if self.is_part else ""
        return f"{zero:,} of {units.counted(reads, 'read')} of {self.file.name}{whole} returned only zeros"

    @property
    def sentence(self) -> str:
        """The run's own verdict as a sentence; empty if it has none, or for a window."""
        return "" if self.is_part else self._own

    @property
    def _own(self) -> str:
        verdict = self.file.run.statistics.verdict
        return verdict.sentence if verdict else ""

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        """What the run's own verdict says to try; nothing for a window that was faithful."""
        verdict = self.file.run.statistics.verdict
        return verdict.remedies if verdict and not (self.is_part and self.grade is not Grade.BAD) else ()


@cached
def runs_of(study: Study) -> tuple[RunJudgement, ...]:
    """Each file of a study, judged once."""
    return tuple(_judged(study, index, file) for index, file in enumerate(study.requests.files))


def doubt_of(study: Study) -> str:
    """Why the times of a study say nothing about the device; empty if they do."""
    runs = runs_of(study)
    if any(run.file.fake for run in runs):
        return "the result is fake"
    if any(run.grade is Grade.BAD for run in runs):
        return "the replay was not faithful"
    if any(run.unknown for run in runs):
        return "it is not known whether the replay was faithful"
    return "reads returned only zeros" if any(run.unfilled for run in runs) else ""


def _judged(study: Study, index: int, file: SourceFile) -> RunJudgement:
    return RunJudgement(file, _fidelity(study, index, file), _zero_reads(study, index, file), study.is_part)


def _fidelity(study: Study, index: int, file: SourceFile) -> Fidelity | None:
    """From the statistics in the footer, else from the delays. None for a load."""
    if not file.kind.is_run:
        return None
    stated = stated_fidelity(file.run.statistics)
    if stated is not None and file.run.statistics.verdict and not study.is_part:
        return stated
    table = study.requests.table
    own = table.filter(table.source == index)
    kept = study.table
    measured = fidelity(kept.filter(kept.source == index))
    if stated is not None and study.is_part:
        return _of_window(measured, own, file)
    if stated is None and (why := _unknown(study, index, file)):
        return replace(measured, unknown=why)
    # Footers of earlier versions have the shares, but not the number of requests.
    return measured if stated is None else replace(stated, requests=measured.requests)


def _of_window(measured: Fidelity, own: ir.Table, file: SourceFile) -> Fidelity:
    """The fidelity of a window: by the rule of the run's own verdict if it has one."""
    if not measured.requests:
        # As in `stated_fidelity`.
        measured = replace(measured, within_10_us=1.0, within_50_us=1.0, within_100_us=1.0)
    if not file.run.statistics.verdict:
        return measured
    perturbed = own.filter(own.delay_reason == "perturbed").count().to_pyarrow().as_py()
    return replace(measured, faithful=not perturbed and measured.within_50_us >= FAITHFUL)


def _unknown(study: Study, index: int, file: SourceFile) -> str:
    """Why the rows of a run without a verdict of its own do not show its fidelity; empty if they do."""
    if not file.complete:
        return "the result is damaged" if file.unreadable_rows else "the result was cut short"
    table = study.requests.table
    own = table.filter((table.source == index) & is_unexplained(table))
    is_known = not own.count().to_pyarrow().as_py()
    return "" if is_known else "the result does not say what delayed its requests, the device or the replayer"


def _zero_reads(study: Study, index: int, file: SourceFile) -> tuple[int, int] | None:
    counted = file.run.statistics.zero_reads
    if counted is None or file.fake:
        return None
    table = study.requests.whole_table
    own = table.filter((table.source == index) & (table["op"] == "read"))
    reads = int(own.count().to_pyarrow().as_py())
    return (counted, reads) if reads else None


def stated_fidelity(statistics: Statistics) -> Fidelity | None:
    """The fidelity in a run's footer: its verdict, else its delays, if possible of requests not held back."""
    verdict = statistics.verdict
    if verdict and verdict.own:
        own = verdict.own
        # Without a request that was not held back, the replayer delayed none.
        in_10, in_50, in_100 = (own.within_pct.get(str(us), 100) / 100 for us in WITHIN_US)
        return Fidelity(own.requests, in_10, in_50, in_100, _p99_s(own.delay_us), verdict.faithful)
    within = statistics.within_not_held_back_pct or statistics.within_pct
    delay = statistics.delay_not_held_back_us or statistics.delay_us
    # Runs of earlier versions lack the share within 50 µs; their delays show it.
    if not delay or not all(str(us) in within for us in WITHIN_US):
        return None
    in_10, in_50, in_100 = (within[str(us)] / 100 for us in WITHIN_US)
    requests = 1 if statistics.requests is None else statistics.requests
    return Fidelity(requests, in_10, in_50, in_100, _p99_s(delay))


def _p99_s(quantiles: Mapping[str, Any]) -> float:
    """The 99th percentile from quantiles in µs, NaN if unknown; earlier versions wrote some that exceed the maximum."""
    p99 = quantiles.get("p99")
    return math.nan if p99 is None else min(float(p99), float(quantiles.get("max", math.inf))) / 1e6


def wrap_factor(file: SourceFile) -> float | None:
    """The extent of the load divided by the target's size; None if it is unknown, or there is no target with a size.

    It is also None for a program without a load: it divides the target among its devices.
    """
    run = file.run
    if is_of_program_alone(file) or run.engine in NO_TARGET or not all(target.is_real for target in file.targets):
        return None
    if run.statistics.wrap_factor is not None:
        return float(run.statistics.wrap_factor)
    sectors, extent = run.target.sectors if run.target else None, file.footer.span.max_end_sector
    return extent / sectors if sectors and extent else None


def is_extreme(factor: float) -> bool:
    """Whether a load spans so much more than its target that the replay warns of it, too."""
    return factor > WRAP_HIGH
