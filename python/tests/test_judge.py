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


def test_the_judge_counts_by_the_distance_from_the_median(judge: Any) -> None:
    scheduled = [(n * 1000.0, (8 * n, "R")) for n in range(100)]
    # All 5 s later; one 30 µs late, one never, and a read of the first sector before the replay began.
    events = [(at + 5e6 + (30 if place[0] == 80 else 0), place) for at, place in scheduled if place[0] != 400]
    found = judge.judged(scheduled, [(1.0, (0, "R")), *events])
    assert (found["requests"], found["missing"]) == (100, 1)
    assert found["within_pct"] == {"10": 98.0, "25": 98.0, "50": 99.0, "100": 99.0, "1000": 99.0}
    assert found["error_us"]["0.5"] == 0


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
