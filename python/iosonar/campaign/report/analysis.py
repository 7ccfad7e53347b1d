"""The analysis of a campaign: its leaves, those that count, the factors, and the effects on each metric."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from iosonar.campaign.report.effects import Effect, MetricAnalysis, analyse
from iosonar.campaign.report.factors import Factors, Place, factors_of
from iosonar.campaign.report.mixed import Group, groups_of, mixing
from iosonar.campaign.report.results import LeafResult
from iosonar.report.gate import Fidelity

METRICS = ("p99", "p95", "p50", "delay.p99", "throughput")
"""The analysed metrics, in the order of interest."""

LEAST_S = {"p99": 1e-9, "p95": 1e-9, "p50": 1e-9, "delay.p99": 1e-6}
"""Shorter times count as this in the logarithms of the model: clocks and loops are not more accurate."""

HEADLINES = ("p99", "p95", "p50")
"""The metrics of which one is in the headline, the preferred one first."""

BLOCKED = 0.95
"""The rank correlation with time from which the levels of a factor count as run one after another."""


WORDS = {
    Fidelity.UNKNOWN: "of unknown fidelity",
    Fidelity.UNFILLED: "of a target that was never filled (reads returned only zeros)",
}
"""Verdicts in a sentence about results, where the word itself is not clear enough."""


@dataclass(frozen=True)
class Analysis:
    """A campaign, analysed."""

    leaves: tuple[LeafResult, ...]
    used: tuple[LeafResult, ...]
    """The leaves that are analysed: those without doubt, or all if every one is doubtful."""
    left_out: tuple[LeafResult, ...]
    """Leaves with a result that allows no verdict on the storage."""
    factors: Factors
    metrics: tuple[MetricAnalysis, ...]
    doubt: str
    """Why there is no verdict on the storage at all; empty if there is one."""
    blocked: tuple[str, ...]
    """Titles of factors whose levels ran one after another."""
    groups: tuple[Group, ...] = ()
    """The analysed leaves by options that should not differ; empty if none differs."""
    mixed: tuple[str, ...] = ()
    """Titles of factors without a verdict, as these options may explain their effects."""

    @property
    def has_short_delays(self) -> bool:
        """Whether a delay counts as longer in the model."""
        return any(leaf.metrics.get("delay.p99", math.inf) < LEAST_S["delay.p99"] for leaf in self.used)

    @property
    def headline(self) -> MetricAnalysis | None:
        """The metric of the headline: the first that most leaves have; short runs have no p99."""
        known = [each for name in HEADLINES for each in self.metrics if each.metric == name]
        return max(known, key=lambda each: (each.freedom > 0, each.leaves), default=None)

    def effects_of(self, factor: str) -> list[Effect]:
        """The effects of a factor on all metrics."""
        return [effect for each in self.metrics for effect in each.effects if effect.factor == factor]


def analyse_campaign(leaves: Sequence[LeafResult], by: Sequence[str] = ()) -> Analysis:
    """Analyses the finished leaves of a campaign."""
    done = [leaf for leaf in leaves if leaf.done]
    sure = [leaf for leaf in done if not leaf.doubt]
    doubt = ""
    if done and not sure:
        reasons = sorted({WORDS.get(leaf.fidelity, str(leaf.fidelity)) for leaf in done})
        doubt = f"every result is {' or '.join(reasons)}"
        if any(leaf.unfilled for leaf in done) and all(leaf.fidelity is not Fidelity.UNFILLED for leaf in done):
            doubt += ", and reads of targets that were never filled returned only zeros"
    used = sure or done
    left_out = [leaf for leaf in done if leaf.doubt] if sure else []
    # Factors of the whole tree, so that --by names the same levels whatever is finished.
    factors = factors_of([Place(leaf.path, leaf.variables) for leaf in leaves], by) if leaves else Factors(())
    numbers = [index for index, leaf in enumerate(leaves) if any(leaf is each for each in used)]
    factors = factors.only(numbers)
    started = np.array([leaf.started for leaf in used], dtype=np.float64)
    values = {
        metric: np.array([leaf.metrics.get(metric, math.nan) for leaf in used], dtype=np.float64)
        for metric in METRICS
        if sum(metric in leaf.metrics for leaf in used) > 1
    }
    mixed = mixing(factors.reported, used)
    found = analyse(values, factors.all, started, [factor.title for factor in factors.reported], LEAST_S)
    metrics = [_without_verdict(each, mixed) for each in found]
    return Analysis(
        tuple(leaves),
        tuple(used),
        tuple(left_out),
        factors,
        tuple(metrics),
        doubt,
        tuple(_blocked(factors, started)),
        tuple(groups_of(used)),
        tuple(mixed),
    )


def _without_verdict(found: MetricAnalysis, mixed: Sequence[str]) -> MetricAnalysis:
    """The metric without a verdict about these factors."""
    return replace(
        found,
        effects=tuple(replace(effect, mixed=effect.factor in mixed) for effect in found.effects),
        interactions=tuple(each for each in found.interactions if not set(each.factors) & set(mixed)),
    )


def _blocked(factors: Factors, started: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> list[str]:
    """Factors whose levels did not take turns: each level ran in one uninterrupted stretch."""
    if len(started) < 3 or not np.isfinite(started).all():
        return []
    order = np.argsort(started, kind="stable")
    found = []
    for factor in factors.reported:
        levels = np.array(factor.of)[order]
        if 1 + int((levels[1:] != levels[:-1]).sum()) == len(factor.levels) and len(levels) > len(factor.levels):
            found.append(factor.title)
    return found
