"""Findings: what was planted is found, with its figures, and clean runs have none."""

from pathlib import Path

import pytest
from findings_kit import STEADY, diagnosed, numbers, only, poisson, query, rows_of, simulated

STALLS = f"""{STEADY}
[stall]
every = "2s"
lasts = "180ms"
"""

CACHE = """
servers = 8
[service.exponential]
mean = "5ms"
[read_cache]
size = "64M"
time = "60us"
"""

SLOW = """
servers = 4
[service.exponential]
mean = "5ms"
"""


def test_a_steady_device_has_no_findings(tmp_path: Path) -> None:
    assert numbers(diagnosed(simulated(tmp_path, STEADY, *poisson(1000, "60s")))) == []


@pytest.mark.parametrize("words", [("pareto", "--shape", 1.5), ("uniform",), ("lognormal", "--sigma", 1.5)])
def test_uneven_arrivals_alone_are_no_finding(tmp_path: Path, words: tuple[object, ...]) -> None:
    load = (*words, "--rate", 800, "--duration", "40s", "--size", "4k", "--reads", 0.7, "--span", "4G")
    assert numbers(diagnosed(simulated(tmp_path, STEADY, *load))) == []


def test_stalls_are_found_with_period_and_length(tmp_path: Path) -> None:
    run = simulated(tmp_path, STALLS, *poisson(1000, "60s"))
    found = only(diagnosed(run), "S07")
    assert found.values["period_s"] == pytest.approx(2, rel=1e-3)
    assert found.values["length_s"] == pytest.approx(0.18, rel=0.05)
    assert found.values["first_s"] == pytest.approx(2, abs=0.02)
    assert found.values["stalls"] == 29
    assert found.seen.startswith("Every 2 s, the storage stops for up to 18")
    # The rows are those that were issued in the first half of a stall.
    assert rows_of(found, run) == pytest.approx(29 * 90, rel=0.1)
    low, high = query(
        run, f"SELECT min((issued_ns + 1e6) % 2e9), max((issued_ns + 1e6) % 2e9) FROM run WHERE {filter_of(found)}"
    )[0]
    assert 0 <= low < high < 96e6


def filter_of(found: object) -> str:
    text: str = found.evidence.filter  # type: ignore[attr-defined]
    return text.replace("latency_ns", "completed_ns - issued_ns")


def test_a_threshold_hides_shorter_stalls(tmp_path: Path) -> None:
    run = simulated(tmp_path, STALLS, *poisson(1000, "60s"))
    assert "S07" in numbers(diagnosed(run))
    assert "S07" not in numbers(diagnosed(run, thresholds={"S07": {"length": 0.3}}))


def test_periodic_bursts_of_the_load_are_no_stalls(tmp_path: Path) -> None:
    # Each second 100 requests at once: 100 / 8 × 200 µs is a wait of 3 ms that comes from the load.
    load = (
        "bursts",
        "--growth",
        0,
        "--first",
        100,
        "--duration",
        "60s",
        "--size",
        "4k",
        "--reads",
        0.7,
        "--span",
        "4G",
    )
    assert "S07" not in numbers(diagnosed(simulated(tmp_path, STEADY, *load)))


def test_a_cache_is_found_with_what_it_serves(tmp_path: Path) -> None:
    run = simulated(tmp_path, CACHE, *poisson(600, "300s", "--span", "100M"))
    found = only(diagnosed(run), "S01")
    # 64 of 100 MiB hit, less while the cache is empty.
    assert found.values["share_1"] == pytest.approx(0.61, abs=0.03)
    assert found.values["bytes_1"] == pytest.approx(64 << 20, rel=0.05)
    assert found.values["latency_1_s"] == pytest.approx(60e-6, rel=0.05)


def test_saturation_is_found_with_both_rates(tmp_path: Path) -> None:
    found = only(diagnosed(simulated(tmp_path, SLOW, *poisson(1000, "60s"))), "S03")
    assert found.severity == "bad"
    # 4 servers × 200 requests per second; after a minute, 60 × 1000 / 800 − 60 s are missing at most.
    assert found.values["capacity_per_s"] == pytest.approx(800, rel=0.02)
    assert found.values["demand_per_s"] == pytest.approx(1000, rel=0.02)
    assert found.values["behind_s"] == pytest.approx(60 * 0.2, rel=0.08)


def test_a_device_at_three_quarters_is_not_saturated(tmp_path: Path) -> None:
    assert numbers(diagnosed(simulated(tmp_path, SLOW, *poisson(600, "60s")))) == []
