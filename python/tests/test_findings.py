"""Findings: what was planted is found, with its figures, and clean runs have none."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from binary import iosonar
from factory import LOAD_SCHEMA, MS, S, write_load
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
    load = ("bursts", "--growth", 0.001, "--first", 100, "--duration", "60s")
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


LIMITED = """
servers = 16
[service.lognormal]
median = "400us"
sigma = 0.3
[[limit]]
"""


def test_a_full_write_cache_is_a_cliff_with_its_size(tmp_path: Path) -> None:
    device = f'{STEADY}[write_cache]\nsize = "64M"\ntime = "50us"\ndestage = "2M/s"\n'
    found = diagnosed(simulated(tmp_path, device, *poisson(1500, "60s", "--reads", 0.3)))
    cliff = only(found, "S02")
    # At 1050 writes of 4 KiB per second, 2 MiB/s of them destaged, 64 MiB are full after 30.5 s.
    assert cliff.values["at_s"] == pytest.approx(30.5, rel=0.04)
    assert cliff.values["written"] == pytest.approx(30.5 * 1050 * 4096, rel=0.05)
    assert cliff.values["bytes_per_s"] == pytest.approx(2 << 20, rel=0.05)
    assert not {"S17", "S18", "S05", "S14"} & set(numbers(found))


def test_a_backlog_is_worked_off_after_the_peak(tmp_path: Path) -> None:
    load = ("on-off", "--rate", 1200, "--on", "10s", "--off", "30s", "--phases", "fixed", "--duration", "95s")
    found = only(diagnosed(simulated(tmp_path, SLOW, *load, "--size", "4k", "--span", "4G")), "S04")
    # 10 s × (1200 − 800) requests, at 800 per second.
    assert found.values["behind_s"] == pytest.approx(5, rel=0.1)
    assert found.values["done_per_s"] == pytest.approx(800, rel=0.05)


def test_a_backlog_may_go_at_once_after_a_pause(tmp_path: Path) -> None:
    load = ("on-off", "--rate", 300, "--on", "10s", "--off", "10s", "--phases", "fixed", "--duration", "55s")
    device = 'servers = 1000\n[service.constant]\ntime = "400us"\n[stall]\nevery = "9s"\nlasts = "3s"\n'
    found = only(diagnosed(simulated(tmp_path, device, *load, "--size", "4k", "--span", "4G")), "S04")
    # The storage pauses from 9 to 12 s, the load from 10 s on.
    assert found.values["due_per_s"] == 0
    assert found.values["behind_s"] == pytest.approx(2, rel=0.2)


def test_a_queue_that_collapses_has_a_best_depth(tmp_path: Path) -> None:
    device = 'servers = 8\n[service.exponential]\nmean = "4ms"\n[collapse]\nbeyond = 16\ngrowth = 0.02\n'
    load = ("ramp", "--growth", 70, "--duration", "60s", "--size", "4k", "--reads", 0.7, "--span", "4G")
    found = only(diagnosed(simulated(tmp_path, device, *load, options=("--depth", 256))), "S05")
    assert 8 <= (found.values["best_depth"] or 0) <= 32
    assert found.values["best_per_s"] == pytest.approx(2000, rel=0.1)
    # At 256, each takes 1 + 0.02 × 240 times as long.
    assert found.values["per_s"] == pytest.approx(2000 / 5.8, rel=0.1)


def test_a_queue_after_a_short_pause_is_no_collapse(tmp_path: Path) -> None:
    device = f'{STEADY}[stall]\nevery = "23s"\nlasts = "40ms"\n'
    assert numbers(diagnosed(simulated(tmp_path, device, *poisson(2000, "60s")))) == ["S06", "S08"]


def test_bursts_make_needles_in_one_queue(tmp_path: Path) -> None:
    run = bursts(tmp_path)
    found = diagnosed(run)
    needles = only(found, "S06")
    assert needles.values["needles"] == 4 and needles.severity == "info"
    # 1500 requests, 8 at a time, of 200 µs.
    assert needles.values["peak_s"] == pytest.approx(1500 / 8 * 200e-6, rel=0.1)
    assert "of them began with a burst of requests" in needles.seen
    assert only(found, "S08").values["fast"] == 0
    assert numbers(found) == ["S06", "S08"]


LARGE_WRITES = """
name = "large"
about = "Small reads, and now and then a large write"

[[stream]]
name = "small"
arrivals = "poisson rate=45"
op = "read"
sizes = "4k"

[[stream]]
name = "large"
arrivals = "poisson rate=0.15"
op = "write"
sizes = "SIZE"
"""


@pytest.mark.parametrize(("size", "expected"), [("32M", ["S06"]), ("256k", [])])
def test_a_large_write_that_holds_up_a_disk_is_the_cause(tmp_path: Path, size: str, expected: list[str]) -> None:
    # The queues of this disk are long by chance, too: the height of these needles alone does not show them.
    program, device, run = (tmp_path / name for name in ("p.toml", "d.toml", "r.replay.parquet"))
    program.write_text(LARGE_WRITES.replace("SIZE", size))
    service = '[service.seek]\nshortest = "800us"\nlongest = "14ms"\nrpm = 7200\n'
    device.write_text(f'size = "200G"\nservers = 1\ntransfer = "160M/s"\n{service}')
    iosonar("workload", "run", program, "--for", "5m", "--output", run, "--simulate", device, "--virtual-time")
    found = diagnosed(run)
    assert [number for number in numbers(found) if number == "S06"] == expected
    if expected:
        needles = only(found, "S06")
        assert "began with a large request" in needles.seen
        assert needles.severity == "warning"


def bursts(directory: Path) -> Path:
    """A steady load with four bursts."""
    generator = np.random.default_rng(1)
    steady = np.cumsum(generator.exponential(MS, 60_000)).astype(np.int64)
    at = np.sort(np.concatenate([steady, *(np.full(1500, int(when * S)) for when in (7.3, 21.1, 22.9, 40.2))]))
    zeros, many = np.zeros(len(at), np.int64), len(at)
    columns = {"at_ns": at, "sector": generator.integers(0, 1 << 20, many) * 8, "sectors": zeros + 8}
    columns |= {"device": zeros.astype(np.int32), "flags": zeros.astype(np.int32)}
    op = generator.choice(["read", "write"], many, p=[0.7, 0.3]).tolist()
    load, device = directory / "b.load.parquet", directory / "b.toml"
    write_load(load, pa.table(columns | {"op": op}).select(LOAD_SCHEMA.names).cast(LOAD_SCHEMA))
    device.write_text(STEADY)
    run = directory / "b.replay.parquet"
    iosonar("replay", load, "--simulate", device, "--virtual-time", "--output", run, "--depth", 4096)
    return run


def test_collection_of_garbage_follows_bytes_not_time(tmp_path: Path) -> None:
    device = f'{STEADY}[garbage_collection]\nafter = "16M"\nlasts = "60ms"\n'
    found = diagnosed(simulated(tmp_path, device, *poisson(2000, "60s", "--reads", 0.5)))
    collected = only(found, "S09")
    assert collected.values["bytes"] == pytest.approx(16 << 20, rel=0.02)
    assert collected.values["length_s"] == pytest.approx(0.06, rel=0.05)
    assert "S07" not in numbers(found)


def test_reads_behind_slow_writes_are_found_at_the_same_depth(tmp_path: Path) -> None:
    device = 'servers = 1\n[service.exponential]\nmean = "200us"\n[asymmetry]\nwrite = 10\n'
    assert (
        only(diagnosed(simulated(tmp_path, device, *poisson(1000, "60s", "--reads", 0.9))), "S10").values["factor"] or 0
    ) > 2


def test_the_slow_member_of_a_stripe_is_named(tmp_path: Path) -> None:
    device = f'{STEADY}[stripe]\nmembers = 4\nchunk = "64K"\nslow_member = 2\nfactor = 5\n'
    found = only(diagnosed(simulated(tmp_path, device, *poisson(2000, "30s"))), "S11")
    assert {name: found.values[name] for name in ("members", "member", "chunk_bytes")} == {
        "members": 4,
        "member": 2,
        "chunk_bytes": 65536,
    }
    assert found.values["ratio"] == pytest.approx(5, rel=0.1)


def test_a_limit_of_requests_is_a_flat_ceiling(tmp_path: Path) -> None:
    found = only(diagnosed(simulated(tmp_path, f"{LIMITED}iops = 500\n", *poisson(700, "60s"))), "S17")
    assert found.values["requests_per_s"] == pytest.approx(500, rel=1e-3)


def test_a_limit_of_bytes_is_told_from_one_of_requests(tmp_path: Path) -> None:
    load = poisson(400, "60s", "--size", "4k:50,64k:50")
    found = only(diagnosed(simulated(tmp_path, f'{LIMITED}bytes_per_second = "8M/s"\n', *load)), "S17")
    assert found.values["bytes_per_s"] == pytest.approx(8 << 20, rel=0.01)


def test_an_overloaded_device_is_no_limit(tmp_path: Path) -> None:
    assert numbers(diagnosed(simulated(tmp_path, SLOW, *poisson(1000, "60s")))) == ["S03"]


def test_an_empty_bucket_has_its_credit(tmp_path: Path) -> None:
    device = f"{LIMITED}iops = 300\nburst_requests = 12000\n"
    found = diagnosed(simulated(tmp_path, device, *poisson(700, "90s")))
    bucket = only(found, "S18")
    assert bucket.values["at_s"] == pytest.approx(30, rel=0.03)
    assert bucket.values["credit"] == pytest.approx(12_000, rel=0.02)
    assert bucket.values["requests_per_s"] == pytest.approx(300, rel=0.01)
    assert not {"S17", "S02"} & set(numbers(found))


def test_a_device_that_serves_one_at_a_time_is_found(tmp_path: Path) -> None:
    device = 'servers = 1\n[service.constant]\ntime = "2ms"\n'
    found = only(diagnosed(simulated(tmp_path, device, *poisson(480, "60s"))), "S19")
    assert found.values["alone_per_s"] == pytest.approx(500, rel=0.01)
    assert "S19" not in numbers(diagnosed(simulated(tmp_path, STEADY, *poisson(30_000, "10s"), name="many")))
