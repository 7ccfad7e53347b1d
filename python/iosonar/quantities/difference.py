"""How much slower one group of runs is than another, with a confidence interval.

Two sources of variation matter. Within a run, latency has phases: the bootstrap resamples sequences of consecutive
blocks of time. If both sides replayed the same load, it resamples the same blocks on both sides, which removes the
variation of the load itself. Between repeated runs there are differences that no single run can show: with three runs
a side or more, Welch's interval of the runs' own values estimates them. The reported interval is the factor of the two;
with fewer runs it is that of the bootstrap alone, and no difference is claimed.

Sources: Künsch, The Jackknife and the Bootstrap for General Stationary Observations (1989), for blocks; Welch, The
generalization of Student's problem when several different population variances are involved (1947).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from iosonar.quantities.blocks import BLOCKS, Blocks, aligned, quantiles
from iosonar.quantities.distribution import Distribution
from iosonar.quantities.percentiles import name_of, share_of
from iosonar.thresholds import MIN_BEYOND

DRAWS = 1000
SEQUENCE = 3
"""Blocks resampled together, so that phases longer than a block stay together. 20 sequences make a run."""

CONFIDENCE = 0.95
MIN_RUNS = 3
MAX_RUNS = 100
"""More runs are not advised."""
SHARES = (0.5, 0.9, 0.95, 0.99, 0.999)
"""The percentiles that are compared, if none are chosen."""

MEAN = "mean"

THROUGHPUT = "throughput"


class Finding(StrEnum):
    """The conclusion about a difference."""

    SLOWER = "slower"
    FASTER = "faster"
    NONE = "no difference shown"
    TOO_FEW_RUNS = "too few runs to tell"
    INCOMPARABLE = "not comparable"


@dataclass(frozen=True)
class Difference:
    """The difference in a metric: both values in ns, the change from a to b as a share of a (0.1: b is 10 % slower)."""

    metric: str
    a_ns: float
    b_ns: float
    change: float
    low: float
    high: float
    finding: Finding
    runs: int = 0
    """Of the side with fewer."""

    def with_values(self, a: Distribution, b: Distribution) -> Difference:
        """Its values, which the comparison interpolates in bins, replaced by those that all diagrams show."""
        share = share_of(self.metric)
        a_ns, b_ns = (each.mean if share is None else each.quantile(share) for each in (a, b))
        if not (a_ns > 0 and b_ns > 0):
            return self
        factor = (b_ns / a_ns) / (1 + self.change)
        low, high = ((1 + bound) * factor - 1 for bound in (self.low, self.high))
        return Difference(
            self.metric, a_ns, b_ns, b_ns / a_ns - 1, low, high, _finding(low, high, self.runs), self.runs
        )

    def without_finding(self) -> Difference:
        """The two values, of sides that cannot be compared."""
        return replace(self, change=math.nan, low=math.nan, high=math.nan, finding=Finding.INCOMPARABLE)


@dataclass(frozen=True)
class RateDifference:
    """The difference in throughput: completed requests/s, the change from a to b relative to a, and its interval."""

    a_per_s: float
    b_per_s: float
    change: float
    low: float
    high: float
    finding: Finding
    runs: int = 0

    def without_finding(self) -> RateDifference:
        """The two values, of sides that cannot be compared."""
        return replace(self, change=math.nan, low=math.nan, high=math.nan, finding=Finding.INCOMPARABLE)


class Pairing(StrEnum):
    """Whether both sides replayed the same load."""

    PAIRED = "paired"
    UNPAIRED = "unpaired"


def differences(
    a: list[Blocks], b: list[Blocks], pairing: Pairing, seed: int = 1, shares: Sequence[float] = SHARES
) -> list[Difference]:
    """Compares these percentiles and the mean, as far as both sides have enough requests."""
    generator = np.random.default_rng(seed)
    counts = aligned([*a, *b])
    first_bin = min(run.first for run in (*a, *b)) / 1000
    sides = [(counts[: len(a)], a), (counts[len(a) :], b)]
    draws = [resampled(generator) for _ in range(2)]
    if pairing is Pairing.PAIRED:
        draws[1] = draws[0]
    ones = np.ones((1, BLOCKS))
    found = [_side(cells, runs, ones, shares) for cells, runs in sides]
    drawn = [_side(cells, runs, weights, shares) for (cells, runs), weights in zip(sides, draws, strict=True)]
    single = [
        np.concatenate([_side([cell], [run], ones, shares) for cell, run in zip(cells, runs, strict=True)])
        for cells, runs in sides
    ]
    fewest = min(sum(cell.sum() for cell in cells) for cells, _ in sides)
    result = []
    for index, (metric, share) in enumerate([*((name_of(share), share) for share in shares), (MEAN, 0.0)]):
        if round(fewest * (1 - share), 6) < MIN_BEYOND:
            continue
        at = float(found[1][0, index] - found[0][0, index])
        low, high = interval(drawn[1][:, index] - drawn[0][:, index], at)
        if min(len(a), len(b)) >= MIN_RUNS:
            near, far = welch(single[0][:, index], single[1][:, index])
            low, high = min(low, near), max(high, far)
        offset = 0.0 if metric == MEAN else first_bin
        values = [float(10 ** (side[0, index] + offset)) for side in found]
        fewer = min(len(a), len(b))
        finding = _finding(low, high, fewer)
        result.append(Difference(metric, values[0], values[1], 10**at - 1, 10**low - 1, 10**high - 1, finding, fewer))
    return result


def rate_difference(
    a: list[NDArray[np.float64]], b: list[NDArray[np.float64]], pairing: Pairing, seed: int = 1
) -> RateDifference | None:
    """Compares throughput, from the rates (per second) in the blocks of each run; None if a side completed nothing.

    The intervals are computed as for latency, from the decimal logarithm. A higher rate is faster.
    """
    rates = [np.mean(side, axis=0) for side in (a, b)]
    if not all(side.any() for side in rates):
        return None
    generator = np.random.default_rng(seed)
    draws = [resampled(generator) for _ in range(2)]
    if pairing is Pairing.PAIRED:
        draws[1] = draws[0]
    drawn = [
        np.log10(np.maximum(weights @ side / weights.sum(axis=1), 1e-9))
        for side, weights in zip(rates, draws, strict=True)
    ]
    a_per_s, b_per_s = (float(side.mean()) for side in rates)
    at = math.log10(b_per_s / a_per_s)
    low, high = interval(drawn[1] - drawn[0], at)
    runs = min(len(a), len(b))
    if runs >= MIN_RUNS:
        single = [np.log10([max(float(run.mean()), 1e-9) for run in side]) for side in (a, b)]
        near, far = welch(single[0], single[1])
        low, high = min(low, near), max(high, far)
    # A higher rate is faster, a higher latency slower.
    finding = _finding(-high, -low, runs)
    return RateDifference(a_per_s, b_per_s, 10**at - 1, 10**low - 1, 10**high - 1, finding, runs)


def runs_to_decide(one: Difference | RateDifference, limit: float = 0.0) -> int | None:
    """Runs per side after which the interval would no longer have `limit` in it; None if more than `MAX_RUNS`.

    This assumes that the change stays as it is, and that the interval narrows as that of means of independent values.
    """
    from scipy.special import stdtrit

    def reach(runs: int) -> float:
        return float(stdtrit(2 * runs - 2, (1 + CONFIDENCE) / 2)) / math.sqrt(runs)

    at, low, high, edge = (math.log1p(max(value, -0.999999)) for value in (one.change, one.low, one.high, limit))
    now, distance = (high - at, edge - at) if edge > at else (at - low, at - edge)
    runs = max(one.runs, MIN_RUNS)
    needed = (more for more in range(runs + 1, MAX_RUNS + 1) if now * reach(more) / reach(runs) < distance)
    return next(needed, None)


def resampled(generator: np.random.Generator) -> NDArray[np.float64]:
    """How often each block is drawn: sequences begin at any block, and wrap around after the last one."""
    begins = generator.multinomial(BLOCKS // SEQUENCE, np.full(BLOCKS, 1 / BLOCKS), DRAWS)
    drawn: NDArray[np.float64] = np.sum([np.roll(begins, shift, axis=1) for shift in range(SEQUENCE)], axis=0) * 1.0
    return drawn


def _side(
    counts: list[NDArray[np.float64]], runs: list[Blocks], weights: NDArray[np.float64], shares: Sequence[float]
) -> NDArray[np.float64]:
    """For each row of block weights: the decimal logarithm of each metric of the pooled runs."""
    together = weights @ np.sum(counts, axis=0)
    total = weights @ np.sum([run.total_ns for run in runs], axis=0)
    number = np.maximum(together.sum(axis=1), 1e-9)
    mean = np.log10(np.maximum(total / number, 1.0))
    return np.column_stack([quantiles(together, list(shares)), mean])


def interval(drawn: NDArray[np.float64], at: float) -> tuple[float, float]:
    """The interval between the quantiles of the resampled values, widened because there are few blocks."""
    low, high = (float(value) for value in np.quantile(drawn, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2]))
    from scipy.special import ndtri, stdtrit

    # The ratio of Student's quantile to the normal quantile.
    factor = float(stdtrit(BLOCKS // SEQUENCE - 1, (1 + CONFIDENCE) / 2) / ndtri((1 + CONFIDENCE) / 2))
    return at - (at - low) * factor, at + (high - at) * factor


def welch(a: NDArray[np.float64], b: NDArray[np.float64]) -> tuple[float, float]:
    """Welch's interval of the difference b − a of two means of few independent values."""
    from scipy.special import stdtrit

    parts = [float(side.var(ddof=1)) / len(side) for side in (a, b)]
    error = math.sqrt(sum(parts))
    at = float(b.mean() - a.mean())
    if error == 0:
        return at, at
    freedom = sum(parts) ** 2 / sum(part**2 / (len(side) - 1) for part, side in zip(parts, (a, b), strict=True))
    reach = error * float(stdtrit(freedom, (1 + CONFIDENCE) / 2))
    return at - reach, at + reach


def _finding(low: float, high: float, runs: int) -> Finding:
    if runs < MIN_RUNS:
        return Finding.TOO_FEW_RUNS
    if low > 0:
        return Finding.SLOWER
    return Finding.FASTER if high < 0 else Finding.NONE
