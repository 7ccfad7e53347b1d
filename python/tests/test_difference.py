"""Intervals of comparisons, by simulation: they contain the true value as often as their confidence."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import OpenRun
from factory import S, run_row
from numpy.typing import NDArray

from iosonar.quantities.blocks import BLOCKS, Blocks, of_values, quantiles
from iosonar.quantities.blocks import rates as block_rates
from iosonar.quantities.difference import (
    Difference,
    Finding,
    Pairing,
    differences,
    rate_difference,
    runs_to_decide,
    welch,
)

REQUESTS = 6000


def phases(generator: np.random.Generator) -> NDArray[np.float64]:
    """Logarithms with phases: an autoregressive process with a memory of 20 requests."""
    noise = generator.normal(0, 0.3, REQUESTS)
    level = np.empty(REQUESTS)
    level[0] = noise[0]
    for i in range(1, REQUESTS):
        level[i] = 0.95 * level[i - 1] + noise[i] * np.sqrt(1 - 0.95**2)
    return level


def run(
    generator: np.random.Generator, slower: float = 1.0, between: float = 0.0, load: float | NDArray[np.float64] = 0.0
) -> Blocks:
    """A run with latencies around 100 µs; `between` is the variation between runs, `load` that of the load."""
    latency = 1e5 * slower * np.exp(phases(generator) + load + generator.normal(0, between))
    return of_values(np.arange(REQUESTS) * BLOCKS // REQUESTS, latency)


def of(found: list[Difference], metric: str) -> Difference:
    return next(each for each in found if each.metric == metric)


def test_the_number_of_runs_that_would_decide_follows_the_width() -> None:
    def needed(change: float, low: float, high: float, limit: float = 0.1) -> int | None:
        return runs_to_decide(Difference("p99", 1e5, 1e5, change, low, high, Finding.NONE, 3), limit)

    assert needed(0.30, 0.05, 0.60) == 4
    assert needed(0.30, -0.20, 1.10) == 14
    assert needed(-0.333, -0.886, 1.753) == 14
    assert needed(0.096, -0.721, 2.897) is None
    # On both sides of the limit.
    assert needed(0.0, -0.3, 0.4) == needed(0.21, -0.1358, 0.7286) == 20


def test_quantiles_are_those_of_the_sorted_values() -> None:
    values = np.random.default_rng(1).lognormal(11, 1, 5000)
    made = of_values(np.zeros(5000, np.int64), values)
    found = 10 ** (quantiles(made.counts.sum(0)[None, :], [0.5, 0.99])[0] + made.first / 1000)
    assert found == pytest.approx(np.quantile(values, [0.5, 0.99]), rel=0.003)


def test_a_single_pair_of_runs_covers_the_truth() -> None:
    generator = np.random.default_rng(2)
    hits = {"p50": 0, "p99": 0, "mean": 0}
    rounds = 200
    for seed in range(rounds):
        found = differences([run(generator)], [run(generator, 1.1)], Pairing.UNPAIRED, seed)
        for metric in hits:
            each = of(found, metric)
            hits[metric] += each.low <= 0.1 <= each.high
            assert each.finding is Finding.TOO_FEW_RUNS
    assert all(0.90 <= number / rounds <= 0.99 for number in hits.values()), hits


def test_three_runs_per_side_cover_the_truth_though_runs_vary() -> None:
    generator = np.random.default_rng(3)
    rounds, hits, claimed = 200, 0, 0
    for seed in range(rounds):
        a, b = ([run(generator, between=0.1) for _ in range(3)] for _ in range(2))
        each = of(differences(a, b, Pairing.UNPAIRED, seed), "p50")
        hits += each.low <= 0 <= each.high
        claimed += each.finding in (Finding.SLOWER, Finding.FASTER)
    assert 0.93 <= hits / rounds <= 1
    assert claimed / rounds <= 0.07, "differences are claimed where there are none"


def test_a_clear_difference_is_found() -> None:
    generator = np.random.default_rng(4)
    a, b = ([run(generator, slower, 0.01) for _ in range(3)] for slower in (1.0, 1.5))
    assert of(differences(a, b, Pairing.UNPAIRED), "p50").finding is Finding.SLOWER
    assert of(differences(b, a, Pairing.UNPAIRED), "p50").finding is Finding.FASTER


def test_pairing_removes_the_variation_of_the_load() -> None:
    generator = np.random.default_rng(5)
    load = np.repeat(generator.normal(0, 0.5, BLOCKS), REQUESTS // BLOCKS)
    a, b = run(generator, load=load), run(generator, 1.1, load=load)
    widths = [of(differences([a], [b], pairing), "mean") for pairing in (Pairing.PAIRED, Pairing.UNPAIRED)]
    assert widths[0].high - widths[0].low < 0.6 * (widths[1].high - widths[1].low)


def test_a_quantile_without_requests_beyond_it_is_left_out() -> None:
    few = of_values(np.arange(100) % BLOCKS, np.full(100, 1e5))
    assert {each.metric for each in differences([few], [few], Pairing.UNPAIRED)} == {"p50", "p90", "mean"}


def rates(generator: np.random.Generator, level: float) -> NDArray[np.float64]:
    return level * np.exp(generator.normal(0, 0.1, BLOCKS))


def test_a_claim_about_throughput_needs_three_runs() -> None:
    generator = np.random.default_rng(6)
    a, b = ([rates(generator, level) for _ in range(3)] for level in (1000, 800))
    found = rate_difference(a, b, Pairing.UNPAIRED)
    assert found is not None and found.finding is Finding.SLOWER
    assert found.low <= -0.2 <= found.high and found.high < 0
    swapped = rate_difference(b, a, Pairing.UNPAIRED)
    assert swapped is not None and swapped.finding is Finding.FASTER
    single = rate_difference(a[:1], b[:1], Pairing.UNPAIRED)
    assert single is not None and single.finding is Finding.TOO_FEW_RUNS
    same = rate_difference(a, a, Pairing.PAIRED)
    assert same is not None and (same.change, same.finding) == (0, Finding.NONE)
    assert rate_difference(a, [np.zeros(BLOCKS)], Pairing.PAIRED) is None


def test_rates_of_blocks_are_those_of_the_runs_own_time(open_run: OpenRun) -> None:
    # 120 requests in 60 s, the last completes at 60 s: a block is a second.
    rows = [run_row(number, scheduled=number * S // 2, latency=S // 2) for number in range(120)]
    with open_run([*rows, run_row(120, latency=None)]) as requests:
        found = block_rates(requests.table)
    # A completion at the end of a block belongs to the next one; the last completion to the last block.
    assert found.tolist() == [1, *[2] * 58, 3]


def test_welch_agrees_with_scipy() -> None:
    from scipy import stats

    a, b = np.array([1.0, 2.0, 4.0]), np.array([3.0, 3.5, 6.0, 5.0])
    theirs = stats.ttest_ind(b, a, equal_var=False).confidence_interval(0.95)
    assert welch(a, b) == pytest.approx((theirs.low, theirs.high))
