"""The judge of the benchmarks, on events with known answers."""

import sys
from pathlib import Path
from typing import Any

import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench"


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module `bench/judge.py`."""
    monkeypatch.syspath_prepend(str(BENCH))
    monkeypatch.delitem(sys.modules, "judge", raising=False)
    import judge  # type: ignore[import-not-found]

    return judge


def test_the_judge_counts_from_the_most_frequent_difference(judge: Any) -> None:
    scheduled = [(n * 1000.0, (8 * n, "R")) for n in range(100)]
    # All 5 s later; one 30 µs late, one never, and a read of the first sector before the replay began.
    events = [(at + 5e6 + (30 if place[0] == 80 else 0), place) for at, place in scheduled if place[0] != 400]
    found = judge.judged(scheduled, [(1.0, (0, "R")), *events])
    assert (found["requests"], found["missing"]) == (100, 1)
    assert found["within_pct"] == {"10": 98.0, "25": 98.0, "50": 99.0, "100": 99.0, "1000": 99.0}
    assert found["error_us"]["0.5"] == 0


def test_most_requests_may_be_late(judge: Any) -> None:
    scheduled = [(n * 1000.0, (8 * n, "R")) for n in range(100)]
    events = [(at + 5e6 + (0 if n % 5 == 0 else 100 * n), place) for n, (at, place) in enumerate(scheduled)]
    assert judge.judged(scheduled, events)["within_pct"]["50"] == 20.0


def test_a_request_that_is_queued_twice_has_its_first_time(judge: Any) -> None:
    # Two requests to each of 50 sectors, a second apart; of half of the sectors, the first is tried again after 3 ms.
    scheduled = [(n * 20_000.0, (8 * (n % 50), "W")) for n in range(100)]
    again = [(at + 3000.0, place) for at, place in scheduled[:50:2]]
    assert judge.judged(scheduled, sorted(scheduled + again))["within_pct"]["10"] == 100.0


def test_the_judge_reads_events_and_loads(judge: Any, tmp_path: Path) -> None:
    line = "             fio-1 [000] ..... 12.000345: block_bio_queue: 7,0 FWS 800 + 8 [fio]"
    event = judge.EVENT.search(line)
    assert (event[1], event[2], judge.direction(event[3]), event[4]) == ("12", "000345", "W", "800")
    load = tmp_path / "a.load"
    load.write_text(
        "start ; sector; length ; op ;  replay_delay=0 ; replay_duration=0\n"
        "  0.5 ;  8 ;  8 ; R ; 0 ; 0\n 2 ; 1 ; 1 ; W\n"
    )
    assert list(judge.requests(load, 0, 1)) == [(500000.0, (8, "R"))]
