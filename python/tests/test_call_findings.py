"""F01 to F06: what was planted is found, with its figures, and clean traces and runs have none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from call_factory import call, read, write
from call_findings_kit import KIB, MS, O_DSYNC, Rows, filler, found_in, found_in_run, synced, threads
from findings_kit import numbers, only, rows_of

# F01 and F02


def test_small_writes_with_o_dsync_are_found(tmp_path: Path) -> None:
    rows = [call("openat", 0, 5, file="/db/log", path="/db/log", flags=O_DSYNC | 1, result=3)]
    rows += [write(n * 10 * MS + 50, "/db/log", n * 4096, 4096, duration_ns=2_000_000) for n in range(200)]
    found = only(found_in(tmp_path, rows + filler()), "F01")
    assert found.values["writes"] == 200
    assert found.values["mean_bytes"] == 4096
    # 200 × 2 ms beside 400 × 400 µs.
    assert found.values["share"] == pytest.approx(0.4 / 0.56, rel=0.01)
    assert found.severity == "warning"
    assert rows_of(found, tmp_path / "a.calls.parquet", view="calls") == 200


def test_the_same_writes_without_the_flag_are_not(tmp_path: Path) -> None:
    rows = [call("openat", 0, 5, file="/db/log", path="/db/log", flags=1, result=3)]
    rows += [write(n * 10 * MS + 50, "/db/log", n * 4096, 4096, duration_ns=2_000_000) for n in range(200)]
    assert "F01" not in numbers(found_in(tmp_path, rows + filler()))


def test_large_synchronous_writes_are_no_finding(tmp_path: Path) -> None:
    rows = [call("openat", 0, 5, file="/db/log", path="/db/log", flags=O_DSYNC | 1, result=3)]
    rows += [write(n * 10 * MS + 50, "/db/log", n << 20, 1 << 20, duration_ns=2_000_000) for n in range(200)]
    assert numbers(found_in(tmp_path, rows + filler())) == []


@pytest.mark.parametrize("look", [found_in, found_in_run])
def test_small_files_that_are_each_synced_are_found(tmp_path: Path, look: Any) -> None:
    rows: Rows = []
    for n in range(150):
        rows += synced(1, 900, name=f"/mail/new/{n}")
        for row in rows[-2:]:
            row["begin_ns"] += round(n * 10 * MS * 1000)
    found = only(look(tmp_path, rows + filler()), "F01")
    assert found.values["syncs"] == 150
    assert found.values["mean_bytes"] == 900
    assert "150 syncs of 150 files make 900 B durable on average" in found.seen


@pytest.mark.parametrize("look", [found_in, found_in_run])
def test_a_sync_after_each_write_is_found(tmp_path: Path, look: Any) -> None:
    found = only(look(tmp_path, synced(300, 8192) + filler()), "F02")
    assert found.values["syncs"] == 300
    assert found.values["share"] == 1
    assert found.values["mean_bytes"] == 8192
    assert found.values["seconds"] == pytest.approx(0.9)
    assert found.severity == "warning"


@pytest.mark.parametrize("rows", [synced(300, 8192, writes=6), synced(20, 8192), synced(300, 1 << 20)])
def test_batched_few_or_large_writes_may_be_synced(tmp_path: Path, rows: Rows) -> None:
    assert numbers(found_in(tmp_path, rows + filler())) == []


@pytest.mark.parametrize("look", [found_in, found_in_run])
def test_a_sync_after_head_and_body_of_a_record_is_found(tmp_path: Path, look: Any) -> None:
    found = only(look(tmp_path, synced(300, 65536, writes=2) + filler()), "F02")
    assert found.values["syncs"] == 300
    assert found.values["writes_each"] == 2
    assert found.values["mean_bytes"] == 131072
    assert "after one write or two" in found.seen


def test_syncs_that_take_no_time_are_only_information(tmp_path: Path) -> None:
    assert only(found_in(tmp_path, synced(300, 8192, sync_us=2) + filler()), "F02").severity == "info"


# F03


def walk(count: int, per_file: int = 1, took_us: float = 100, size: int = 128 * KIB) -> Rows:
    rows: Rows = []
    for n in range(count):
        at, name = n * 2 * MS, f"/tree/{n // 50}/{n}"
        rows += [call("newfstatat", at + part, took_us, file=name, path=name) for part in range(per_file)]
        rows.append(call("openat", at + 300, took_us, file=name, path=name, result=3))
        rows.append(read(at + 500, name, 0, size, duration_ns=20_000))
    return rows


@pytest.mark.parametrize("look", [found_in, found_in_run])
def test_a_metadata_storm_is_found(tmp_path: Path, look: Any) -> None:
    found = only(look(tmp_path, walk(3000)), "F03")
    assert found.values["calls"] == 6000
    assert found.values["share"] == pytest.approx(2 / 3)
    assert found.values["time_share"] == pytest.approx(200 / 220)
    assert found.values["names"] == 3000


def test_few_calls_on_names_are_no_storm(tmp_path: Path) -> None:
    assert numbers(found_in(tmp_path, walk(500))) == []


def test_opening_each_file_now_and_then_is_no_storm(tmp_path: Path) -> None:
    """Half of the calls open a file, but all of that takes 0.2 % of the time."""
    rows: Rows = []
    for n in range(6000):
        at, name = n * 4 * MS, f"/srv/{n}"
        rows.append(call("openat", at, 8, file=name, path=name, result=3))
        rows.append(read(at + 20, name, 0, 8192, duration_ns=5_000))
    assert numbers(found_in(tmp_path, rows)) == []
    for row in rows:
        row["duration_ns"] *= 10
    assert numbers(found_in(tmp_path, rows)) == ["F03"]


def test_names_beside_much_data_are_no_storm(tmp_path: Path) -> None:
    rows = walk(2600, took_us=1)
    more = [
        read(row["begin_ns"] / 1000 + part, row["file"], 1 << (17 + part), 1 << 17, duration_ns=400_000)
        for row in rows
        if row["call"] == "read"
        for part in (1, 2)
    ]
    assert "F03" not in numbers(found_in(tmp_path, rows + more))


# F04


def passed_on(count: int, delay_us: float, reader: int = 1) -> Rows:
    """A file that is written in pieces of 64 KiB, each read in pieces of 16 KiB later."""
    rows: Rows = []
    for n in range(count):
        at = n * 5 * MS
        rows.append(write(at, "/tmp/sort", n << 16, 1 << 16, duration_ns=30_000))
        rows += [
            read(
                at + delay_us + 50 * part,
                "/tmp/sort",
                (n << 16) + (part << 14),
                1 << 14,
                process=reader,
                thread=reader,
                duration_ns=20_000,
            )
            for part in range(4)
        ]
    return rows


def test_reads_of_just_written_data_are_found(tmp_path: Path) -> None:
    found = only(found_in(tmp_path, passed_on(200, 1000)), "F04")
    assert found.values["reads"] == 800
    assert found.values["bytes"] == 200 << 16
    assert found.values["share"] == 1
    assert found.values["age_s"] == pytest.approx(1.075e-3, rel=1e-3)
    assert found.evidence.diagram == "offset.1"


def test_a_replay_has_reads_of_just_written_data_by_thread(tmp_path: Path) -> None:
    assert only(found_in_run(tmp_path, passed_on(200, 1000)), "F04").values["reads"] == 800


@pytest.mark.parametrize("rows", [passed_on(200, 1000, reader=2), passed_on(200, 8e6), passed_on(20, 1000)])
def test_other_processes_old_data_and_few_reads_are_no_finding(tmp_path: Path, rows: Rows) -> None:
    assert "F04" not in numbers(found_in(tmp_path, rows))


def test_reads_beside_what_was_written_are_no_finding(tmp_path: Path) -> None:
    rows = passed_on(200, 1000)
    for row in rows:
        if row["call"] == "read":
            row["position"] += 300 << 20
    assert "F04" not in numbers(found_in(tmp_path, rows))


# F05


def shuffled(blocks: int, reads: int, seed: int = 1) -> Rows:
    draw = np.random.default_rng(seed)
    order = draw.permutation(blocks)[:reads] if reads <= blocks else draw.integers(0, blocks, reads)
    return [read(n * 300, "/data/train", int(at) * 4096, 4096, duration_ns=200_000) for n, at in enumerate(order)]


@pytest.mark.parametrize("look", [found_in, found_in_run])
def test_a_file_read_whole_at_random_is_found(tmp_path: Path, look: Any) -> None:
    found = only(look(tmp_path, shuffled(2000, 2000)), "F05")
    assert found.values == {
        "reads": 2000,
        "files": 1,
        "bytes": 2000 * 4096,
        "covered": 1,
        "seconds": pytest.approx(0.4),
    }


@pytest.mark.parametrize("rows", [shuffled(2000, 1000), shuffled(2000, 20_000), shuffled(200, 200)])
def test_lookups_in_a_part_or_again_are_no_finding(tmp_path: Path, rows: Rows) -> None:
    assert "F05" not in numbers(found_in(tmp_path, rows))


def test_a_sequential_file_is_no_finding(tmp_path: Path) -> None:
    rows = [read(n * 300, "/data/train", n << 16, 1 << 16, duration_ns=200_000) for n in range(2000)]
    assert numbers(found_in(tmp_path, rows)) == []


def written_then_read(reads: int, in_order: bool = True, seed: int = 2) -> Rows:
    """A file of 64 MiB that is written in pieces of 1 MiB; 20 s later, 8 KiB are read at random places."""
    draw = np.random.default_rng(seed)
    places = np.arange(64) if in_order else draw.permutation(64)
    rows = [write(n * MS, "/data/part", int(at) << 20, 1 << 20, duration_ns=500_000) for n, at in enumerate(places)]
    for n in range(reads):
        at = 20e6 + n * 500
        rows.append(read(at, "/data/part", int(draw.integers(0, 8192)) * 8192, 8192, duration_ns=200_000))
    return rows


@pytest.mark.parametrize("look", [found_in, found_in_run])
def test_jumps_that_cost_more_than_the_file_are_found(tmp_path: Path, look: Any) -> None:
    found = only(look(tmp_path, written_then_read(1500)), "F05")
    assert found.values["reads"] == 1500
    # Of 8192 places, 1500 draws meet 8192 × (1 - exp(-1500 / 8192)).
    assert found.values["covered"] == pytest.approx(0.167, abs=0.01)
    assert "written in sequence" in found.why_sure


@pytest.mark.parametrize("rows", [written_then_read(400), written_then_read(1500, in_order=False)])
def test_few_lookups_and_tables_are_no_finding(tmp_path: Path, rows: Rows) -> None:
    assert "F05" not in numbers(found_in(tmp_path, rows))


# F06


@pytest.mark.parametrize("look", [found_in, found_in_run])
def test_a_thread_that_holds_back_the_others_is_found(tmp_path: Path, look: Any) -> None:
    found = only(look(tmp_path, threads(follow=True)), "F06")
    assert found.values["thread"] == 7
    assert found.values["threads"] == 4
    assert found.values["busy"] == pytest.approx(0.8, rel=0.01)
    assert found.values["during"] == 0


def test_a_thread_in_the_background_holds_back_none(tmp_path: Path) -> None:
    assert numbers(found_in(tmp_path, threads(follow=False))) == []
