"""F07 to F11, and what all findings of calls share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from call_factory import call, read, replayed, write, write_calls, write_calls_run
from call_findings_kit import MS, O_TRUNC, Rows, filler, found_in, found_in_run, synced, threads
from findings_kit import diagnosed, numbers, only, rows_of
from made_calls import made_calls

from iosonar.errors import UsageError
from iosonar.findings.diagnosis import Diagnosis
from iosonar.findings.finding import Finding
from iosonar.library.run import open_run

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


@pytest.mark.parametrize("look", [found_in, found_in_run])
def test_a_fifth_of_the_opens_again_is_found(tmp_path: Path, look: Any) -> None:
    found = only(look(tmp_path, opened(1, 600) + opened(2400, 1) + filler()), "F07")
    assert found.values["share"] == pytest.approx(600 / 3000, abs=0.001)
    assert found.severity == "info"


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


def polled(times: int, made: str = "") -> Rows:
    """A name that is asked for again and again; `made` is a call that makes it in between."""
    rows: Rows = []
    for n in range(times):
        at, who = n * 900, {"file": "/run/stop", "path": "/run/stop"}
        rows.append(call("newfstatat", at, 3, errno=2, result=-1, **who))
        if made:
            rows += [call(made, at + 50, 9, result=4, flags=0o300, **who), call("unlink", at + 400, 9, **who)]
    return rows


@pytest.mark.parametrize("look", [found_in, found_in_run])
def test_the_same_missing_name_again_is_found(tmp_path: Path, look: Any) -> None:
    found = only(look(tmp_path, polled(800) + filler(2000)), "F09")
    assert found.values["failing"] == found.values["again"] == 799
    assert found.values["directories"] == 1


@pytest.mark.parametrize("look", [found_in, found_in_run])
def test_a_search_in_two_directories_is_found(tmp_path: Path, look: Any) -> None:
    found = only(look(tmp_path, searched(400, 3) + filler(2000)), "F09")
    assert found.values["failing"] == 800
    assert found.values["again"] == 0
    assert found.values["share"] == pytest.approx(2 / 3)


def test_a_lock_file_that_is_made_each_time_is_no_search(tmp_path: Path) -> None:
    assert "F09" not in numbers(found_in(tmp_path, polled(800, made="openat") + filler(2000)))


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


def test_pieces_of_a_page_in_sequence_are_found(tmp_path: Path) -> None:
    assert only(found_in(tmp_path, small(2000, 4096) + filler()), "F10").values["mean_bytes"] == 4096


@pytest.mark.parametrize("rows", [small(2000, 8192), small(500, 512), small(2000, 512, 50 * MS)])
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


def test_times_of_an_unfaithful_replay_are_not_looked_at_here(tmp_path: Path) -> None:
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
