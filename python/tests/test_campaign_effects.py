"""Factors of a campaign, and their effects with intervals, on made-up metrics."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from campaign_designs import CMODES, EFFECT, places
from numpy.typing import NDArray

from iosonar.campaign.report.effects import MetricAnalysis, analyse, holm
from iosonar.campaign.report.factors import Factor, Place, factors_of
from iosonar.campaign.report.figures import MAX_NAME, short_path, value_axis
from iosonar.errors import UsageError
from iosonar.figures.model import Scale, Unit

Array = NDArray[np.float64]


def metrics(
    of: Sequence[Place], random: np.random.Generator, effect: float = EFFECT, noise: float = 0.05
) -> dict[str, Array]:
    """Latencies with a known effect; the metrics of a leaf vary together in part, as percentiles do."""
    true = np.array([math.log(2e-3) + (place.path[2] == CMODES[1]) * math.log1p(effect) for place in of])
    shared = random.normal(0, noise, len(of))
    return {
        name: np.exp(true + offset + weight * shared + random.normal(0, noise / 2, len(of)))
        for name, offset, weight in (("p50", 0.0, 0.5), ("p95", 1.1, 0.8), ("p99", 1.8, 1.0))
    }


def coverage(of: Sequence[Place], effect: float, campaigns: int = 200) -> tuple[float, float]:
    """The share of intervals that contain the true effect, and the share of campaigns with a false claim."""
    random = np.random.default_rng(7)
    factors = factors_of(of).all
    covered = intervals = alarms = 0
    for _ in range(campaigns):
        alarm = False
        for each in analyse(metrics(of, random, effect), factors):
            for found in each.effects:
                true = effect if found.factor == "cmode" else 0.0
                covered += found.low <= true <= found.high
                intervals += 1
                alarm |= found.claimed and not true
        alarms += alarm
    return covered / intervals, alarms / campaigns


@pytest.mark.parametrize("effect", [0.0, EFFECT])
@pytest.mark.parametrize("repeats", [1, 2])
def test_intervals_contain_the_true_effect_in_95_percent(effect: float, repeats: int) -> None:
    covered, alarms = coverage(places(repeats=repeats), effect)
    # Three standard errors of 200 campaigns: the metrics of a campaign are not independent.
    assert 0.92 <= covered <= 0.98
    assert alarms <= 0.10


def test_unbalanced_designs_have_right_intervals() -> None:
    random = np.random.default_rng(3)
    kept = [place for place in places() if random.random() < 0.7]
    covered, alarms = coverage(kept, EFFECT)
    assert 0.92 <= covered <= 0.98
    assert alarms <= 0.10


def found(each: Sequence[MetricAnalysis], metric: str, factor: str) -> Any:
    return next(e for one in each if one.metric == metric for e in one.effects if e.factor == factor)


def test_shortened_names_of_leaves_remain_different() -> None:
    names = {"/".join(place.path) for place in places()}
    found = {short_path(name) for name in names}
    assert len(found) == len(names) and all(len(name) <= MAX_NAME for name in found), found
    assert short_path("a/b") == "a/b" and len(short_path("x" * 999)) <= MAX_NAME
    assert len(short_path("/".join(["abcdef"] * 99))) <= MAX_NAME


def test_an_outlier_does_not_flatten_the_axis_of_effects() -> None:
    def scale(*values: float) -> Scale:
        axis = value_axis("p99", Unit.SECONDS, np.array([*values, math.nan]), float(np.median(values)))
        assert axis.low <= min(values) and max(values) <= axis.high
        return axis.scale

    assert scale(1e-3, 1.1e-3, 1.2e-3, 9e-3) is Scale.LOG
    assert scale(1e-3, 1.1e-3, 1.2e-3, 3e-3) is Scale.LINEAR
    assert scale(0.0, 1e-3, 9e-3) is Scale.LINEAR


def test_the_factor_that_matters_is_claimed_with_its_size() -> None:
    of = places()
    each = analyse(metrics(of, np.random.default_rng(1)), factors_of(of).all)
    effect = found(each, "p99", "cmode")
    assert effect.claimed
    assert (effect.from_level, effect.to_level) == CMODES
    assert effect.low < EFFECT < effect.high
    assert effect.high - effect.low < 0.2
    for name in ("threads", "input_file_list"):
        assert not found(each, "p99", name).claimed
        assert found(each, "p99", name).at_most < 0.2


def test_without_residual_degrees_of_freedom_nothing_is_claimed() -> None:
    of = places(loads=1, threads=(16, 64), repeats=1)[:3]
    each = analyse(metrics(of, np.random.default_rng(1)), factors_of(of).all)
    assert all(one.freedom == 0 for one in each)
    assert not any(effect.claimed for one in each for effect in one.effects)


def test_a_large_interaction_is_named() -> None:
    of = places(repeats=3)
    random = np.random.default_rng(1)
    y = np.array([math.log(1e-3) + 0.6 * (p.path[2] == CMODES[1] and p.path[1] == "256-threads") for p in of])
    (each,) = analyse({"p99": np.exp(y + random.normal(0, 0.03, len(of)))}, factors_of(of).all)
    (interaction,) = each.interactions
    assert set(interaction.factors) == {"threads", "cmode"}
    assert max(map(abs, interaction.changes)) == pytest.approx(math.expm1(0.6), abs=0.1)


def test_effects_are_known_though_a_combination_is_missing() -> None:
    of = [place for place in places(repeats=3) if place.path[1:3] != ("064-threads", CMODES[0])]
    random = np.random.default_rng(1)
    y = np.array([math.log(1e-3) + 0.6 * (p.path[2] == CMODES[1] and p.path[1] == "256-threads") for p in of])
    (each,) = analyse({"p99": np.exp(y + random.normal(0, 0.03, len(of)))}, factors_of(of).all)
    assert each.interactions
    assert all(math.isfinite(effect.change) for effect in each.effects)


def test_random_noise_has_no_interaction_in_most_campaigns() -> None:
    of, random = places(), np.random.default_rng(5)
    factors = factors_of(of).all
    named = sum(any(each.interactions for each in analyse(metrics(of, random), factors)) for _ in range(100))
    assert named <= 12


def test_holm_corrects_as_in_the_textbook() -> None:
    assert holm([0.01, 0.04, math.nan, 0.03]) == pytest.approx([0.03, 0.06, math.nan, 0.06], nan_ok=True)


def test_a_drift_in_time_explains_more_than_a_factor() -> None:
    of, random = places(), np.random.default_rng(2)
    started: Array = np.arange(len(of), dtype=np.float64) * 60.0
    drift = np.exp(math.log(1e-3) + 0.5 * started / started[-1] + random.normal(0, 0.01, len(of)))
    (each,) = analyse({"p99": drift}, factors_of(of).all, started)
    # The first level of the tree changed only once, so it takes the drift as its own effect.
    assert found([each], "p99", "input_file_list").time_explains_more
    # The factors explain nearly all of the order, so the size of a trend is unknown.
    assert each.trend is None
    (each,) = analyse({"p99": random.permutation(drift)}, factors_of(of).all, started)
    assert each.trend is None
    order = random.permutation(len(of))
    (each,) = analyse({"p99": drift[order]}, factors_of(of).all, started[order])
    assert each.trend is not None
    assert each.trend.claimed
    assert each.trend.change == pytest.approx(math.expm1(0.5), abs=0.1)
    step = np.where(np.array([p.path[0] == "load1" for p in of]), 1.5, 1.0) * 1e-3
    (each,) = analyse({"p99": step * np.exp(random.normal(0, 0.01, len(of)))}, factors_of(of).all, started)
    assert not found([each], "p99", "input_file_list").time_explains_more


# Factors


def test_levels_are_named_by_the_variable_that_varies_with_them() -> None:
    names = [factor.name for factor in factors_of(places()).all]
    assert names == ["input_file_list", "threads", "cmode"]


def test_a_level_of_several_variables_is_named_by_its_number() -> None:
    of = [Place((a, b), {"x": a, "y": a}) for a in ("p", "q") for b in ("r", "s")]
    assert [factor.name for factor in factors_of(of).all] == ["directory level 1 (p, q)", "directory level 2 (r, s)"]


def test_a_level_of_one_module_is_named_by_the_module() -> None:
    def place(name: str, enable: str, factor: str) -> Place:
        pipe = f"| iosonar edit --spread {factor}" if enable == "1" else ""
        return Place((name,), {"enable_pipe_spread": enable, "pipe_spread_factor": factor, "input_pipe_list": pipe})

    of = [place("near", "0", "2.0"), place("far", "1", "2.0"), place("farther", "1", "8.0")]
    assert [(factor.name, factor.levels) for factor in factors_of(of).all] == [
        ("pipe_spread", ("far", "farther", "near"))
    ]
    assert [factor.name for factor in factors_of(of[:2]).all] == ["enable_pipe_spread"]


def test_a_variable_that_only_one_level_sets_names_it() -> None:
    of = [Place(("as-is",), {"x": "1"}), Place(("dense",), {"x": "1", "replay_options": "--edit dense"})]
    assert [(factor.name, factor.levels) for factor in factors_of(of).all] == [("replay_options", ("as-is", "dense"))]


def test_of_several_variables_the_one_in_the_name_counts() -> None:
    of = [Place((f"{n:03}-threads",), {"threads": str(n), "bottleneck": str(n)}) for n in (4, 16)]
    assert [(factor.name, factor.levels) for factor in factors_of(of).all] == [("threads", ("4", "16"))]


def test_variables_that_follow_from_the_path_name_no_level() -> None:
    of = [Place((f"{n}",), {"threads": n, "sub_prefix": f".{n}", "output_label": n}) for n in ("4", "16")]
    assert [factor.name for factor in factors_of(of).all] == ["threads"]


def test_names_of_directories_replace_long_values() -> None:
    of = [Place((name,), {"input_file_list": f"/usr/share/iosonar/{name}.load.gz"}) for name in ("steady", "bursts")]
    assert [(factor.name, factor.levels) for factor in factors_of(of).all] == [
        ("input_file_list", ("bursts", "steady"))
    ]


def test_repeats_are_no_factor() -> None:
    of = [Place((f"{kind}-{n}",), {}) for kind in ("repeat", "run") for n in (1, 2)]
    assert factors_of(of).all == ()


def test_factors_that_vary_together_are_one() -> None:
    of = [Place((a, b), {}) for a, b in (("short", "016"), ("long", "032")) for _ in range(2)]
    (factor,) = factors_of(of).all
    assert factor.together_with == ("directory level 2 (016, 032)",)


def test_by_chooses_factors_and_the_others_are_adjusted_for() -> None:
    factors = factors_of(places(), ["cmode", "2"])
    assert [factor.name for factor in factors.reported] == ["cmode", "threads"]
    assert [factor.name for factor in factors.adjusted] == ["input_file_list"]
    with pytest.raises(UsageError, match="no level of the tree and no variable"):
        factors_of(places(), ["nothing"])
    with pytest.raises(UsageError, match="same value in all leaves"):
        factors_of(places(), ["strong"])


def test_levels_are_sorted_by_number() -> None:
    factor = next(factor for factor in factors_of(places()).all if factor.name == "threads")
    assert factor.levels == ("16", "64", "256")
    assert isinstance(factor, Factor)
