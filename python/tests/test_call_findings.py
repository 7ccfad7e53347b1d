"""Findings of calls to files: what was planted is found, with its figures, and clean traces and runs have none."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from call_factory import call, read, replayed, write, write_calls, write_calls_run
from findings_kit import diagnosed, numbers, only, rows_of
from made_calls import made_calls

from iosonar.findings.diagnosis import Diagnosis
from iosonar.findings.finding import Finding
from iosonar.library.run import open_run

MS, KIB = 1000.0, 1024
O_DSYNC, O_TRUNC = 0o10000, 0o1000
Rows = list[dict[str, Any]]


def found_in(path: Path, rows: Sequence[dict[str, Any]], **footer: Any) -> Diagnosis:
    """The findings of a trace."""
    in_order = sorted(rows, key=lambda row: int(row["begin_ns"]))
    return diagnosed(write_calls(path / "a.calls.parquet", in_order, **footer))


def found_in_run(path: Path, rows: Sequence[dict[str, Any]], **footer: Any) -> Diagnosis:
    """The findings of a faithful replay of a trace, with its durations."""
    in_order = sorted(rows, key=lambda row: int(row["begin_ns"]))
    of_run = []
    for number, row in enumerate(in_order):
        run = replayed(number, row["call"], row["begin_ns"] / 1000, path=row.get("file"), thread=row["thread"])
        run |= {name: row.get(name) for name in ("position", "length", "result", "errno")}
        run |= {"expected_result": row["result"], "expected_errno": row["errno"]}
        run["completed_ns"] = run["issued_ns"] + row["duration_ns"]
        of_run.append(run | {"expected_duration_ns": row["duration_ns"]})
    return diagnosed(write_calls_run(path / "a.calls-run.parquet", of_run, run={"options": {}} | footer))


def filler(count: int = 400, every_us: float = 10 * MS) -> Rows:
    """A sequential reader with pieces of 128 KiB."""
    return [
        read(every_us * n + 3, "/data/film", n << 17, 1 << 17, duration_ns=400_000, thread=9, process=9)
        for n in range(count)
    ]


def synced(count: int, size: int, writes: int = 1, sync_us: float = 3 * MS, name: str = "/db/log") -> Rows:
    """A log with `writes` writes before each sync."""
    rows: Rows = []
    for n in range(count):
        at = n * 10 * MS
        for part in range(writes):
            rows.append(write(at + part * 20, name, (n * writes + part) * size, size, duration_ns=10_000))
        rows.append(call("fdatasync", at + writes * 20 + 20, sync_us, file=name, fd=3))
    return rows


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


def test_a_replay_has_reads_of_just_written_data_by_thread(tmp_path: Path) -> None:
    assert only(found_in_run(tmp_path, passed_on(200, 1000)), "F04").values["reads"] == 800


@pytest.mark.parametrize("rows", [passed_on(200, 1000, reader=2), passed_on(200, 20e6), passed_on(20, 1000)])
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
    rows = [read(n * 300, "/data/train", n * 4096, 4096, duration_ns=200_000) for n in range(2000)]
    assert numbers(found_in(tmp_path, rows)) == []


# F06


def threads(follow: bool, waited_ns: int | None = None, seed: int = 3) -> Rows:
    """A thread that writes 300 pieces of 4 ms, and three others with reads after them, or at any time."""
    draw = np.random.default_rng(seed)
    rows = [
        write(n * 5 * MS, "/db/log", n << 17, 1 << 17, duration_ns=4_000_000, process=7, thread=7) for n in range(300)
    ]
    for n in range(300):
        at = n * 5 * MS + (4 * MS + 100 if follow else float(draw.uniform(0, 5 * MS)))
        who = {"process": 7, "thread": 8 + n % 3, "duration_ns": 30_000}
        rows.append(read(at, f"/db/{n % 3}", n << 17, 1 << 17, **who))
    return rows


@pytest.mark.parametrize("look", [found_in, found_in_run])
def test_a_thread_that_holds_back_the_others_is_found(tmp_path: Path, look: Any) -> None:
    found = only(look(tmp_path, threads(follow=True)), "F06")
    assert found.values["thread"] == 7
    assert found.values["threads"] == 4
    assert found.values["busy"] == pytest.approx(0.8, rel=0.01)
    assert found.values["during"] == 0


def test_a_thread_in_the_background_holds_back_none(tmp_path: Path) -> None:
    assert numbers(found_in(tmp_path, threads(follow=False))) == []


# F07 and F08


def opened(files: int, times: int, flags: int = 0, processes: bool = False) -> Rows:
    return [
        call(
            "openat",
            (n * files + k) * 900,
            4,
            file=f"/etc/app/{k}",
            path=f"/etc/app/{k}",
            result=3,
            flags=flags,
            process=n if processes else 1,
            thread=n if processes else 1,
        )
        for n in range(times)
        for k in range(files)
    ]


@pytest.mark.parametrize("look", [found_in, found_in_run])
def test_repeated_opens_are_found(tmp_path: Path, look: Any) -> None:
    found = only(look(tmp_path, opened(3, 300) + filler()), "F07")
    assert found.values == {"opens": 900, "files": 3, "share": 1, "most": 300}


@pytest.mark.parametrize(
    "rows", [opened(3, 50), opened(3, 300, O_TRUNC), opened(3, 300, processes=True), opened(900, 1)]
)
def test_few_opens_new_files_and_other_processes_are_no_finding(tmp_path: Path, rows: Rows) -> None:
    assert "F07" not in numbers(found_in(tmp_path, rows + filler()))


def asked(files: int, times: int, every_us: float = 500, between: str = "") -> Rows:
    rows: Rows = []
    for n in range(times):
        for k in range(files):
            at, name = (n * files + k) * every_us, f"/etc/app/{k}"
            rows.append(call("newfstatat", at, 3, file=name, path=name))
            if between:
                rows.append(call(between, at + 20, 3, file=name, path=name))
    return rows


@pytest.mark.parametrize("look", [found_in, found_in_run])
def test_repeated_stats_are_found(tmp_path: Path, look: Any) -> None:
    found = only(look(tmp_path, asked(4, 600) + filler(2000)), "F08")
    assert found.values["again"] == 4 * 599
    assert found.values["files"] == 4
    assert found.values["share"] == pytest.approx(599 / 600)


@pytest.mark.parametrize("rows", [asked(4, 200), asked(1000, 3), asked(1, 1500, 2e6), asked(4, 600, between="chmod")])
def test_few_rare_or_needed_stats_are_no_finding(tmp_path: Path, rows: Rows) -> None:
    assert "F08" not in numbers(found_in(tmp_path, rows + filler(3000)))


# F09


def searched(names: int, directories: int, errno: int = 2) -> Rows:
    rows: Rows = []
    for n in range(names):
        for k in range(directories):
            path, last = f"/lib/{k}/module{n}.py", k == directories - 1
            rows.append(
                call(
                    "openat",
                    (n * directories + k) * 400,
                    4,
                    file=path,
                    path=path,
                    errno=0 if last else errno,
                    result=3 if last else -1,
                )
            )
    return rows


@pytest.mark.parametrize("look", [found_in, found_in_run])
def test_a_search_in_many_directories_is_found(tmp_path: Path, look: Any) -> None:
    found = only(look(tmp_path, searched(100, 10) + filler(2000)), "F09")
    assert found.values["failing"] == 900
    assert found.values["share"] == pytest.approx(0.9)
    assert found.values["directories"] == 9
    assert found.values["names"] == 100


@pytest.mark.parametrize("rows", [searched(30, 10), searched(900, 2), searched(100, 10, errno=13)])
def test_few_misses_one_directory_or_no_rights_are_no_finding(tmp_path: Path, rows: Rows) -> None:
    assert "F09" not in numbers(found_in(tmp_path, rows + filler()))


# F10


def small(count: int, size: int, every_us: float = 100, kind: Any = read) -> Rows:
    return [kind(n * every_us, "/data/lines", n * size, size, duration_ns=2_000) for n in range(count)]


@pytest.mark.parametrize("look", [found_in, found_in_run])
@pytest.mark.parametrize("kind", [read, write])
def test_small_sequential_calls_are_found(tmp_path: Path, look: Any, kind: Any) -> None:
    found = only(look(tmp_path, small(2000, 512, kind=kind) + filler()), "F10")
    assert found.values["calls"] == 1999
    assert found.values["mean_bytes"] == 512
    assert found.values["reads"] == (1999 if kind is read else 0)


@pytest.mark.parametrize("rows", [small(2000, 4096), small(500, 512), small(2000, 512, 50 * MS)])
def test_buffered_few_or_slow_lines_are_no_finding(tmp_path: Path, rows: Rows) -> None:
    assert "F10" not in numbers(found_in(tmp_path, rows))


def test_small_calls_at_random_cannot_be_joined(tmp_path: Path) -> None:
    draw = np.random.default_rng(5)
    rows = [read(n * 100, "/db/t", int(draw.integers(0, 1 << 20)) * 512, 512, duration_ns=2_000) for n in range(3000)]
    assert "F10" not in numbers(found_in(tmp_path, rows))


# F11


def two_mounts(slow_us: float, seed: int = 4) -> Rows:
    draw = np.random.default_rng(seed)
    return [
        read(
            n * 3 * MS,
            f"/{where}/data/{n % 20}",
            n // 20 << 17,
            1 << 17,
            duration_ns=round(1000 * took * float(draw.lognormal(0, 0.3))),
        )
        for n in range(600)
        for where, took in [("nfs/home", slow_us) if n % 4 == 0 else ("local/fast", 100.0)]
    ]


@pytest.mark.parametrize("look", [found_in, found_in_run])
def test_a_slow_mount_is_found(tmp_path: Path, look: Any) -> None:
    found = only(look(tmp_path, two_mounts(2000)), "F11")
    assert "below /nfs/home/data take" in found.seen
    assert found.values["factor"] == pytest.approx(20, rel=0.1)
    assert found.values["calls"] == 150


def test_a_slow_file_is_found(tmp_path: Path) -> None:
    rows = [
        read(
            n * 3 * MS,
            "/data/old" if n % 3 == 0 else f"/data/{n % 30}",
            n << 17,
            1 << 17,
            duration_ns=3_000_000 if n % 3 == 0 else 100_000,
        )
        for n in range(600)
    ]
    found = only(found_in(tmp_path, rows), "F11")
    assert "of /data/old take" in found.seen
    assert found.values["factor"] == pytest.approx(30)


@pytest.mark.parametrize("slow_us", [100, 200])
def test_equal_mounts_are_no_finding(tmp_path: Path, slow_us: float) -> None:
    assert numbers(found_in(tmp_path, two_mounts(slow_us))) == []


def test_a_stall_is_no_slow_place(tmp_path: Path) -> None:
    rows = two_mounts(100)
    rows[0]["duration_ns"] = 2_000_000_000
    assert "F11" not in numbers(found_in(tmp_path, rows))


def test_larger_reads_are_no_slow_place(tmp_path: Path) -> None:
    rows = [
        read(
            n * 3 * MS,
            "/a/x" if n % 3 == 0 else "/b/y",
            n << 20,
            1 << 20 if n % 3 == 0 else 1 << 16,
            duration_ns=1_600_000 if n % 3 == 0 else 100_000,
        )
        for n in range(600)
    ]
    assert "F11" not in numbers(found_in(tmp_path, rows))


# All of them


def test_times_of_an_unfaithful_replay_of_calls_are_not_looked_at(tmp_path: Path) -> None:
    verdict = {"faithful": False, "sentence": "NOT faithful: 12 % within 50 µs"}
    found = found_in_run(tmp_path, two_mounts(2000), statistics={"verdict": verdict})
    assert dict(found.not_checked) == {"F06": "the replay was not faithful", "F11": "the replay was not faithful"}
    assert numbers(found) == []


def test_a_generated_trace_has_no_times(tmp_path: Path) -> None:
    found = found_in(tmp_path, threads(follow=True), source={"format": "generated"})
    assert {number for number, _ in found.not_checked} == {"F06", "F11"}


def test_times_of_strace_are_said_to_be_so(tmp_path: Path) -> None:
    found = only(found_in(tmp_path, synced(300, 8192), source={"format": "strace"}), "F02")
    assert found.severity == "info"
    assert "strace slows down each call" in found.why_sure


def test_a_file_without_calls_is_not_looked_at(tmp_path: Path) -> None:
    assert len(found_in(tmp_path, []).not_checked) == 11


def test_hostile_names_are_shown_and_can_be_queried(tmp_path: Path) -> None:
    found = only(found_in(tmp_path, opened_as("/a'b\x1b[31m\n/\u202ec; DROP TABLE x --", 600) + filler()), "F07")
    assert "\x1b" not in found.seen and "\\x1b[31m" in found.seen
    assert not {"\x1b", "\n", "\u202e"} & set(found.evidence.filter)
    assert rows_of(found, tmp_path / "a.calls.parquet", view="calls") == 600


def opened_as(name: str, times: int) -> Rows:
    return [call("openat", n * 900, 4, file=name, path=name, result=3) for n in range(times)]


def test_a_threshold_of_calls_can_be_set(tmp_path: Path) -> None:
    path = write_calls(tmp_path / "a.calls.parquet", synced(300, 8192))
    assert "F02" in numbers(diagnosed(path))
    assert "F02" not in numbers(diagnosed(path, thresholds={"F02": {"syncs": 500}}))


def test_several_files_of_calls_are_diagnosed_one_by_one(tmp_path: Path) -> None:
    from iosonar.errors import UsageError

    trace = write_calls(tmp_path / "a.calls.parquet", filler())
    run = write_calls_run(tmp_path / "a.calls-run.parquet", [replayed(0, "read", 0)], run={"options": {}})
    with open_run(trace, run, original="none") as both, pytest.raises(UsageError, match="one by one"):
        both.diagnose()


@pytest.mark.parametrize("seed", [1, 2])
def test_a_busy_server_syncs_on_purpose(tmp_path: Path, seed: int) -> None:
    """Only the log of the made-up database: one write before each sync."""
    found = found_in(tmp_path, made_calls(20, seed=seed))
    assert numbers(found) == ["F02"]
    assert by_number(found, "F02").evidence.diagram == "response.sync"


def by_number(found: Diagnosis, number: str) -> Finding:
    return only(found, number)
