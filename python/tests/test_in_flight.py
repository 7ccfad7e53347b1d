from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from conftest import OpenRun, OpenStudy
from factory import S, run_row, write_run
from hypothesis import given, settings
from hypothesis import strategies as st
from test_sonar import build

from iosonar.quantities import in_flight
from iosonar.quantities.depth import with_depth
from iosonar.quantities.in_flight import Slices, events, mean_levels, peaks
from iosonar.quantities.series import Series
from iosonar.table import open_requests

SPANS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 25)), min_size=1, max_size=30)


def level_at(spans: list[tuple[int, int]], moment: int) -> int:
    """The level between `moment` and the next nanosecond, by counting."""
    return sum(begin <= moment < begin + length for begin, length in spans)


def test_means_in_flight_have_their_known_values(open_run: OpenRun) -> None:
    # 0 to 4 s one read, 1 to 2 s a second one; a write from 3 s that never completes.
    rows = [run_row(latency=4 * S), run_row(scheduled=S, latency=S), run_row(scheduled=3 * S, latency=None, op="write")]
    with open_run(rows) as requests:
        table = requests.table
        across = Slices(0, 2 * S, 3)
        found = mean_levels(events(table, table.issued_ns, across), events(table, table.completed_ns, across))
    assert found.mean[Series.READ].tolist() == pytest.approx([1.5, 1, 0])
    assert found.mean[Series.WRITE].tolist() == pytest.approx([0, 0.5, 1])


@settings(max_examples=15)
@given(spans=SPANS, rows_at_once=st.sampled_from([1, 5, 1000]))
def test_means_and_peaks_are_those_of_counting(tmp_path: Path, spans: list[tuple[int, int]], rows_at_once: int) -> None:
    rows = [run_row(scheduled=begin * S, latency=length * S) for begin, length in spans]
    made = write_run(tmp_path / "a.parquet", rows)
    with pytest.MonkeyPatch.context() as patch, open_requests([made]) as requests:
        table = requests.table
        across = Slices(0, 5 * S, 14)
        begins, ends = (events(table, at, across) for at in (table.issued_ns, table.completed_ns))
        mean = mean_levels(begins, ends).mean[Series.READ]
        patch.setattr(in_flight, "ROWS_AT_ONCE", rows_at_once)
        highest = peaks(table, "issued_ns", "completed_ns", across)
    levels = [level_at(spans, moment) for moment in range(70)]
    assert mean.tolist() == pytest.approx([np.mean(levels[cell * 5 : cell * 5 + 5]) for cell in range(14)], abs=1e-6)
    # An end counts before a start of the same time; a request of zero length counts at its own start.
    own = [level + sum(span == (moment, 0) for span in spans) for moment, level in enumerate(levels)]
    assert highest.tolist() == [max(own[cell * 5 : cell * 5 + 5]) for cell in range(14)]


def test_a_request_that_takes_the_place_of_another_is_no_peak(open_run: OpenRun) -> None:
    rows = [run_row(number, scheduled=number * S, latency=S) for number in range(5)]
    with open_run(rows) as requests:
        assert peaks(requests.table, "issued_ns", "completed_ns", Slices(0, S, 5)).tolist() == [1.0] * 5


def test_small_means_are_readable(open_study: OpenStudy) -> None:
    rows = [run_row(n, scheduled=n * S, delay=20, latency=300) for n in range(100)]
    with open_study(rows) as study:
        cells = [row.cells[:2] for row in build(study, "smooth.latency.flying").legend.rows]
    assert cells == [("<0.001", "<0.001")]


def test_depth_is_the_recorded_one(open_run: OpenRun) -> None:
    with open_run([run_row(in_flight=7), run_row(in_flight=9), run_row(in_flight=None, issued_ns=None)]) as requests:
        assert sorted(with_depth(requests.table).to_pyarrow()["depth"].to_pylist()) == [7, 9]


def test_depth_is_counted_if_it_was_not_recorded(open_run: OpenRun) -> None:
    # A: 0..10, B: 2..4, C: 4..5 (C takes the place of B), D: 6..
    spans = [(0, 10), (2, 2), (4, 1), (6, 1), (6, 0)]
    rows = [
        run_row(scheduled=begin, latency=length, in_flight=None, sectors=number)
        for number, (begin, length) in enumerate(spans)
    ]
    with open_run(rows) as requests:
        found = with_depth(requests.table).order_by("sectors").to_pyarrow()
    assert found["depth"].to_pylist() == [1, 2, 2, 2, 3]
    assert found["latency_ns"].to_pylist() == [10, 2, 1, 1, 0]
