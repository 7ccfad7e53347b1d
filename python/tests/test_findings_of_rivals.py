"""Findings that a rival cause could be taken for: each is distinguished by what physically differs."""

from pathlib import Path

import pytest
from findings_kit import diagnosed, numbers, only, poisson, simulated

MS_4 = 'servers = 4\n[service.lognormal]\nmedian = "2ms"\nsigma = 0.4\n'


def idling(idle: str, servers: int) -> str:
    return f'servers = {servers}\n[service.lognormal]\nmedian = "2ms"\nsigma = 0.3\n[scheduler]\nidle = "{idle}"\n'


@pytest.mark.parametrize(("idle", "pause_s"), [("3ms", 3e-3), ("500us", 0.5e-3)])
def test_a_scheduler_that_idles_after_reads_is_found(tmp_path: Path, idle: str, pause_s: float) -> None:
    found = only(diagnosed(simulated(tmp_path, idling(idle, 1), *poisson(230, "90s", "--reads", 0.5))), "S16")
    assert found.values["idle_s"] == pytest.approx(pause_s, rel=0.15)


def test_slow_writes_are_no_idling(tmp_path: Path) -> None:
    device = f"{MS_4}[asymmetry]\nwrite = 4\n"
    assert "S16" not in numbers(diagnosed(simulated(tmp_path, device, *poisson(700, "60s", "--reads", 0.6))))


def test_a_cache_of_writes_is_no_idling(tmp_path: Path) -> None:
    medium = 'servers = 1\n[service.exponential]\nmean = "2ms"\n'
    device = f'{medium}[write_cache]\nsize = "1G"\ntime = "100us"\ndestage = "9M/s"\n'
    assert "S16" not in numbers(diagnosed(simulated(tmp_path, device, *poisson(600, "60s", "--reads", 0.6))))


def test_writes_that_take_twice_as_long_are_found(tmp_path: Path) -> None:
    device = '[service.lognormal]\nmedian = "70us"\nsigma = 0.3\n[asymmetry]\nwrite = 2\n'
    found = only(diagnosed(simulated(tmp_path, device, *poisson(1000, "40s", "--reads", 0.5))), "S10")
    assert found.values["write_factor"] == pytest.approx(2, rel=0.03)
    assert found.severity == "info"


def test_reads_from_a_cache_are_no_slow_writes(tmp_path: Path) -> None:
    device = f'{MS_4}[read_cache]\nsize = "40M"\ntime = "90us"\n'
    load = poisson(500, "60s", "--reads", 0.7, "--span", "64M")
    assert "S10" not in numbers(diagnosed(simulated(tmp_path, device, *load)))


def test_fast_reads_of_untouched_places_are_a_thin_volume(tmp_path: Path) -> None:
    thin = f'size = "8G"\n{MS_4}[unwritten]\nchunk = "1M"\ntime = "30us"\n'
    load = poisson(400, "60s", "--reads", 0.7, "--span", "8G")
    found = diagnosed(simulated(tmp_path, thin, *load))
    assert only(found, "S12").values["share"] == pytest.approx(1, abs=0.02)
    assert "S10" not in numbers(found)


def test_a_cache_is_no_thin_volume(tmp_path: Path) -> None:
    device = f'{MS_4}[read_cache]\nsize = "64M"\ntime = "60us"\n'
    load = poisson(500, "60s", "--reads", 0.7, "--span", "100M")
    assert "S12" not in numbers(diagnosed(simulated(tmp_path, device, *load)))


def test_credit_that_comes_back_is_a_bucket(tmp_path: Path) -> None:
    medium = 'servers = 16\n[service.lognormal]\nmedian = "400us"\nsigma = 0.3\n'
    device = f"{medium}[[limit]]\niops = 250\nburst_requests = 4000\n"
    load = ("on-off", "--rate", 600, "--on", "20s", "--off", "40s", "--phases", "fixed", "--duration", "175s")
    found = diagnosed(simulated(tmp_path, device, *load, "--size", "4k", "--span", "4G"))
    bucket = only(found, "S18")
    assert bucket.values["credit"] == pytest.approx(4000, rel=0.15)
    assert bucket.values["requests_per_s"] == pytest.approx(250, rel=0.02)
    assert "S17" not in numbers(found)


def test_hot_pieces_in_a_cache_are_no_slow_member(tmp_path: Path) -> None:
    device = f'{MS_4}[read_cache]\nsize = "6M"\ntime = "60us"\n'
    load = poisson(400, "60s", "--reads", 1, "--span", "64M", "--positions", "zipf exponent=1.4")
    assert "S11" not in numbers(diagnosed(simulated(tmp_path, device, *load)))


def test_few_long_waits_for_the_order_are_found(tmp_path: Path) -> None:
    device = 'size = "200G"\n[service.lognormal]\nmedian = "700us"\nsigma = 0.5\n'
    load = poisson(300, "100s", "--size", "8k", "--reads", 0.5, "--span", "64M", "--positions", "zipf exponent=1.12")
    found = only(diagnosed(simulated(tmp_path, device, *load, options=("--conflicts", "ordering"))), "S21")
    assert 0.005 <= (found.values["share"] or 0) < 0.02
