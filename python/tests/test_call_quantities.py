from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from binary import iosonar
from call_factory import US, call, read, replayed, write, write_calls, write_calls_run
from cern import atlas_new, atlas_old, cms_analysis, cms_reconstruction

from iosonar.quantities.calls import outdegree
from iosonar.quantities.calls.access import Access, Pattern, access_patterns, count_patterns, largest_accesses
from iosonar.quantities.calls.by_file import all_files, largest_files
from iosonar.quantities.calls.call_load import call_load, window_for
from iosonar.quantities.calls.fidelity import compute_time_errors, delays
from iosonar.quantities.calls.gaps import ARRIVAL, THINK, gaps
from iosonar.quantities.calls.mismatches import outcomes_of_calls
from iosonar.quantities.calls.response import by_call, ecdf, with_concurrency
from iosonar.quantities.calls.series import CallSeries, with_series
from iosonar.quantities.calls.shares import mix, shares_of_threads
from iosonar.quantities.distribution import distributions
from iosonar.table.calls import open_calls

Rows = Iterable[dict[str, Any]]
OpenTable = Callable[[Rows], AbstractContextManager[Any]]


@pytest.fixture
def trace(tmp_path: Path) -> OpenTable:
    @contextmanager
    def opened(rows: Rows) -> Iterator[Any]:
        with open_calls(write_calls(tmp_path / "t.calls.parquet", list(rows))) as calls:
            yield calls.kept(with_series(calls.table))

    return opened


@pytest.fixture
def run(tmp_path: Path) -> OpenTable:
    @contextmanager
    def opened(rows: Rows) -> Iterator[Any]:
        with open_calls(write_calls_run(tmp_path / "r.calls-run.parquet", list(rows))) as calls:
            yield calls.kept(with_series(calls.table))

    return opened


def test_files_are_as_many_as_info_says(tmp_path: Path) -> None:
    text = tmp_path / "t.strace"
    text.write_text(
        '7 1700000001.0 openat(AT_FDCWD, "/a", O_RDONLY) = 3</a> <0.1>\n'
        '7 1700000001.1 read(3</a>, ""..., 5) = 5 <0.1>\n'
        "7 1700000001.2 socket(AF_UNIX, SOCK_STREAM, 0) = 4<socket:[99]> <0.1>\n"
        '7 1700000001.3 connect(4<socket:[99]>, {sa_family=AF_UNIX, sun_path="/run/s"}, 9) = 0 <0.1>\n'
        '7 1700000001.4 write(4<socket:[99]>, ""..., 5) = 5 <0.1>\n'
        '7 1700000001.5 stat("/", {st_mode=S_IFDIR|0755}) = 0 <0.1>\n'
    )
    iosonar("convert", text, trace := tmp_path / "t.calls.parquet")
    with open_calls(trace) as calls:
        found = all_files(with_series(calls.table))
    assert found.files == json.loads(iosonar("info", "--json", trace))["files"]["number"] == 2


def test_the_mix_has_shares_of_number_and_of_time(trace: OpenTable) -> None:
    rows = [read(0, "/a", 0, 10), read(5, "/a", 10, 10), call("stat", 9, 8, errno=2, result=-1), call("exit", 20, None)]
    with trace(rows) as table:
        found = mix(table)
    assert [(each.of, each.calls, each.failed, each.bytes) for each in found] == [
        ("read", 2, 0, 20),
        ("exit", 1, 0, 0),
        ("stat", 1, 1, 0),
    ]
    assert [each.share for each in found] == [0.5, 0.25, 0.25]
    assert [each.time_share for each in found] == pytest.approx([0.2, 0, 0.8])


def test_threads_are_sorted_by_their_share(trace: OpenTable) -> None:
    with trace([call("stat", number, thread=7 if number else 3) for number in range(4)]) as table:
        assert [(each.of, each.share) for each in shares_of_threads(table)] == [(7, 0.75), (3, 0.25)]


def test_the_load_counts_empty_windows(trace: OpenTable) -> None:
    # 4, 0, 2 calls in whole windows of a second, and 1 in half a window.
    with trace([call("stat", s * 1e6) for s in (0, 0.1, 0.2, 0.9, 2.0, 2.5, 3.25)]) as table:
        found = call_load(table, 1.0, 0, 3_500_000_000)
    assert found.rates.tolist() == [4, 0, 2, 2]
    assert (found.whole, found.median, found.mean, found.maximum) == (3, 2, 7 / 3.5, 4)
    assert found.variation == pytest.approx(np.std([4, 0, 2]) / 2)


@pytest.mark.parametrize(("seconds", "window"), [(60, 1), (600, 1), (10, 0.1), (0.5, 0.005), (7200, 10)])
def test_windows_are_a_second_if_they_can_be(seconds: float, window: float) -> None:
    assert window_for(seconds) == pytest.approx(window)


def test_each_call_has_its_response_times(trace: OpenTable) -> None:
    with trace([call("stat", number, number + 1) for number in range(4)] + [call("open", 9, 50)]) as table:
        found = by_call(table, ["stat", "open"])
    assert (found["stat"].count, found["stat"].maximum, found["open"].mean) == (4, 4 * US, 50 * US)
    x, y = ecdf(found["stat"])
    assert (x[-1], y[-1]) == pytest.approx((4e-6, 100))


def test_concurrency_counts_calls_in_progress_at_a_begin(trace: OpenTable) -> None:
    rows = [call("stat", 0, 10), call("stat", 5, 10), call("stat", 10, 1), call("stat", 30, 1), call("wait4", 0, 90)]
    with trace(rows) as table:
        found = with_concurrency(table, int(CallSeries.OTHER)).select("concurrency").to_pyarrow()
    # A call that begins as another ends does not overlap it; waiting for a process is no work.
    assert sorted(found["concurrency"].to_pylist()) == [1, 1, 2, 2]


def test_gaps_between_calls_and_within_threads(trace: OpenTable) -> None:
    with trace([call("stat", 0, 2), call("stat", 1, 2, thread=2), call("stat", 7, 1)]) as table:
        found = gaps(table)
    assert [found[ARRIVAL].minimum, found[ARRIVAL].maximum] == [1 * US, 6 * US]
    assert (found[THINK].count, found[THINK].maximum) == (1, 5 * US)


def test_files_are_listed_by_their_bytes(trace: OpenTable) -> None:
    rows = [read(0, "/a", 0, 100), read(10, "/a", 100, 50), write(20, "/b", 0, 30), call("stat", 30, 1, file="/c")]
    with trace(rows) as table:
        first, second, third = largest_files(table, 10)
        totals = all_files(table)
    assert (first.path, first.bytes_read, first.reads, first.end, first.mean_size) == ("/a", 150, 2, 150, 75)
    assert first.speed == pytest.approx(150 / 2e-6)
    assert (second.path, second.bytes_written, second.writes) == ("/b", 30, 1)
    assert (third.path, third.calls, third.bytes, third.speed) == ("/c", 1, 0, 0)
    assert (totals.files, totals.read_by_rank.tolist(), totals.written_by_rank.tolist()) == (3, [150], [30])


def patterns(trace: OpenTable, rows: Rows) -> list[Access]:
    with trace(rows) as table:
        return largest_accesses(access_patterns(table), 40)


def test_the_jobs_of_cern_are_named(trace: OpenTable) -> None:
    resumed = ({**row, "file": "/data/resumed.root"} for row in cms_reconstruction(is_resumed=True))
    jobs = [atlas_old(), atlas_new(2_000_000), cms_analysis(2_000_000), cms_reconstruction(), resumed]
    found = {each.path: each.pattern for each in patterns(trace, chain(*jobs))}
    assert found == {
        **{f"/data/old{number}.root": Pattern.RANDOM for number in range(9)},
        **{f"/data/new{number}.root": Pattern.SEQUENTIAL for number in range(9)},
        "/data/cms.root": Pattern.WITH_GAPS,
        "/data/reco.root": Pattern.WITH_BACKWARD_JUMPS,
        "/data/resumed.root": Pattern.WITH_BACKWARD_JUMPS,
    }


OFFSETS: dict[str, tuple[Iterable[int], Pattern]] = {
    "one": ([70], Pattern.SINGLE),
    "all": (range(0, 1000, 10), Pattern.SEQUENTIAL),
    "columns": (range(0, 3000, 30), Pattern.STRIDED),
    "reversed": (range(1000, 0, -10), Pattern.BACKWARDS),
    "reversed with gaps": (range(3000, 0, -30), Pattern.BACKWARDS),
    "an archive whose directory is at its end": ([9990, *range(0, 1000, 10)], Pattern.SEQUENTIAL),
    "five times": ([*range(0, 1000, 10)] * 5, Pattern.WITH_BACKWARD_JUMPS),
    "hashed": ([number * 7919 % 10_007 * 10 for number in range(500)], Pattern.RANDOM),
    "pieces": ([10 * number + 100 * (number // 5) for number in range(200)], Pattern.WITH_GAPS),
}


def test_offsets_determine_the_pattern(trace: OpenTable) -> None:
    rows = [read(n, f"/{name}", at, 10) for name, (found, _) in OFFSETS.items() for n, at in enumerate(found)]
    named = {each.path: each.pattern for each in patterns(trace, rows)}
    assert named == {f"/{name}": expected for name, (_, expected) in OFFSETS.items()}


def test_threads_that_share_a_file_have_streams_of_their_own(trace: OpenTable) -> None:
    streams = [read(4 * n + t, "/f", 100_000 * t + 10 * n, 10, thread=t) for n in range(50) for t in range(4)]
    assert [each.pattern for each in patterns(trace, streams)] == [Pattern.SEQUENTIAL]


def test_a_pool_of_threads_may_read_one_sequence(trace: OpenTable) -> None:
    pool = [read(n, "/f", 10 * n, 10, thread=n * 7919 % 3) for n in range(90)]
    assert [each.pattern for each in patterns(trace, pool)] == [Pattern.SEQUENTIAL]


def test_reads_and_writes_of_a_file_have_patterns_of_their_own(trace: OpenTable) -> None:
    rows = [
        *(read(n, "/f", 10 * n, 10) for n in range(100)),
        *(write(500 + n, "/f", 5000 - 10 * n, 10) for n in range(50)),
    ]
    assert {(each.operation, each.pattern) for each in patterns(trace, rows)} == {
        ("read", Pattern.SEQUENTIAL),
        ("write", Pattern.BACKWARDS),
    }


def test_patterns_count_files_and_bytes(trace: OpenTable) -> None:
    with trace([read(n, f"/{f}", 10 * n, 10) for f in range(3) for n in range(9)]) as table:
        assert count_patterns(access_patterns(table)) == [(Pattern.SEQUENTIAL, "read", 3, 270)]


def test_delays_are_of_calls_that_were_not_held_back(run: OpenTable) -> None:
    rows = [replayed(n, "read", n, 9) for n in range(9)] + [
        replayed(9, "read", 20, 30, delay_reason="backlog"),
        replayed(10, "read", 40, 500, delay_reason="thread"),
    ]
    with run(rows) as table:
        found = delays(table.filter(table.begin_ns.notnull()))
    assert (found.not_held_back.count, found.held_back.count, found.not_held_back.minima[0]) == (10, 1, 9 * US)
    assert found.within == {10: 0.9, 25: 0.9, 50: 1.0, 100: 1.0}


def test_compute_time_errors_are_ratios_of_gaps(run: OpenTable) -> None:
    rows = [replayed(n, "read", n, 2, gap_ns=20 * US) for n in range(4)] + [replayed(4, "read", 5, 2, gap_ns=0)]
    with run(rows) as table:
        found = compute_time_errors(table)
    assert found.count == 4
    assert ecdf(found, 1e-6)[0][-1] == pytest.approx(0.1)


def test_only_issued_calls_with_another_result_are_mismatches(run: OpenTable) -> None:
    rows = [
        replayed(0, "read", 0),
        replayed(1, "read", 1, outcome="fewer"),
        replayed(2, "dup", 2, outcome="bookkeeping", issued_ns=None, completed_ns=None),
    ]
    with run(rows) as table:
        found = {each.outcome: (each.call, each.is_mismatch, each.is_issued) for each in outcomes_of_calls(table)}
    assert found == {
        "same": ("read", False, True),
        "fewer": ("read", True, True),
        "bookkeeping": ("dup", False, False),
    }


def test_outdegrees_count_the_edges_of_a_graph(tmp_path: Path) -> None:
    found = outdegree.of_predecessors([[], [0], [0], [1, 2]])
    assert (found.counts.tolist(), found.maximum, found.median, found.mean) == ([1, 2, 1], 2, 1, 1.0)
    assert outdegree.of_histogram({"0": 1, "1": 2, "2": 1}).counts.tolist() == [1, 2, 1]
    tsv = tmp_path / "order.tsv"
    tsv.write_text("call\tname\tpredecessors\n0\topen\t\n1\tread\t0\n2\tread\t0\n3\tclose\t1 2\n")
    assert outdegree.of_order(tsv).counts.tolist() == [1, 2, 1]


def test_a_series_for_each_group_of_families(trace: OpenTable) -> None:
    names = ["pread64", "writev", "fsync", "newfstatat", "close", "some_new_call"]
    with trace([call(name, at) for at, name in enumerate(names)]) as table:
        found = table.order_by("number").to_pyarrow()["series"].to_pylist()
        assert distributions(table, table.duration_ns).keys() == {0, 1, 2, 3, 4}
    assert found == [0, 1, 2, 3, 4, 4]


def test_an_empty_trace_has_no_quantities(trace: OpenTable) -> None:
    with trace([]) as table:
        for found in (
            mix(table),
            shares_of_threads(table),
            largest_files(table, 3),
            largest_accesses(access_patterns(table), 3),
        ):
            assert not found
        assert gaps(table) == {}
        assert all_files(table).files == 0
