from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from conftest import OpenRun
from factory import run_row, write_run
from hypothesis import given, settings
from hypothesis import strategies as st

from iosonar.quantities.distribution import Distribution, distributions, pooled
from iosonar.quantities.series import Series
from iosonar.table import open_requests


def nearest_rank(values: list[int], share: float) -> float:
    """The quantile by sorting."""
    ordered = sorted(values)
    return ordered[max(math.ceil(share * len(ordered)), 1) - 1]


def test_quantiles_have_their_known_values(open_run: OpenRun) -> None:
    rows = [run_row(latency=ns) for ns in (10, 20, 30, 40)] + [run_row(latency=7, op="write"), run_row(latency=None)]
    with open_run(rows) as requests:
        found = distributions(requests.table, requests.table.latency_ns)
    reads = found[Series.READ]
    assert (reads.count, reads.mean, reads.minimum, reads.maximum) == (4, 25, 10, 40)
    assert [reads.quantile(share) for share in (0, 0.25, 0.26, 0.5, 1)] == [10, 10, 20, 20, 40]
    assert found[Series.WRITE].count == 1


@settings(max_examples=20)
@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=200), st.floats(0, 1))
def test_quantiles_are_those_of_sorted_values(tmp_path: Path, values: list[int], share: float) -> None:
    path = write_run(tmp_path / "a.parquet", [run_row(latency=value) for value in values])
    with open_requests([path]) as requests:
        found = distributions(requests.table, requests.table.latency_ns)[Series.READ]
    exact = nearest_rank(values, share)
    assert found.quantile(share) == pytest.approx(exact, rel=0.001)
    assert min(values) <= found.quantile(share) <= max(values)
    assert (found.minimum, found.maximum, found.count) == (min(values), max(values), len(values))


def test_no_percentile_exceeds_the_maximum(open_run: OpenRun) -> None:
    # A bin extends from 448.266 to 448.790 ms: its upper end exceeds all values.
    with open_run([run_row(latency=448_570_000)] * 3) as requests:
        found = distributions(requests.table, requests.table.latency_ns)[Series.READ]
    assert [found.quantile(share) for share in (0.5, 0.99, 0.999, 1)] == [448_570_000] * 4


def test_quantiles_are_those_of_the_rust_half(open_run: OpenRun) -> None:
    # The results of hdrhistogram 7 with three digits (`value_at_quantile`).
    values = [0, 1, 2047, 2048, 2049, 4096, 1_000_000, 33_554_431, 33_554_432, 1_000_000_000]
    message = [0, 1, 2047, 2049, 2049, 4099, 1_000_447, 33_554_431, 33_587_199, 1_000_000_000]
    with open_run([run_row(latency=value) for value in values]) as requests:
        found = distributions(requests.table, requests.table.latency_ns)[Series.READ]
    assert [found.quantile(rank / 10) for rank in range(1, 11)] == message


def test_pooling_counts_each_value_once() -> None:
    one = Distribution(np.array([0, 5]), np.array([2, 1]), np.array([1.0, 1.01]), np.array([1.0, 1.01]), 3.01)
    two = Distribution(np.array([5]), np.array([4]), np.array([1.009]), np.array([1.02]), 4.04)
    both = pooled([one, two])
    assert both.count == 7
    assert (both.minima[1], both.maxima[1]) == (1.009, 1.02)
    assert both.mean == pytest.approx(7.05 / 7)


def test_without_values_there_is_no_mean() -> None:
    nothing = pooled([])
    assert nothing.count == 0
    assert math.isnan(nothing.mean) and math.isnan(nothing.quantile(0.5)) and math.isnan(nothing.maximum)
