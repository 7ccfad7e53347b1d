"""Sweeps of programs on simulated devices in virtual time, whose answers are known."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Any

import pyarrow.csv
import pyarrow.parquet
import pytest
from factory import STATISTICS, run_row, write_run

from iosonar.cli.sweep import app
from iosonar.errors import UsageError, UserError
from iosonar.series import values
from iosonar.series.plan import Point, opened
from iosonar.series.result import Result, read
from iosonar.series.run import run
from iosonar.series.sweep import Sweep, SweepVariable, plan
from iosonar.series.sweep_findings import as_json, findings, table

PROGRAM = "from iosonar.cli.sweep import main; raise SystemExit(main())"
MODEL = "constant=1ms servers=4"
FOUR_SERVERS = ("--simulate", MODEL, "--virtual-time")

CLOSED = """
name = "closed"
about = "Uniform reads, one client"
[set]
depth = 4
span = "100%"
[devices]
target = "$span"
[[stream]]
name = "reads"
closed = true
depth = "$depth"
op = "read"
"""

OPEN = """
name = "open"
about = "Uniform reads at Poisson times"
[set]
rate = 100
[[stream]]
name = "reads"
arrivals = "poisson rate=$rate"
op = "read"
"""


def command(*words: object) -> list[str]:
    return [sys.executable, "-c", PROGRAM, *map(str, words)]


def swept(
    program: Path, vary: SweepVariable, asked: Sequence[int], directory: Path, simulate: str, duration: str = "1s"
) -> dict[str, Any]:
    """The points of a sweep in virtual time, without pictures."""
    asked_for = Sweep(str(program), vary, asked, None, (), simulate, True, duration, ())
    with opened(directory, plan(asked_for)) as series:
        return as_json(vary, sorted(run(series, lambda _: None), key=lambda each: each.value))


def ended(*words: object) -> tuple[int, str, str]:
    """Runs `iosonar sweep` in this process: its exit code, standard output and error."""
    out, error = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(error), pytest.raises(SystemExit) as end:
        app([str(word) for word in words], prog_name="iosonar sweep")
    return int(end.value.code or 0), out.getvalue(), error.getvalue()


def printed(*words: object) -> dict[str, Any]:
    """The JSON of a sweep that must succeed."""
    code, out, error = ended(*words, "--json")
    assert code == 0, error
    found: dict[str, Any] = json.loads(out)
    return found


def refused(*words: object) -> str:
    code, out, error = ended(*words)
    assert code in (1, 2), out
    return error


@pytest.fixture
def closed(tmp_path: Path) -> Path:
    path = tmp_path / "closed.toml"
    path.write_text(CLOSED)
    return path


@pytest.mark.parametrize("kept", [True, False])
def test_a_fake_closed_loop_counts_by_whether_it_kept_its_times(kept: bool, tmp_path: Path) -> None:
    # No request of a closed loop has a time of its own, so `own` says nothing.
    own = {"requests": 0, "delay_us": None, "within_pct": None}
    verdict = {"faithful": None, "kept_times": kept, "sentence": "none", "own": own}
    run = {"fake": "FAKE RESULT: simulated", "statistics": STATISTICS | {"verdict": verdict}}
    path = write_run(tmp_path / "a.replay.parquet", [run_row(n) for n in range(9)], run=run)
    found = read(path, Point("a", 1.0, ()))
    assert (
        found
        and found.fake == "simulated"
        and found.faithful is kept
        and found.marks == ("" if kept else "not faithful")
    )


def test_closed_throughput_grows_with_depth_up_to_the_servers(closed: Path, tmp_path: Path) -> None:
    directory = tmp_path / "four.sweep"
    found = printed(closed, "--depth", "1..16", *FOUR_SERVERS, "--for", "2s", "--output", directory)
    assert [point["depth"] for point in found["points"]] == [1, 2, 4, 8, 16]
    for point in found["points"]:
        assert point["requests_per_s"] == pytest.approx(min(point["depth"], 4) * 1000, rel=0.01)
        assert point["in_flight_by_littles_law"] == pytest.approx(point["depth"], rel=0.01)
        assert point["in_flight_counted"] == pytest.approx(point["depth"], rel=0.01)
        assert point["faithful"] and point["fake"]
    assert found["knee"] == found["optimum"] == found["best"] == "depth-4"
    names = {path.name for path in directory.iterdir()}
    assert {
        "four.g01.sweep.curve.png",
        "four.g02.sweep.throughput.png",
        "four.report.html",
        "depth-16.replay.parquet",
    } <= names
    page = (directory / "four.report.html").read_text()
    assert "2 s for each point" in page and "No p99" not in page
    table = pyarrow.parquet.read_table(directory / "four.points.parquet")
    assert table["requests_per_s"].to_pylist() == [point["requests_per_s"] for point in found["points"]]
    assert pyarrow.csv.read_csv(directory / "four.points.csv").num_rows == 5


def test_each_depth_of_a_sweep_reaches_the_device(closed: Path, tmp_path: Path) -> None:
    directory = tmp_path / "deep.sweep"
    found = swept(closed, SweepVariable.DEPTH, [256, 2048], directory, "constant=10ms servers=4096", "200ms")
    assert [round(point["requests_per_s"], -2) for point in found["points"]] == [25_600, 204_800]
    assert found["best"] == "depth-2048"


def test_options_that_limit_what_a_sweep_varies_are_refused(closed: Path, tmp_path: Path) -> None:
    of = (closed, *FOUR_SERVERS, "--output", tmp_path / "a.sweep")
    for word in ("--depth=16", "--threads=16", "--bottleneck=16"):
        said = refused(*of, "--depth", "1..64", "--", word)
        assert f"{word.partition('=')[0]} after --: the series sets it for each run" in said
    assert "the sweep sets it for each point" in refused(*of, "--depth", "1..64", "--", "--set", "depth=4")
    assert "--depth 100000: at most 65536 requests can be in flight" in refused(*of, "--depth", "1,100000")


def test_in_a_sweep_of_spans_option_depth_is_not_the_programs(closed: Path, tmp_path: Path) -> None:
    asked = Sweep(str(closed), SweepVariable.SPAN, [4096], None, (), MODEL, True, "1s", ("--depth=8",))
    assert plan(asked).command[-2:] == ("--set", "depth=1")


def test_a_sweep_of_rates_says_where_depth_limits_throughput(tmp_path: Path) -> None:
    program = tmp_path / "open.toml"
    program.write_text(OPEN)
    of = ("--simulate", "constant=10ms servers=4096", "--virtual-time", "--for", "500ms", "--output")
    words = (program, "--rate", "1000,3000", *of)
    code, said, _ = ended(*words, tmp_path / "a.sweep")
    assert code == 0 and "waited for room" not in said
    code, said, _ = ended(*words, tmp_path / "b.sweep", "--", "--depth", "16")
    assert code == 0
    assert "Requests waited for room in --depth at rate-1000 (" in said and "rate-3000 (" in said
    assert "limited by --depth" in said


def test_a_burst_beyond_depth_limits_a_point_of_a_sweep(tmp_path: Path) -> None:
    # In flight are few on average, and many waited.
    rows = [run_row(number, delay_reason="depth" if number < 30 else "none") for number in range(100)]
    footer = {"options": {"depth": 512}, "mean_in_flight": 9.0}
    path = write_run(tmp_path / "a.replay.parquet", rows, run=footer | {"statistics": STATISTICS | {"requests": 100}})
    found = read(path, Point("rate-200", 200, ()))
    assert found is not None and found.delayed_by_depth == 30
    assert "Requests waited for room in --depth at rate-200 (30.0 %)" in "".join(findings(SweepVariable.RATE, [found]))
    assert "limited by --depth" in table(SweepVariable.RATE, [found]).rows[0][-1]
    assert "limited" not in table(SweepVariable.DEPTH, [found]).rows[0][-1]


def test_an_open_program_has_the_response_times_of_m_m_1(tmp_path: Path) -> None:
    program = tmp_path / "open.toml"
    program.write_text(OPEN)
    rates = values.rates("100..700/7")
    found = swept(program, SweepVariable.RATE, rates, tmp_path / "mm1.sweep", "exponential=1ms servers=1", "60s")
    for point in found["points"]:
        assert point["response_mean_s"] == pytest.approx(1 / (1000 - point["rate"]), rel=0.1)
        assert point["requests_per_s"] == pytest.approx(point["rate"], rel=0.03)
    # The power is flat around its maximum.
    assert found["knee"] in ("rate-400", "rate-500", "rate-600")
    assert found["optimum"] is None


def test_a_working_set_is_read_one_request_at_a_time(closed: Path, tmp_path: Path) -> None:
    device = tmp_path / "cached.toml"
    device.write_text('service.constant.time = "1ms"\n[read_cache]\nsize = "1M"\ntime = "10us"\n')
    found = swept(closed, SweepVariable.SPAN, values.spans("512k,2M,8M"), tmp_path / "cache.sweep", str(device), "2s")
    means = [point["response_mean_s"] for point in found["points"]]
    # Uniform reads of a working set w hit with the share size / w.
    for mean, misses in zip(means, (0.0, 0.5, 0.875), strict=True):
        assert mean == pytest.approx(misses * 1e-3 + (1 - misses) * 10e-6, rel=0.05, abs=25e-6)
    assert found["points"][0]["in_flight_counted"] == pytest.approx(1, rel=0.01)
    assert found["knee"] is None


def test_finished_points_are_kept_and_values_add_points(closed: Path, tmp_path: Path) -> None:
    directory = tmp_path / "a.sweep"
    swept(closed, SweepVariable.DEPTH, [1, 4], directory, MODEL)
    run = tmp_path / "a.sweep" / "depth-4.replay.parquet"
    before = run.stat().st_mtime_ns, run.read_bytes()
    (tmp_path / "a.sweep" / "depth-1.replay.parquet").write_bytes(run.read_bytes()[:1000])
    found = swept(closed, SweepVariable.DEPTH, [2], directory, MODEL)
    assert [point["requests_per_s"] for point in found["points"]] == pytest.approx([1000, 2000, 4000], rel=0.01)
    assert (run.stat().st_mtime_ns, run.read_bytes()) == before


def test_a_killed_sweep_goes_on_where_it_was(closed: Path, tmp_path: Path) -> None:
    for attempt in range(6):
        directory = tmp_path / f"killed-{attempt}.sweep"
        words = (closed, "--simulate", "constant=1ms", "--for", "1s", "--depth", "1,2,3", "--output", directory)
        process = subprocess.Popen(command(*words), start_new_session=True, stderr=subprocess.DEVNULL)
        while process.poll() is None and not (directory / "depth-2.replay.parquet.journal").exists():
            time.sleep(0.02)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        # On a busy machine, the second run may have ended before this test saw that it began.
        if not (directory / "depth-2.replay.parquet").exists():
            break
    assert not (directory / "depth-2.replay.parquet").exists()
    first = (directory / "depth-1.replay.parquet").stat().st_mtime_ns
    found = printed(*words)
    assert [point["depth"] for point in found["points"]] == [1, 2, 3]
    assert (directory / "depth-1.replay.parquet").stat().st_mtime_ns == first
    assert not list(directory.glob("*.journal"))


def test_a_terminated_sweep_stops_its_run(closed: Path, tmp_path: Path) -> None:
    directory = tmp_path / "ended.sweep"
    words = (closed, "--simulate", "constant=1ms", "--for", "60s", "--depth", "1", "--output", directory)
    process = subprocess.Popen(command(*words), stderr=subprocess.DEVNULL)
    while not (directory / "depth-1.replay.parquet.journal").exists():
        assert process.poll() is None
        time.sleep(0.02)
    second = refused(*words)
    assert "still going on" in second
    process.terminate()
    assert process.wait(30) == 128 + signal.SIGTERM
    assert not list(directory.glob("*.journal"))


def test_other_settings_are_refused(closed: Path, tmp_path: Path) -> None:
    directory = tmp_path / "a.sweep"
    swept(closed, SweepVariable.DEPTH, [1], directory, MODEL)
    with pytest.raises(UserError, match="for was 1s, is 2s"):
        swept(closed, SweepVariable.DEPTH, [1], directory, MODEL, "2s")
    with pytest.raises(UserError, match=r"device was .*servers=4 --virtual-time, is .*servers=8"):
        swept(closed, SweepVariable.DEPTH, [1], directory, "constant=1ms servers=8")
    with pytest.raises(UserError, match="parameter was depth, is span"):
        swept(closed, SweepVariable.SPAN, [4096], directory, MODEL)
    closed.write_text(CLOSED.replace("Uniform reads", "Reads"))
    with pytest.raises(UserError, match="content of the program was"):
        swept(closed, SweepVariable.DEPTH, [1], directory, MODEL)


def test_wrong_command_lines_say_what_is_wrong(closed: Path, tmp_path: Path) -> None:
    out = ("--output", tmp_path / "a.sweep")
    assert "either --target DEV or --simulate MODEL" in refused(closed, "--depth", 1, *out)
    assert "give one of --depth, --rate and --span" in refused(closed, *FOUR_SERVERS, *out)
    assert "asks for something else than a run" in refused(closed, "--depth", 1, *FOUR_SERVERS, *out, "--", "--help")
    assert "has no parameter rate to vary; its parameters: depth, span" in refused(
        closed, "--rate", 100, *FOUR_SERVERS, *out
    )
    assert "the series sets it for each run" in refused(
        closed, "--depth", 1, *FOUR_SERVERS, *out, "--", "--output", "x"
    )
    assert "must end in .sweep" in refused(closed, "--depth", 1, *FOUR_SERVERS, "--output", tmp_path / "a")
    (tmp_path / "b.sweep").mkdir()
    (tmp_path / "b.sweep" / "mine").touch()
    assert "is not the directory of a series" in refused(
        closed, "--depth", 1, *FOUR_SERVERS, "--output", tmp_path / "b.sweep"
    )


def test_a_refused_first_run_leaves_nothing_behind(closed: Path, tmp_path: Path) -> None:
    output, empty = tmp_path / "new" / "parent" / "a.sweep", tmp_path / "empty.sweep"
    empty.mkdir()
    for directory in (output, empty):
        words = (closed, "--depth", "1,2", "--output", directory)
        assert "no-such-model" in refused(*words, "--simulate", "no-such-model")
        assert "asks for something else than a run" in refused(*words, *FOUR_SERVERS, "--", "--help")
    assert not output.parent.parent.exists()
    assert not list(empty.iterdir())
    # Finished points stay.
    swept(closed, SweepVariable.DEPTH, [1], empty, MODEL)
    kept = sorted(empty.iterdir())
    refused(closed, "--depth", "1,2", "--output", empty, "--simulate", "no-such-model")
    assert sorted(empty.iterdir()) == kept


def test_points_too_short_for_a_p99_say_so(closed: Path, tmp_path: Path) -> None:
    directory = tmp_path / "short.sweep"
    device = ("--simulate", "hdd", "--virtual-time", "--for", "100ms")
    words = (closed, "--span", "1M..1T/2", *device, "--output", directory)
    code, out, _ = ended(*words)
    text = "No p99 at 2 of 2 points: it needs 1,000 requests."
    # Terms of the page have explanations.
    page = re.sub("</?abbr[^>]*>", "", (directory / "short.report.html").read_text())
    assert code == 0 and text in out and text in page
    assert (directory / "span-1T.replay.parquet").exists()


def test_values_are_lists_and_ranges() -> None:
    assert values.depths("1..12") == [1, 2, 4, 8, 12]
    assert values.depths("8,1,2,8") == [1, 2, 8]
    assert values.rates("1k..3k/5") == [1000, 1500, 2000, 2500, 3000]
    assert len(values.rates("1k..40k")) == 10
    assert values.spans("1G,1.5M") == [1536 << 10, 1 << 30]
    assert values.spans("1G..4G/3") == [1 << 30, 2 << 30, 4 << 30]
    sizes = (1 << 40, 1536 << 30, 1 << 30, 1536 << 20, 4096)
    assert [values.size_text(each) for each in sizes] == ["1T", "1536G", "1G", "1536M", "4k"]
    for wrong in ("", "0", "a", "4..1", "1..4/1", "1..4/x", "-1", "1e3", "1.4"):
        with pytest.raises(UsageError):
            values.depths(wrong)


def test_all_points_wait_as_the_first_run_chose(closed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[list[str]] = []

    def call(words: Sequence[str], _: int | None = None) -> tuple[int, str, str]:
        wait = "hybrid" if not calls else "spin"
        calls.append(list(words))
        run = {"options": {"wait": wait, "busy_poll": 200_000}, "statistics": {"requests": 1}}
        write_run(Path(words[-1]), [], run=run)
        return 0, "", ""

    def waits(directory: str, depths: Sequence[int], *options: str) -> list[list[str]]:
        calls.clear()
        asked = Sweep(str(closed), SweepVariable.DEPTH, depths, None, ("x.img",), None, False, "1s", options)
        with opened(tmp_path / directory, plan(asked)) as series, monkeypatch.context() as patched:
            patched.setattr("iosonar.series.binary.call", call)
            run(series, lambda _: None)
        return [[word for word in words if word.startswith(("--wait", "--busy-poll"))] for words in calls]

    kept = ["--wait=hybrid", "--busy-poll=200000ns"]
    assert waits("a.sweep", [1, 2, 4]) == [[], kept, kept]
    # Points that are added later, too.
    assert waits("a.sweep", [1, 2, 4, 8]) == [kept]
    assert waits("b.sweep", [1, 2], "--wait=sleep") == [["--wait=sleep"], ["--wait=sleep", "--busy-poll=200000ns"]]


def test_points_of_an_unfilled_target_are_named_and_no_knee(tmp_path: Path) -> None:
    def point(depth: int, zeros: int) -> Result:
        times = {"mean": 100.0, "p50": 100.0, "p99": 200.0}
        verdict = {"faithful": True, "own": {"requests": 1000}}
        counted = {"reads": 1000, "zero_reads": zeros, "iops": depth * 1000.0}
        statistics = {"latency_us": times, "verdict": verdict, **counted}
        path = write_run(tmp_path / f"{depth}.parquet", [], run={"statistics": statistics})
        found = read(path, Point(f"depth-{depth}", depth, ()))
        assert found is not None
        return found

    results = [point(1, 5), point(2, 5), point(4, 900)]
    found = as_json(SweepVariable.DEPTH, results)
    assert [each["unfilled"] for each in found["points"]] == [False, False, True]
    assert found["best"] == "depth-2"
    assert findings(SweepVariable.DEPTH, results)[0].startswith("1 point of 3 read a target that was never filled")
    assert table(SweepVariable.DEPTH, results).rows[-1][-1] == "target not filled"
