"""S01: reads crowd at several latencies, and what was used lately is fast: levels of caches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from iosonar import units
from iosonar.findings.course import without_latency
from iosonar.findings.detector import Detector
from iosonar.findings.finding import Confidence, Evidence, Finding, Severity
from iosonar.findings.thresholds import Limits, Measured, Threshold
from iosonar.quantities.distribution import Distribution, distributions, pooled
from iosonar.quantities.modes import Mode, modes
from iosonar.quantities.reuse import reuse_of
from iosonar.quantities.series import Series
from iosonar.study.accesses import accesses_of
from iosonar.study.base import cached
from iosonar.study.requests import LATENCY, Study
from iosonar.text import listed

SAMPLED = 60_000
"""Accesses whose reuse distance is measured."""

FEWEST_SAMPLED = 50
"""The fewest sampled reads of a level."""


@dataclass(frozen=True)
class Served:
    """What a level serves: reads of what was used within the last `bytes`, and how well that separates the levels.

    `fast` and `slow` are the shares of the reads of either side that were of data used so recently.
    """

    bytes: float
    fast: float
    slow: float

    @property
    def separation(self) -> float:
        """From 0 to 1."""
        return self.fast - self.slow


@cached
def reads_of(study: Study) -> Distribution:
    """The latencies of reads."""
    if not study.options.each_device:
        found = study.distribution(LATENCY)
        return pooled([found[each] for each in (Series.READ, Series.PUSHED_READ) if each in found])
    reads = study.table.filter(study.table.is_read)
    return pooled(list(distributions(reads, reads.latency_ns).values()))


@cached
def _sampled(study: Study) -> tuple[NDArray[np.float64], NDArray[np.int64], int] | None:
    """Of sampled reads: the distance since the last use of their page in bytes, and their latency."""
    sampled = accesses_of(study)
    if sampled is None:
        return None
    found = reuse_of(sampled, SAMPLED)
    latency, is_read = found.more
    chosen = (is_read == 1) & (latency >= 0)
    return found.distance[chosen] * found.page_bytes, latency[chosen], found.page_bytes


def served(study: Study, at_ns: float) -> Served | None:
    """Which reuse distance separates reads below a latency from those above; None if too few are known."""
    sampled = _sampled(study)
    if sampled is None:
        return None
    distance, latency, _ = sampled
    fast, slow = np.sort(distance[latency < at_ns]), np.sort(distance[latency >= at_ns])
    if min(len(fast), len(slow)) < FEWEST_SAMPLED:
        return None
    finite = distance[np.isfinite(distance)]
    if not len(finite):
        return None
    tried = np.unique(np.quantile(finite, np.linspace(0.01, 1, 200)))
    of_fast, of_slow = (np.searchsorted(each, tried, side="right") / len(each) for each in (fast, slow))
    best = int(np.argmax(of_fast - of_slow))
    return Served(float(tried[best]), float(of_fast[best]), float(of_slow[best]))


def find(study: Study, limits: Limits) -> Finding | None:
    """By the density of latencies of reads, and the reuse distances on both sides of each valley."""
    reads = reads_of(study)
    if reads.count < 500:
        return None
    levels = modes(reads, limits["share"], limits["factor"])
    serving = [served(study, level.high) for level in levels[:-1]]
    if not levels[:-1] or not all(each and each.separation >= limits["separation"] for each in serving):
        return None
    known = [each for each in serving if each]
    amounts = [units.binary_bytes(each.bytes) for each in known]
    named = [f"{units.percent(level.share)} take about {units.span(level.median / 1e9)}" for level in levels]
    what = (
        f"The fast ones are of data that was used within the last {amounts[0]}"
        if len(known) == 1
        else f"The levels serve what was used within the last {listed(amounts)}"
    )
    weakest = min(known, key=lambda each: each.separation)
    return DETECTOR.found(
        Severity.INFO,
        f"Reads have {len(levels)} levels of latency: {listed(named)}. {what}.",
        Evidence(
            f"op = 'read' AND latency_ns < {int(levels[-2].high)}",
            "latency.bins",
            low=levels[0].median / 1e9,
            high=levels[-1].median / 1e9,
        ),
        sure=(
            Confidence.HIGH if weakest.separation >= 0.7 else Confidence.MEDIUM,
            f"Of the fast reads, {units.percent(weakest.fast)} are of data used so recently; of the slow ones, "
            f"{units.percent(weakest.slow)}.",
        ),
        ruled_out=("Reads of areas that were never written: the fast reads are of data that was used before.",),
        values=_values(levels, known),
    )


def _values(levels: Sequence[Mode], known: Sequence[Served]) -> dict[str, float]:
    values: dict[str, float] = {"levels": len(levels)}
    for number, level in enumerate(levels, start=1):
        values |= {f"share_{number}": level.share, f"latency_{number}_s": level.median / 1e9}
    return values | {f"bytes_{number}": each.bytes for number, each in enumerate(known, start=1)}


DETECTOR = Detector[Study](
    "S01",
    "cache-levels",
    "Cache levels",
    "A cache answers the fast reads; the others go to the medium behind it, or to the next level. The "
    "share of fast reads depends on the load at least as much as on the storage.",
    (
        "Compare the size that the level serves with that of the cache: if the cache is much larger, it was cold, or "
        "something else uses it; if your real load uses more data, expect fewer fast reads than here.",
        "Look at the diagram of reuse distances (`iosonar report --only reuse,miss`) for the share of reads that a "
        "cache of "
        "another size would answer.",
    ),
    find,
    (
        Threshold("factor", 3.0, Measured.NUMBER, "How many times as slow the next level is."),
        Threshold("share", 0.02, Measured.SHARE, "The smallest share of the reads of a level."),
        Threshold(
            "separation", 0.5, Measured.SHARE, "How much more of the fast reads are of data that was used lately."
        ),
    ),
    why_not=without_latency,
)
