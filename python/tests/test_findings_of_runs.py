"""Findings on the run itself: target, length, order, replayer and machine, from made tables."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from factory import MS, STATISTICS, US, S
from findings_kit import diagnosed, made, numbers, only

ROWS = 3000
AT = np.arange(ROWS) * 10 * MS
LATENCY = 300 * US + np.arange(ROWS) % 7 * 10 * US


def run(path: Path, **more: Any) -> Path:
    return made(
        path / f"{more.pop('name', 'a')}.replay.parquet", more.pop("at", AT), more.pop("latency", LATENCY), **more
    )


def statistics(**more: Any) -> dict[str, Any]:
    return {"run": {"statistics": STATISTICS | more}}


def test_a_good_run_has_no_findings(tmp_path: Path) -> None:
    found = diagnosed(run(tmp_path))
    assert numbers(found) == []
    # A single run without counters.
    assert [number for number, _ in found.not_checked] == ["S15", "S23"]


def test_reads_of_zeros_are_unwritten_areas(tmp_path: Path) -> None:
    found = only(diagnosed(run(tmp_path, footer=statistics(zero_reads=100))), "S12")
    assert found.severity == "warning" and found.values["share"] == pytest.approx(1 / 30)
    assert found.seen == "100 of 3,000 reads (3.3 %) returned only zeros."
    found = only(diagnosed(run(tmp_path, footer=statistics(zero_reads=1000))), "S12")
    assert found.severity == "bad"
    assert numbers(diagnosed(run(tmp_path, footer=statistics(zero_reads=10)))) == []


def test_a_load_larger_than_its_target_wraps_around(tmp_path: Path) -> None:
    path = run(tmp_path, footer=statistics(wrap_factor=2.5), source_sector=np.arange(ROWS) * 8)
    assert only(diagnosed(path), "S13").values == {"factor": 2.5}


def test_a_small_simulated_device_wraps_around(tmp_path: Path) -> None:
    def simulated_with(factor: float) -> Path:
        footer = {"run": {"engine": "simulate", "statistics": STATISTICS | {"wrap_factor": factor}}}
        return run(tmp_path, footer=footer, source_sector=np.arange(ROWS) * 8)

    assert only(diagnosed(simulated_with(1.4)), "S13").values == {"factor": 1.4}
    assert "S13" not in numbers(diagnosed(simulated_with(0.9)))


def test_a_warm_up_of_half_the_run_is_too_short(tmp_path: Path) -> None:
    latency = np.where(np.arange(ROWS) < ROWS // 4, 900 * US, 300 * US) + np.arange(ROWS) % 7 * 10 * US
    found = only(diagnosed(run(tmp_path, latency=latency)), "S14")
    assert found.values["since_s"] == pytest.approx(7.5, abs=0.5)
    assert "before, it was 2.8 times as high" in found.seen


def test_a_few_requests_in_a_few_seconds_are_too_short(tmp_path: Path) -> None:
    found = only(diagnosed(run(tmp_path, at=np.arange(400) * 20 * MS, latency=LATENCY[:400])), "S14")
    assert found.values == {"length_s": pytest.approx(8, abs=0.1), "requests": 400}
    assert found.seen.startswith("The run took 7.98 s and completed 400 requests")
    # Few in a long run suffice, and many in a short one.
    assert numbers(diagnosed(run(tmp_path, at=np.arange(400) * 60 * MS, latency=LATENCY[:400]))) == []
    assert numbers(diagnosed(run(tmp_path, at=AT // 10))) == []


def test_a_second_run_on_the_same_target_is_no_repetition(tmp_path: Path) -> None:
    def each(name: str, started: int, factor: int) -> Path:
        footer = {"run": {"load": "a.load.parquet", "started_unix_ns": started * S, "statistics": STATISTICS}}
        return run(tmp_path, name=name, latency=LATENCY * factor, footer=footer)

    first, second = each("first", 1000, 3), each("second", 2000, 1)
    found = only(diagnosed(first, second), "S15")
    assert found.severity == "warning" and found.values["ratio"] == pytest.approx(3, rel=0.01)
    assert "second repeats the load of first on /dev/loop9" in found.seen
    assert numbers(diagnosed(first)) == []


def test_later_iterations_find_what_the_first_one_left(tmp_path: Path) -> None:
    def looped(factor: int) -> Path:
        iteration = np.arange(ROWS) // 1000
        footer = {"run": {"options": {"loop": True}, "statistics": STATISTICS}}
        return run(tmp_path, latency=LATENCY * np.where(iteration == 0, factor, 1), iteration=iteration, footer=footer)

    found = only(diagnosed(looped(4)), "S15")
    assert found.severity == "warning" and found.values["ratio"] == pytest.approx(4, rel=0.02)
    assert "S15" not in numbers(diagnosed(looped(1)))


def test_a_late_replayer_is_named_with_its_reason(tmp_path: Path) -> None:
    late = np.arange(ROWS) % 4 == 0
    reasons = np.where(late, "input", "none").tolist()
    path = run(
        tmp_path, footer=statistics(within_pct={}, delay_us={}), issued_ns=AT + late * 5 * MS, delay_reason=reasons
    )
    found = only(diagnosed(path), "S20")
    assert found.severity == "bad" and found.values["late"] == ROWS // 4
    assert "mostly because the load was read too slowly" in found.seen


@pytest.mark.parametrize("within", [99.9, 60.0])
def test_a_device_that_sees_few_of_the_requests_is_named(within: float, tmp_path: Path) -> None:
    def counted(busy_s: float, requests: int = ROWS) -> Path:
        counters = {"disk": "sda", "requests": requests, "merged": 0, "busy_s": busy_s, "seconds": 30.0}
        more = {"within_pct": {"10": within, "50": within, "100": within}}
        run_of = {"mean_in_flight": 16.0, "device_counters": [counters], "statistics": STATISTICS | more}
        return run(tmp_path, footer={"run": run_of}, in_flight=np.full(ROWS, 16))

    found = only(diagnosed(counted(60.0)), "S19")
    assert found.values == {"asked": 16.0, "seen": 2.0}
    assert found.seen == "The replay had 16 requests in flight on average, sda only 2: the others waited above it."
    # As many as the replay had in flight, and a cache that answers nearly all requests.
    assert "S19" not in numbers(diagnosed(counted(450.0)))
    assert "S19" not in numbers(diagnosed(counted(1.0, requests=150)))


def test_perturbed_times_are_late_by_their_option(tmp_path: Path) -> None:
    def perturbed(delay: int) -> Path:
        footer = {"run": {"options": {"perturb": "quantize=5ms"}, "statistics": STATISTICS}}
        return run(tmp_path, footer=footer, issued_ns=AT + delay, delay_reason=["perturbed"] * ROWS)

    found = only(diagnosed(perturbed(3 * MS)), "S20")
    assert found.seen == "--perturb quantize=5ms made 3,000 requests (100 %) more than 50 µs late, 3 ms on average."
    assert "S20" not in numbers(diagnosed(perturbed(20 * US)))


def test_waits_for_the_order_are_counted(tmp_path: Path) -> None:
    held = np.arange(ROWS) % 10 == 0
    reasons = np.where(held, "order", "none").tolist()
    found = only(diagnosed(run(tmp_path, issued_ns=AT + held * 4 * MS, delay_reason=reasons)), "S21")
    assert found.values["requests"] == ROWS // 10 and found.values["mean_delay_s"] == pytest.approx(4e-3)


def test_many_dropped_requests_are_bad_few_are_not(tmp_path: Path) -> None:
    def with_dropped(every: int) -> Path:
        outcomes = np.where(np.arange(ROWS) % every == 0, "dropped", "ok").tolist()
        return run(tmp_path, outcome=outcomes)

    assert only(diagnosed(with_dropped(10)), "S22").values["share"] == pytest.approx(0.1)
    assert "S22" not in numbers(diagnosed(with_dropped(30)))


def test_dropped_requests_are_no_demand_on_the_storage(tmp_path: Path) -> None:
    outcomes = np.where(np.arange(ROWS) % 3 == 0, "dropped", "ok").tolist()
    assert "S03" not in numbers(diagnosed(run(tmp_path, outcome=outcomes)))


def test_a_machine_without_idle_processors_or_memory_is_short(tmp_path: Path) -> None:
    def usage(busy: float, available: int) -> dict[str, Any]:
        names = ("at_s", "available_bytes", "received_bytes", "sent_bytes")
        samples: dict[str, Any] = {name: [1] * 9 for name in names}
        counted: dict[str, Any] = {
            "seconds": 30.0,
            "busy_pct": busy,
            "kernel_pct": 1.0,
            "received_bytes": 0,
            "sent_bytes": 0,
        }
        counted |= {"available_bytes": available, "samples": samples | {"busy_pct": [busy] * 9}}
        return {"run": {"machine": {"memory_kib": 1 << 20}, "statistics": STATISTICS | {"usage": counted}}}

    assert only(diagnosed(run(tmp_path, footer=usage(99.5, 1 << 29))), "S23").values["busy"] == pytest.approx(0.995)
    memory = only(diagnosed(run(tmp_path, footer=usage(10, 1 << 23))), "S23")
    assert memory.seen == "Only 8 MiB of memory were left at one time."
    assert numbers(diagnosed(run(tmp_path, footer=usage(10, 1 << 29)))) == []


def test_completions_in_ascending_order_are_a_scheduler(tmp_path: Path) -> None:
    # Bursts of 20 requests; a disk that sorts them, and one that does not.
    rows = 6000
    generator = np.random.default_rng(1)
    at = np.arange(rows) // 20 * 50 * MS + np.arange(rows) % 20 * US
    sector = generator.integers(0, 1 << 20, rows) * 8
    place = np.arange(rows).reshape(-1, 20)
    rank = np.argsort(np.argsort(sector.reshape(-1, 20), axis=1), axis=1).reshape(-1)
    depth = np.arange(rows) % 20 + 1
    sorted_ = run(tmp_path, name="sorted", at=at, latency=(rank + 1) * MS, sector=sector, in_flight=depth)
    found = only(diagnosed(sorted_), "S16")
    assert found.values["completed_ascending"] == pytest.approx(0.95, abs=0.05)
    assert found.values["issued_ascending"] == pytest.approx(0.5, abs=0.05)
    fifo = run(tmp_path, name="fifo", at=at, latency=(place % 20 + 1).reshape(-1) * MS, sector=sector, in_flight=depth)
    assert "S16" not in numbers(diagnosed(fifo))


def test_the_slow_device_of_several_is_named(tmp_path: Path) -> None:
    chance = np.random.default_rng(2)

    def device(number: int, factor: int) -> Path:
        target = {"path": f"/dev/sd{'abcd'[number]}", "kind": "block", "sectors": 1 << 20}
        footer = {"run": {"target": target, "statistics": STATISTICS}}
        latency = (LATENCY * factor * chance.exponential(1, ROWS)).astype(np.int64)
        return run(tmp_path, name=f"d{number}", latency=latency, footer=footer)

    found = only(diagnosed(*(device(number, 4 if number == 2 else 1) for number in range(4))), "S11")
    assert "/dev/sdc: its p" in found.seen
    assert found.evidence.filter == "source = 2"
    assert found.values["ratio"] == pytest.approx(4, rel=0.2)


@pytest.mark.parametrize("jitter", [0.0, 2e6])
def test_only_even_completions_are_a_limit_of_the_rate(tmp_path: Path, jitter: float) -> None:
    # From 5 s on, each 4 ms a request is due, and each 5 ms one completes: exactly, or of a disk, by its service times.
    busy = 12_000
    due = np.concatenate([np.arange(500) * 10 * MS, 5 * S + np.arange(busy) * 4 * MS])
    times = 5 * MS + np.random.default_rng(1).uniform(-jitter, jitter, busy)
    done = np.concatenate([due[:500] + 1 * MS, 5 * S + np.cumsum(times).astype(np.int64)])
    latency = np.maximum(done - due, 1 * MS)
    path = made(tmp_path / "a.replay.parquet", due, latency)
    assert ("S17" in numbers(diagnosed(path))) == (jitter == 0)


@pytest.mark.parametrize("slices", [True, False])
def test_reads_and_writes_have_ceilings_of_their_own(slices: bool, tmp_path: Path) -> None:
    chance = np.random.default_rng(5)

    def completed(per_s: int) -> Any:
        """In slices of 100 ms, as limits of the kernel let them through, or as a busy device completes them."""
        if slices:
            return np.concatenate([n * 100 * MS + np.arange(per_s // 10) * 100 * US for n in range(400)]) + MS
        return np.sort(chance.uniform(0, 40 * S, per_s * 40)).astype(np.int64) + MS

    reads, writes = completed(150), completed(80)
    done = np.sort(np.concatenate([reads, writes]))
    op = np.where(np.isin(done, writes[:: 2 if slices else 1]), "write", "read")
    path = run(
        tmp_path,
        at=np.arange(len(done)) * S // 330,
        latency=np.full(len(done), 500 * US),
        issued_ns=np.maximum(done - 500 * US, np.arange(len(done)) * S // 330),
        op=op.tolist(),
    )
    found = diagnosed(path)
    assert ("S17" in numbers(found)) == slices
    assert "S02" not in numbers(found)
