from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path

import pytest
from call_factory import read, replayed, write_calls, write_calls_run
from factory import load_row, write_load
from made_calls import made_calls, made_replay
from test_report import report

import iosonar
from iosonar.cli.compare import app as compare_app
from iosonar.quantities.distribution import pooled
from iosonar.quantities.percentiles import share_of
from iosonar.study.base import Options
from iosonar.study.calls import CallStudy
from iosonar.table.calls import open_calls


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_calls(
        tmp_path_factory.mktemp("calls") / "shop.calls.parquet", made_calls(5), command=["shop", "--now"]
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows = made_replay(made_calls(5))
    footer = {
        "options": {"order": "fs", "timing": "exact"},
        "root": {"path": "/mnt/test", "mount": {"file_system": "xfs"}},
    }
    return write_calls_run(tmp_path_factory.mktemp("calls") / "shop.calls-run.parquet", rows, run=footer)


def compare(*words: object) -> int:
    with pytest.raises(SystemExit) as ended:
        compare_app([str(word) for word in words], prog_name="iosonar compare")
    return int(ended.value.code or 0)


@pytest.mark.slow
def test_the_page_of_a_trace(trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert report(trace, "--out", tmp_path) == 0
    page = (tmp_path / "shop.calls.report.html").read_text()
    for text in ("Response time over time", "Access patterns", "sequential with gaps", "shop --now", "newfstatat"):
        assert text in page
    assert "delay, compute_error not drawn: not a run" in capsys.readouterr().err


def test_the_page_of_a_comparison(trace: Path, run: Path, tmp_path: Path) -> None:
    # The original is the first side, whatever the order of the names.
    assert compare(run, trace, "--out", tmp_path) == 0
    page = (tmp_path / "shop.compare.html").read_text()
    for text in ("B (shop) against A (shop)", "Side by side", "another result", "shop (fs, exact)", "/mnt/test (xfs)"):
        assert text in page


def test_the_original_has_the_calls_that_its_run_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # The run began in the middle, ignored a file, and had no times to keep.
    calls = [read(10 * number, "/a", 0, 1, duration_ns=1000 * (number + 1)) for number in range(10)]
    trace = write_calls(tmp_path / "t.calls.parquet", calls)
    rows = [replayed(number, "read", 10 * (number - 4), delay_reason="thread") for number in range(4, 10)]
    rows[3] |= {"issued_ns": None, "completed_ns": None, "outcome": "ignored"}
    rows[0]["delay_reason"] = "none"
    footer = {"trace": "t.calls.parquet", "trace_zero_ns": 40_000, "options": {"order": "thread", "timing": "asap"}}
    run = write_calls_run(tmp_path / "r.calls-run.parquet", rows, run=footer)
    assert compare(trace, run, "--out", tmp_path) == 0
    printed = capsys.readouterr()
    assert "A · t: 1 trace, 10 calls" in printed.out
    assert "B against A: without 5 calls of A that the runs left out" in printed.out
    # The numbers first; what is not drawn is one line.
    assert printed.err.startswith("not drawn: ") and printed.err.count("\n") == 1
    assert "delay, compute_error (with asap timing, calls have no times to keep)" in printed.err
    page = (tmp_path / "t.compare.html").read_text()
    assert "without 5 calls of A that the runs left out" in page
    assert "t: 5 calls of 1 thread on 1 file, recorded over 60" in page

    assert report(run, "--out", tmp_path) == 0
    assert "Delay p50" not in (tmp_path / "r.calls-run.report.html").read_text()


def of_strace(tmp_path: Path, **footer: object) -> tuple[Path, Path]:
    """A trace, and a run of it whose calls take 2 µs in place of 50."""
    calls = [read(100 * number, "/a", 0, 1, duration_ns=50_000) for number in range(300)]
    trace = write_calls(tmp_path / "t.calls.parquet", calls, **footer)
    rows = [replayed(number, "read", 100 * number, 5, delay_reason="none") for number in range(300)]
    run = {"trace": "t.calls.parquet", "options": {"order": "thread", "timing": "exact"}}
    return trace, write_calls_run(tmp_path / "r.calls-run.parquet", rows, run=run, **footer)


@pytest.mark.parametrize("footer", [{"recorder": "strace"}, {"source": {"format": "strace"}}])
def test_times_of_strace_and_of_a_replay_are_not_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], footer: dict[str, object]
) -> None:
    trace, run = of_strace(tmp_path, **footer)
    assert compare(trace, run, "--out", tmp_path, "--fail-if", "p50 > +10%") == 4
    printed = capsys.readouterr()
    assert "B against A: strace took the times of t, and slowed its calls down: only their results" in printed.out
    assert "not comparable" in printed.out and "-9" not in printed.out.replace(str(tmp_path), "")
    assert "not replays of the same trace" not in printed.out
    assert "the times of the two sides cannot be compared" in printed.err
    page = (tmp_path / "t.compare.html").read_text()
    assert "strace took the times of t" in page and "against the original" not in page
    assert compare(trace, run, "--out", tmp_path, "--json") == 0
    (compared,) = json.loads(capsys.readouterr().out)["comparisons"]
    assert compared["incomparable"].startswith("strace took the times of t")
    assert {one["change"] for one in compared["differences"]} == {None}
    assert report(run, "--out", tmp_path) == 0
    assert "Times of strace:" in (tmp_path / "r.calls-run.report.html").read_text()


def test_times_of_a_generated_trace_are_no_measurement(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace, run = of_strace(tmp_path, recorder="generated")
    assert report(trace, "--out", tmp_path) == 0
    page = (tmp_path / "t.calls.report.html").read_text().replace("\u00a0", " ")
    assert "generated over " in page and "recorded over" not in page
    assert "the times that its calls take are placeholders" in page
    for text in ("Response time p50", "Time in calls", "Distribution of response times", "Response times"):
        assert text not in page, text
    capsys.readouterr()
    # Neither beside a replay, nor on the page of a replay.
    assert compare(trace, run, "--out", tmp_path, "--fail-if", "p50 > +10%") == 4
    assert "B against A: t was generated: the times that its calls take are placeholders" in capsys.readouterr().out
    assert report(run, "--out", tmp_path) == 0
    page = (tmp_path / "r.calls-run.report.html").read_text()
    assert "Response time p50" in page and "original, t.calls.parquet, was generated" in page


def test_a_trace_is_compared_with_a_replay_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace, run = of_strace(tmp_path, recorder="ebpf")
    assert compare(trace, run, "--out", tmp_path) == 0
    printed = capsys.readouterr().out
    assert "-96.0 %" in printed and "not replays of the same trace" not in printed
    assert "strace" not in (tmp_path / "t.compare.html").read_text()


def test_runs_of_different_traces_are_named(
    repeated: dict[str, list[Path]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    footer = {"trace": "/srv/u.calls.parquet", "options": {"order": "conservative", "timing": "exact"}}
    other = write_calls_run(tmp_path / "u.calls-run.parquet", made_replay(made_calls(5)), run=footer)
    assert compare(repeated["a"][0], other, "--out", tmp_path) == 0
    text = (
        "these files are of different traces, whose calls are not the same: a0 of t.calls.parquet; u of u.calls.parquet"
    )
    assert text in capsys.readouterr().out
    assert text in (tmp_path / "a0.compare.html").read_text()


def test_a_picture_and_its_numbers(run: Path, tmp_path: Path) -> None:
    assert report(run, "--out", tmp_path, "--format", "svg", "--only", "delay", "--data", "csv") == 0
    assert (tmp_path / "shop.calls-run.f13.delay.svg").exists()
    head = (tmp_path / "shop.calls-run.f13.delay.csv").read_text().splitlines()[0]
    assert head == '"series","delay_s","share_of_the_calls_that_were_not_held_back_pct"'


@pytest.mark.slow
def test_mismatches_are_named(tmp_path: Path) -> None:
    rows = [replayed(0, "read", 0, outcome="fewer"), replayed(1, "read", 1)]
    run = write_calls_run(tmp_path / "r.calls-run.parquet", rows)
    assert report(run, "--out", tmp_path) == 0
    page = (tmp_path / "r.calls-run.report.html").read_text()
    assert "1 call (50.0\u00a0%) had another result than in the original." in page
    assert "fewer bytes than in the original" in page


@pytest.mark.slow
def test_the_verdict_and_the_proof_of_the_order_are_on_the_page(tmp_path: Path) -> None:
    statistics = {
        "verdict": {"faithful": False, "sentence": "This replay was not faithful."},
        "order": {"pairs": 12, "violations": 0, "missing": 0, "reorderable_share": 0.25},
    }
    run = write_calls_run(tmp_path / "r.calls-run.parquet", [replayed(0, "read", 0)], run={"statistics": statistics})
    assert report(run, "--out", tmp_path) == 0
    page = (tmp_path / "r.calls-run.report.html").read_text()
    assert "This replay was not faithful." in page
    assert "proven for 12 pairs of calls. 25.0\u00a0% of the calls" in page


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--device", "sda"], "--device: not for calls to files"),
        (["--only", "mixx"], "no diagram is called 'mixx'; did you mean mix?"),
    ],
)
def test_wrong_options_are_refused_with_a_reason(
    trace: Path, tmp_path: Path, words: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert report(trace, "--out", tmp_path, *words) == 2
    assert reason in capsys.readouterr().err


def test_wrong_sets_of_files_are_refused_with_a_reason(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    load = write_load(tmp_path / "b.load.parquet", [load_row(0)])
    other = write_calls(tmp_path / "u.calls.parquet", [read(0, "/a", 0, 1)])
    for files, reason in (
        ((trace, load), "is a load, not of calls: make a separate report of it"),
        ((trace, other), "several traces of calls"),
        ((trace, trace), "is named twice"),
    ):
        assert report(*files, "--out", tmp_path) != 0
        assert reason in capsys.readouterr().err


@pytest.fixture(scope="module")
def repeated(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Path]]:
    """Three replays of a trace, three of the same, and three that are 1.5 times as slow."""
    directory = tmp_path_factory.mktemp("repeated")
    calls = made_calls(5)
    footer = {"trace": "t.calls.parquet", "options": {"order": "conservative", "timing": "exact"}}
    return {
        side: [
            write_calls_run(
                directory / f"{side}{number}.calls-run.parquet",
                made_replay(calls, slower, seed),
                run=footer | {"started_unix_ns": seed},
            )
            for number in range(3)
            for seed in [100 * place + number + 1]
        ]
        for place, (side, slower) in enumerate({"a": 1.0, "b": 1.0, "c": 1.5}.items())
    }


def test_a_condition_on_groups_of_replays_of_calls(
    repeated: dict[str, list[Path]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    condition = ("--fail-if", "p50 > +10%", "--out", tmp_path, "--overwrite")
    assert compare(*repeated["a"], "vs", *repeated["c"], *condition) == 3
    printed = capsys.readouterr()
    assert "p50 > +10% holds for B: +" in printed.err
    assert "95 % interval" in printed.out and "calls/s" in printed.out
    assert compare(*repeated["a"], "vs", *repeated["b"], *condition, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [len(side["files"]) for side in found["sides"]] == [3, 3]
    (each,) = found["comparisons"]
    assert (each["pairing"], each["same_load"], each["left_out"]) == ("paired", True, 0)
    assert {one["metric"] for one in each["differences"]} >= {"p50", "p99", "mean"}
    # Of a single run per side, nothing is claimed.
    assert compare(repeated["a"][0], repeated["c"][0], *condition) == 4


def test_the_page_of_repetitions_shows_all_of_them(repeated: dict[str, list[Path]], tmp_path: Path) -> None:
    assert compare(*repeated["a"], "vs", *repeated["c"], "--out", tmp_path) == 0
    page = (tmp_path / "a0.compare.html").read_text().replace("\u00a0", " ")
    assert "<h1>B (c0, c1, c2) against A (a0, a1, a2)</h1>" in page
    for text in ("95 % interval", "slower at p50 (+", "Numbers are of all runs", "a2.calls-run.parquet", "c2 ("):
        assert text in page, text
    # Its inputs are all files.
    assert compare(repeated["a"][0], "vs", *repeated["c"], "--out", tmp_path) == 1


def test_a_page_of_two_replays_names_none_the_original(
    repeated: dict[str, list[Path]], run: Path, tmp_path: Path
) -> None:
    assert report(repeated["a"][0], run, "--out", tmp_path) == 0
    assert "<h1>a0, shop</h1>" in (tmp_path / "a0.compare.html").read_text()


def test_doubtful_replays_of_calls_allow_no_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def runs(side: str, took_us: int, run: dict[str, object]) -> list[Path]:
        rows = [replayed(number, "read", 100 * number) for number in range(300)]
        for row in rows:
            row["completed_ns"] = row["issued_ns"] + took_us * 1000
        paths = [tmp_path / f"{side}{number}.calls-run.parquet" for number in range(3)]
        footers = [run | {"trace": "t", "started_unix_ns": 10 * took_us + number} for number in range(3)]
        return [write_calls_run(path, rows, run=footer) for path, footer in zip(paths, footers, strict=True)]

    missed = {"statistics": {"verdict": {"faithful": False, "sentence": "This replay was not faithful."}}}
    a = runs("a", 2, missed | {"options": {"order": "thread", "timing": "exact"}})
    b = runs("b", 9, {"options": {"order": "thread", "timing": "asap"}})
    words = (*a, "vs", *b, "--out", tmp_path, "--overwrite")
    assert compare(*words, "--fail-if", "throughput < -10%") == 4
    printed = capsys.readouterr()
    doubt = "the runs are not replays of the same trace in the same order and timing"
    for text in (
        f"No verdict on the storage: a replay was not faithful and {doubt}.",
        "slower (no verdict)",
        f"B against A: {doubt}",
    ):
        assert text in printed.out, text
    assert "the runs did not all replay the same load in the same way" in printed.err
    assert "No verdict on the storage" in (tmp_path / "a0.compare.html").read_text()
    assert compare(*words, "--json") == 0
    (found,) = json.loads(capsys.readouterr().out)["comparisons"]
    assert found["doubts"] == ["a replay was not faithful", doubt]
    assert found["throughput"]["finding"] == "not comparable"


def test_percentiles_of_calls_are_those_of_the_page(repeated: dict[str, list[Path]]) -> None:
    with iosonar.compare(repeated["a"], repeated["c"]) as compared, ExitStack() as stack:
        for place, side in (("a_ns", "a"), ("b_ns", "c")):
            opened = [stack.enter_context(open_calls(path)) for path in repeated[side]]
            values = pooled([CallStudy([calls], Options()).first.pooled_response for calls in opened])
            found = {one.metric: getattr(one, place) for one in compared.against[0].differences}
            assert found == {
                name: values.quantile(share) if (share := share_of(name)) else values.mean for name in found
            }


def test_different_orders_have_no_comparable_throughput(
    repeated: dict[str, list[Path]], run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compare(repeated["a"][0], run, "--out", tmp_path, "--fail-if", "throughput < -5%") == 4
    assert "not replays of the same trace in the same order" in capsys.readouterr().out


def test_a_trace_is_a_side_of_its_own(
    repeated: dict[str, list[Path]], trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compare(*repeated["a"], "vs", trace, *repeated["b"], "--out", tmp_path) == 1
    assert "a trace is a side of its own" in capsys.readouterr().err


def test_changes_that_were_not_replayed_are_named(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [row | {"outcome": "same"} for row in made_replay(made_calls(5))]
    footer = {"statistics": {"changes_not_replayed": {"mount": 1, "ioctl FS_IOC_SETFLAGS": 2}}}
    run = write_calls_run(tmp_path / "lost.calls-run.parquet", rows, run=footer)
    assert compare(trace, run, "--out", tmp_path) == 0
    named = "3 calls that change files: ioctl FS_IOC_SETFLAGS 2, mount 1"
    assert f"B against A: lost did not replay {named}" in capsys.readouterr().out
    page = (tmp_path / "shop.compare.html").read_text()
    assert named in page
    assert "all calls had the results of the original" not in page


def test_offsets_beyond_any_file_are_drawn(tmp_path: Path) -> None:
    farthest = 2**63 - 1
    rows = [read(n, "/a", place, length) for n, (place, length) in enumerate([(farthest, 4096), (0, farthest), (8, 8)])]
    rows += [read(9, "/a", -farthest, 8), read(10, "/b", farthest, farthest)]
    trace = write_calls(tmp_path / "far.calls.parquet", rows)
    assert report(trace, "--format", "png", "--size", "400x300", "--out", tmp_path / "out") == 0
