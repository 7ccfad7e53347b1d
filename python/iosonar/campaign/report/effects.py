"""How much each factor changes a metric: least squares on the logarithm, with t intervals from the residuals.

The unit is the leaf: requests and devices within a leaf are not independent. The model is additive on the logarithm, so
effects are ratios. An interaction of two factors is added if it is significant. The effect of a factor is the ratio of
the marginal means of two of its levels, averaged with equal weights over the levels of all other factors, so it also
holds for unbalanced designs. The reported pair is the one that differs most; for more than two levels its interval is
widened for that choice by the studentized range (Tukey and Kramer).

Claims are corrected by Holm's method for the number of factors and metrics, so that in a campaign in which nothing
matters, a claim is false in about one of twenty reports.

Sources: Searle, Speed and Milliken, Population marginal means in the linear model (1980); Holm, A simple sequentially
rejective multiple test procedure (1979); Kramer, Extension of multiple range tests to group means with unequal numbers
of replications (1956).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from iosonar.campaign.report.factors import Factor

CONFIDENCE = 0.95
LEVEL = 1 - CONFIDENCE

MIN_CHANGE = 0.01
"""A smaller change is not claimed, however sure it is."""

MIN_RESIDUAL = 1e-4
"""The least standard deviation of the logarithm: quantiles have a resolution of a thousandth."""

MIN_SEPARATE = 0.2
"""The least share of the variance of time that the factors leave: with less, a trend cannot be separated from them."""

MIN_FREEDOM = 4
"""The fewest residual degrees of freedom beside an interaction: with fewer, choosing one makes intervals too narrow."""

CHANCE = 4.0
"""A sum of squares that exceeds another by this many variances of the residuals does so hardly by chance."""

TINY = 1e-9

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Effect:
    """The effect of a factor on a metric: the change from level `low_level` to `high_level` (0.1: 10 % higher)."""

    factor: str
    metric: str
    from_level: str
    to_level: str
    change: float
    low: float
    """The interval of the change."""
    high: float
    p: float
    """The p value of the hypothesis that no level differs."""
    p_holm: float = math.nan
    """The same, corrected for all factors and metrics."""
    time_explains_more: bool = False
    """Whether the order of the leaves in time explains the metric better than the factor does."""

    mixed: bool = False
    """Whether different options of the replays may explain the change."""

    @property
    def claimed(self) -> bool:
        """Whether a difference is claimed."""
        return not self.mixed and self.p_holm < LEVEL and abs(self.change) >= MIN_CHANGE

    @property
    def at_most(self) -> float:
        """The largest change that the interval allows, in either direction."""
        return max(abs(self.low), abs(self.high))


@dataclass(frozen=True)
class Interaction:
    """Two factors whose effects depend on each other: the effect of one at two levels of the other."""

    factors: tuple[str, str]
    metric: str
    p: float
    p_holm: float
    levels: tuple[str, str]
    """Two levels of the second factor between which the effect of the first differs most."""
    changes: tuple[float, float]
    """The change by the first factor at these levels."""
    of: tuple[str, str]
    """The levels of the first factor from which and to which these changes are."""


@dataclass(frozen=True)
class Means:
    """The marginal mean of a metric at each level of a factor, with its interval, in the unit of the metric."""

    factor: str
    levels: tuple[str, ...]
    mean: Array
    low: Array
    high: Array


@dataclass(frozen=True)
class Trend:
    """The change of a metric from the first leaf to the last in time, beyond what the factors explain."""

    metric: str
    change: float
    p: float
    p_holm: float = math.nan

    @property
    def claimed(self) -> bool:
        """Whether a drift is claimed."""
        return self.p_holm < LEVEL and abs(self.change) >= MIN_CHANGE


@dataclass(frozen=True)
class MetricAnalysis:
    """One metric over all leaves that have it."""

    metric: str
    leaves: int
    freedom: int
    """The residual degrees of freedom; 0: too few leaves to say anything."""
    residual: float
    """The standard deviation of the residuals, as a share (0.1: leaves of equal levels differ by about 10 %)."""
    effects: tuple[Effect, ...]
    interactions: tuple[Interaction, ...]
    means: tuple[Means, ...]
    trend: Trend | None


def analyse(
    metrics: Mapping[str, Array],
    factors: Sequence[Factor],
    started: Array | None = None,
    reported: Sequence[str] | None = None,
    least: Mapping[str, float] | None = None,
) -> list[MetricAnalysis]:
    """Analyses each metric: values of all leaves, NaN where a leaf has none.

    `least` has the least value of a metric that the model tells apart from 0: smaller ones count as this. Without one,
    leaves with a value of 0 are left out.

    `started` is the time at which each leaf started, NaN where it is unknown. `reported` are the titles of the factors
    to report; the others are adjusted for.
    """
    floors = least or {}
    found = [
        _analyse(metric, np.maximum(values, floors.get(metric, 0.0)), factors, started, len(metrics))
        for metric, values in metrics.items()
    ]
    if reported is not None:
        found = [
            replace(
                each,
                effects=tuple(effect for effect in each.effects if effect.factor in reported),
                means=tuple(mean for mean in each.means if mean.factor in reported),
            )
            for each in found
        ]
    return _corrected(found)


def holm(p_values: Sequence[float]) -> list[float]:
    """Corrected p values. NaN stays NaN and does not count."""
    known = [index for index, p in enumerate(p_values) if not math.isnan(p)]
    result = [math.nan] * len(p_values)
    highest = 0.0
    for rank, index in enumerate(sorted(known, key=lambda index: p_values[index])):
        highest = max(highest, min(p_values[index] * (len(known) - rank), 1.0))
        result[index] = highest
    return result


def _corrected(found: Sequence[MetricAnalysis]) -> list[MetricAnalysis]:
    effects = iter(holm([effect.p for each in found for effect in each.effects]))
    trends = iter(holm([each.trend.p if each.trend else math.nan for each in found]))
    return [
        replace(
            each,
            effects=tuple(replace(effect, p_holm=next(effects)) for effect in each.effects),
            trend=_corrected_trend(each.trend, next(trends)),
        )
        for each in found
    ]


def _corrected_trend(trend: Trend | None, p_holm: float) -> Trend | None:
    return replace(trend, p_holm=p_holm) if trend else None


class _Fit:
    """A least-squares fit with indicator columns; the model may have more columns than its rank."""

    def __init__(self, terms: Sequence[Array], y: Array) -> None:
        self.design = np.column_stack([np.ones(len(y)), *terms]) if terms else np.ones((len(y), 1))
        u, singular, vt = np.linalg.svd(self.design, full_matrices=False)
        kept = singular > singular[0] * TINY
        self.rank = int(kept.sum())
        self._v = vt[kept].T
        self._inverse = self._v / singular[kept]
        self.coefficients: Array = self._inverse @ (u[:, kept].T @ y)
        residuals = y - self.design @ self.coefficients
        self.squares = float(residuals @ residuals)
        self.freedom = len(y) - self.rank

    @property
    def variance(self) -> float:
        """The variance of the residuals."""
        return max(self.squares / self.freedom, MIN_RESIDUAL**2) if self.freedom else math.nan

    def estimate(self, row: Array) -> tuple[float, float]:
        """A linear combination of the coefficients and its standard error; NaN if the data does not determine it."""
        inside = self._v.T @ row
        if float(np.abs(self._v @ inside - row).max()) > 1e-6:
            return math.nan, math.nan
        spread = self._inverse.T @ row
        return float(row @ self.coefficients), math.sqrt(float(spread @ spread) * self.variance)


def _indicators(factor: Factor) -> Array:
    return np.eye(len(factor.levels))[list(factor.of)]


def _crossed(one: Array, other: Array) -> Array:
    crossed: Array = np.einsum("ni,nj->nij", one, other).reshape(len(one), -1)
    return crossed


def _analyse(
    metric: str, values: Array, factors: Sequence[Factor], started: Array | None, metrics: int
) -> MetricAnalysis:
    leaves = np.flatnonzero(np.isfinite(values) & (values > 0))
    y: Array = np.log(values[leaves])
    kept = [each for factor in factors if len((each := factor.only(list(leaves))).levels) > 1]
    if len(leaves) < 2 or not kept:
        return MetricAnalysis(metric, len(leaves), 0, math.nan, (), (), (), None)
    terms = {factor.title: _indicators(factor) for factor in kept}
    additive = _Fit(list(terms.values()), y)
    interactions, pairs = _interactions(metric, kept, terms, y, additive, metrics) if additive.freedom else ((), [])
    crossed = [_crossed(terms[one.title], terms[other.title]) for one, other in pairs]
    fit = _Fit([*terms.values(), *crossed], y) if pairs else additive
    order = _order(started, leaves)
    model = _Model(kept, pairs, fit)
    if pairs and not model.determines_all():
        # With a missing combination of levels, no mean over all of them exists.
        pairs, crossed, fit = [], [], additive
        model = _Model(kept, pairs, fit)
    effects = tuple(_effect(metric, factor, model, terms, crossed, y, order) for factor in kept)
    trend = None if order is None else _trend(metric, [*terms.values(), *crossed], y, order)
    residual = math.expm1(math.sqrt(fit.variance)) if fit.freedom else math.nan
    means = tuple(model.means(factor) for factor in kept)
    return MetricAnalysis(metric, len(leaves), fit.freedom, residual, effects, interactions, means, trend)


@dataclass(frozen=True)
class _Model:
    factors: Sequence[Factor]
    pairs: Sequence[tuple[Factor, Factor]]
    fit: _Fit

    def row(self, fixed: Mapping[str, int]) -> Array:
        """The row of a marginal mean: some factors at a level, equal weights of the levels of the others."""
        weights = {
            factor.title: np.eye(len(factor.levels))[fixed[factor.title]]
            if factor.title in fixed
            else np.full(len(factor.levels), 1 / len(factor.levels))
            for factor in self.factors
        }
        crossed = [np.outer(weights[one.title], weights[other.title]).ravel() for one, other in self.pairs]
        return np.concatenate([[1.0], *weights.values(), *crossed])

    def determines_all(self) -> bool:
        """Whether the data determines the marginal mean of every level."""
        rows = [self.row({factor.title: level}) for factor in self.factors for level in range(len(factor.levels))]
        return not any(math.isnan(self.fit.estimate(row)[0]) for row in rows)

    def means(self, factor: Factor) -> Means:
        found = np.array([self.fit.estimate(self.row({factor.title: level})) for level in range(len(factor.levels))])
        reach = found[:, 1] * student(self.fit.freedom) if self.fit.freedom else np.full(len(found), math.nan)
        mean = found[:, 0]
        return Means(factor.title, factor.levels, np.exp(mean), np.exp(mean - reach), np.exp(mean + reach))


def _effect(
    metric: str,
    factor: Factor,
    model: _Model,
    terms: Mapping[str, Array],
    crossed: Sequence[Array],
    y: Array,
    order: Array | None,
) -> Effect:
    fit, count = model.fit, len(factor.levels)
    rows = [model.row({factor.title: level}) for level in range(count)]
    found = [(one, other, *fit.estimate(rows[other] - rows[one])) for one, other in combinations(range(count), 2)]
    known = [each for each in found if not math.isnan(each[2])]
    nothing = Effect(factor.title, metric, factor.levels[0], factor.levels[-1], math.nan, math.nan, math.nan, math.nan)
    if not known:
        return nothing
    one, other, change, error = max(known, key=lambda each: abs(each[2]))
    effect = replace(nothing, from_level=factor.levels[one], to_level=factor.levels[other], change=math.expm1(change))
    if not fit.freedom:
        return effect
    reach = error * (student(fit.freedom) if count == 2 else studentized(count, fit.freedom) / math.sqrt(2))
    # Without the interactions of this factor, so that its own sum of squares is that of the main effect.
    others = [columns for title, columns in terms.items() if title != factor.title]
    without = _Fit(others, y)
    additive = _Fit(list(terms.values()), y)
    p = _f_test(without.squares - additive.squares, additive.rank - without.rank, fit)
    time_explains_more = False
    if order is not None and additive.rank > without.rank:
        timed = _Fit([*others, order[:, None]], y)
        own = without.squares - additive.squares
        if timed.rank > without.rank and timed.freedom:
            # By more than chance would.
            time_explains_more = without.squares - timed.squares > own + CHANCE * timed.variance
    return replace(
        effect,
        low=math.expm1(change - reach),
        high=math.expm1(change + reach),
        p=p,
        time_explains_more=time_explains_more,
    )


def _interactions(
    metric: str, factors: Sequence[Factor], terms: Mapping[str, Array], y: Array, additive: _Fit, metrics: int
) -> tuple[tuple[Interaction, ...], list[tuple[Factor, Factor]]]:
    """The significant interactions, corrected for the number of pairs and metrics, if degrees of freedom remain."""
    tested = []
    for one, other in combinations(factors, 2):
        fit = _Fit([*terms.values(), _crossed(terms[one.title], terms[other.title])], y)
        if fit.rank > additive.rank and fit.freedom >= MIN_FREEDOM:
            p = _f_test(additive.squares - fit.squares, fit.rank - additive.rank, fit)
            tested.append((one, other, fit, p))
    corrected = [min(p * metrics, 1.0) for p in holm([p for *_, p in tested])]
    found, pairs = [], []
    for (one, other, fit, p), p_holm in zip(tested, corrected, strict=True):
        named = _largest(metric, one, other, _Model(factors, [(one, other)], fit), p, p_holm)
        if named and p_holm < LEVEL and abs(named.changes[1] - named.changes[0]) >= MIN_CHANGE:
            found.append(named)
            pairs.append((one, other))
    if pairs and _Fit([*terms.values(), *(_crossed(terms[a.title], terms[b.title]) for a, b in pairs)], y).freedom < 1:
        return tuple(found), []
    return tuple(found), pairs


def _largest(metric: str, one: Factor, other: Factor, model: _Model, p: float, p_holm: float) -> Interaction | None:
    """The levels between which the effect of a factor differs most."""
    cells = np.array(
        [
            [model.fit.estimate(model.row({one.title: a, other.title: b}))[0] for b in range(len(other.levels))]
            for a in range(len(one.levels))
        ]
    )
    found = [
        (abs((cells[a2, b2] - cells[a1, b2]) - (cells[a2, b1] - cells[a1, b1])), a1, a2, b1, b2)
        for a1, a2 in combinations(range(len(one.levels)), 2)
        for b1, b2 in combinations(range(len(other.levels)), 2)
    ]
    known = [each for each in found if not math.isnan(each[0])]
    if not known:
        return None
    _, a1, a2, b1, b2 = max(known)
    return Interaction(
        (one.title, other.title),
        metric,
        p,
        p_holm,
        (other.levels[b1], other.levels[b2]),
        (math.expm1(cells[a2, b1] - cells[a1, b1]), math.expm1(cells[a2, b2] - cells[a1, b2])),
        (one.levels[a1], one.levels[a2]),
    )


def _order(started: Array | None, leaves: NDArray[np.int64]) -> Array | None:
    """The place of each leaf in time, from 0 to 1; None if it is unknown for one of them."""
    if started is None or len(leaves) < 3 or not np.isfinite(started[leaves]).all():
        return None
    places = np.argsort(np.argsort(started[leaves], kind="stable"), kind="stable")
    order: Array = places / (len(leaves) - 1)
    return order


def _trend(metric: str, terms: Sequence[Array], y: Array, order: Array) -> Trend | None:
    fit, without = _Fit([*terms, order[:, None]], y), _Fit(terms, y)
    spread = float(((order - order.mean()) ** 2).sum())
    if fit.rank == without.rank or not fit.freedom or _Fit(terms, order).squares < MIN_SEPARATE * spread:
        return None
    row = np.zeros(fit.design.shape[1])
    row[-1] = 1.0
    change, _ = fit.estimate(row)
    return Trend(metric, math.expm1(change), _f_test(without.squares - fit.squares, 1, fit))


def _f_test(squares: float, degrees: int, fit: _Fit) -> float:
    """The p value of the sum of squares of a term."""
    from scipy.special import fdtrc

    if not fit.freedom or degrees < 1:
        return math.nan
    return float(fdtrc(degrees, fit.freedom, max(squares, 0.0) / degrees / fit.variance))


def student(freedom: int) -> float:
    """Student's quantile for a two-sided interval."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, (1 + CONFIDENCE) / 2))


@cache
def studentized(levels: int, freedom: int) -> float:
    """The quantile of the studentized range."""
    from scipy.stats import studentized_range

    return float(studentized_range.ppf(CONFIDENCE, levels, freedom))
