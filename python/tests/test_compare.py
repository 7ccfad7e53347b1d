"""`iosonar compare`: sides, sentences, conditions and exit codes, on runs with a known difference."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from conftest import OpenStudy
from factory import MS, STATISTICS, S, as_version_1, load_row, run_row, write_load, write_run
from made_run import made_run

from iosonar.cli.compare import app, sides_of
from iosonar.diagrams import Options, Study
from iosonar.diagrams.comparison import Side, changes, curves, delivered, error_bars, over_time
from iosonar.errors import UserError
from iosonar.figures.model import Line, Steps
from iosonar.quantities.difference import Difference, Finding
from iosonar.quantities.distribution import distributions, pooled
from iosonar.report.compared import change_text
from iosonar.table import open_requests

SPAN = {"first_ns": 0, "last_ns": 10_000_000_000, "max_end_sector": 60_000_000, "max_sectors": 256}


def compare(*words: object) -> int:
    """Runs `iosonar compare` and returns its exit code."""
    with pytest.raises(SystemExit) as ended:
        app([str(word) for word in words], prog_name="iosonar compare")
    return int(ended.value.code or 0)


def run(directory: Path, name: str, slower: float, **footer: Any) -> Path:
    """A run of a fixed load; only the latencies differ."""
    table = made_run(3000, seconds=10)
    latency = pc.subtract(table["completed_ns"], table["issued_ns"])
    completed = pc.add(table["issued_ns"], pc.round(pc.multiply(latency, slower)).cast(pa.int64()))
    table = table.set_column(table.schema.get_field_index("completed_ns"), "completed_ns", completed)
    return write_run(directory / f"{name}.replay.parquet", table, **({"span": SPAN} | footer))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Path]]:
    """Three runs of each of two experiments; b is half as fast as a."""
    directory = tmp_path_factory.mktemp("runs")
    return {
        side: [run(directory, f"{side}{n}", slower * (1 + n / 500)) for n in range(3)]
        for side, slower in (("a", 1.0), ("b", 2.0))
    }


def test_vs_separates_the_sides_of_a_comparison() -> None:
    assert sides_of(["a", "b"]) == [[Path("a")], [Path("b")]]
    assert sides_of(["a", "b", "vs", "c"]) == [[Path("a"), Path("b")], [Path("c")]]
    for words in (["a"], ["a", "vs"]):
        with pytest.raises(UserError, match="compare needs two sides"):
            sides_of(words)


def test_two_runs_are_described_but_nothing_is_claimed(
    runs: dict[str, list[Path]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    condition = ("--fail-if", "p99 > +10%")
    assert compare(runs["a"][0], runs["b"][0], "--out", tmp_path, *condition) == 4
    message = capsys.readouterr()
    assert "no claim" in message.out and "too few runs" in message.err
    assert "of the 3,000 requests that completed on both sides, 100 % took longer in B" in message.out
    assert "+100.0 %" in message.out
    assert (tmp_path / "a0.compare.html").exists()


def test_three_runs_per_side_allow_a_claim(
    runs: dict[str, list[Path]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = (*runs["a"], "vs", *runs["b"], "--out", tmp_path)
    assert compare(*words, "--fail-if", "p99 > +10%") == 3
    # Bins are 0.23 % wide.
    assert re.search(r"slower at p50 \(\+(99\.[5-9]|100\.[0-5]) %\)", capsys.readouterr().out)
    conditions = ("p99 > +150%", "p50 < -10%", "p50 > +99.9%", "throughput < -10%")
    assert compare(*words, *(word for text in conditions for word in ("--fail-if", text))) == 4
    message = capsys.readouterr().err.splitlines()
    assert message[0].startswith("p99 > +150% does not hold for B: +") and "(95 % interval" in message[0]
    # The interval is compared with the limit of the condition: it excludes 0, but not this limit.
    assert message[2].startswith("p50 > +99.9% is undecided for B: +")
    # The storage kept up with the same load.
    assert "does not hold" in message[3]


def test_a_condition_with_its_limit_in_the_interval_is_undecided(
    runs: dict[str, list[Path]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = (*runs["a"], "vs", *runs["b"], "--out", tmp_path, "--overwrite", "--fail-if", "p50 > +99.9%")
    assert compare(*words) == 4
    said = capsys.readouterr()
    message = said.err
    assert re.search(
        r"^p50 > \+99\.9% is undecided for B: \+\d+\.\d % \(95 % interval \+\d.* … \+1\d\d\.\d %\); ", message
    )
    what_decides = r"(about \d+ runs per side, or longer runs,|no practical number of runs) would decide this"
    assert re.search(what_decides, message, re.MULTILINE)
    # The number that shows any difference is another one.
    assert "decide" not in said.out
    assert compare(*words, "--fail-if", "p50 > +10%") == 3


def test_with_another_load_there_is_no_verdict_on_the_storage(
    runs: dict[str, list[Path]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = [run(tmp_path, f"o{n}", 2 * (1 + n / 500), span=SPAN | {"max_sectors": 9}) for n in range(3)]
    words = (*runs["a"], "vs", *other, "--out", tmp_path)
    assert compare(*words, "--fail-if", "throughput < -10%") == 4
    message = capsys.readouterr()
    assert (
        "The difference may come from the load" in message.out
        and "No verdict on the storage: the loads differ" in message.out
    )
    assert "throughput < -10% is undecided for B: the runs did not all replay the same load" in message.err


def test_widened_requests_are_named_as_the_difference_of_loads(
    runs: dict[str, list[Path]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    footer = {"span": SPAN | {"max_end_sector": 9}, "run": {"statistics": {"widened": 2541}}}
    other = [run(tmp_path, f"w{n}", 2 * (1 + n / 500), **footer) for n in range(3)]
    compare(*runs["a"], "vs", *other, "--out", tmp_path)
    message = capsys.readouterr().out
    assert "widened to the logical blocks of the target: 0 in A, 2,541 in B" in message, message


def test_with_an_unfaithful_run_a_condition_is_undecided(
    runs: dict[str, list[Path]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missed = {"statistics": STATISTICS | {"within_pct": {"10": 1, "50": 42, "100": 50}}}
    late = run(tmp_path, "late", 2, run=missed)
    words = (*runs["a"], "vs", *runs["b"][:2], late, "--out", tmp_path)
    assert compare(*words, "--fail-if", "p99 > +10%") == 4
    message = capsys.readouterr()
    assert "late of B (42.0 % within 50 µs, 95 % needed)" in message.out
    assert "No verdict on the storage: a replay was not faithful." in message.out
    assert message.err == "p99 > +10% is undecided for B: 1 replay was not faithful\n"


def test_with_a_fake_result_a_condition_is_undecided(
    runs: dict[str, list[Path]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fake = run(tmp_path, "fake", 2, run={"fake": "FAKE RESULT: nothing was read or written"})
    words = (*runs["a"], "vs", *runs["b"][:2], fake, "--out", tmp_path)
    assert compare(*words, "--fail-if", "p99 > +10%") == 4
    message = capsys.readouterr()
    assert "fake of B is a fake result: nothing was read or written." in message.out
    assert "No verdict on the storage: a result is fake" in message.out
    assert message.err == "p99 > +10% is undecided for B: 1 result is fake\n"


@pytest.mark.parametrize("option", ["closed", "asap"])
def test_a_load_stays_the_same_if_the_storage_sets_its_times(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [
        run(tmp_path, f"{last}", 1, span=SPAN | {"last_ns": last}, run={"options": {option: True}})
        for last in (9_000_000_000, 9_100_000_000)
    ]
    assert compare(*paths, "--out", tmp_path, "--json") == 0
    found = json.loads(capsys.readouterr().out)["comparisons"][0]
    assert (found["same_load"], found["pairing"], found["pairs"]) == (True, "unpaired", None)


def test_a_group_compared_with_itself_has_no_difference(
    runs: dict[str, list[Path]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    again = [run(tmp_path, f"c{n}", 1 + n / 500) for n in range(3)]
    words = (*runs["a"], "vs", *again, "--out", tmp_path, "--json")
    assert compare(*words, "--fail-if", "p50 > +0%") == 4
    found = json.loads(capsys.readouterr().out)["comparisons"][0]
    assert found["pairing"] == "paired" and found["pairs"]["median_ratio"] == 1.0
    assert {each["finding"] for each in found["differences"]} == {"no difference shown"}
    assert all(each["low"] <= 0 <= each["high"] for each in found["differences"])


def test_one_run_does_not_count_as_several(
    runs: dict[str, list[Path]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = runs["a"][0], runs["b"][0]
    link = tmp_path / "link.replay.parquet"
    link.symlink_to(a)
    for words in ((a, a, a, "vs", b, b, b), (a, "vs", b, a), (link, a, "vs", b)):
        assert compare(*words, "--out", tmp_path) != 0
        assert "name each run once" in capsys.readouterr().err


def test_copies_are_detected_by_their_start_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = made_run(300, seconds=10)
    paths = [
        # The second is a part of the first.
        write_run(tmp_path / f"{name}.replay.parquet", rows, span=SPAN, run={"started_unix_ns": started})
        for name, rows, started in (("a", table, 7), ("piece", table[:200], 7), ("b", table, 8), ("copy", table, 8))
    ]
    a, piece, b, copy = paths
    for words in ((a, piece, "vs", b), (a, "vs", b, copy), (b, copy)):
        assert compare(*words, "--out", tmp_path) != 0
        assert "is the same run as" in capsys.readouterr().err
    assert compare(a, piece, "--out", tmp_path) == 0
    # Of two instances with a common start.
    pair = [
        write_run(tmp_path / f"{name}.replay.parquet", table, run={"started_unix_ns": 9, "options": {"output": name}})
        for name in ("on-a", "on-b")
    ]
    assert compare(*pair, "--out", tmp_path) == 0


@pytest.mark.parametrize("condition", ["p100 > +10%", "p99 + 10%", "slow", "max > +10%"])
def test_a_wrong_condition_is_explained(
    condition: str, runs: dict[str, list[Path]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert compare(runs["a"][0], runs["b"][0], "--fail-if", condition) == 2
    assert "write it like 'p99 > +10%'" in capsys.readouterr().err


def test_settings_that_differ_are_named_and_prevent_a_verdict(
    runs: dict[str, list[Path]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sides = {
        side: [
            run(
                tmp_path,
                f"{side}{n}",
                slower * (1 + n / 500),
                run={
                    "typed": typed,
                    "wait": typed.get("wait", "spin"),
                    "machine": {"kernel": kernel},
                    "target": {"path": f"/dev/{side}"},
                },
            )
            for n in range(3)
        ]
        for side, slower, typed, kernel in (
            ("x", 2.0, {}, "6.1"),
            ("y", 1.0, {"compressible": "50", "wait": "hybrid", "output": "y"}, "6.18"),
        )
    }
    words = (*sides["x"], "vs", *sides["y"], "--out", tmp_path)
    assert compare(*words) == 0
    message = capsys.readouterr().out
    assert "A and B differ in: target (/dev/x in A; /dev/y in B); kernel (6.1 in A; 6.18 in B); " in message
    assert "--compressible (default in A; 50 in B)" in message and "--wait (spin in A; hybrid in B)" in message
    assert "may come from these, not from the storage" in message
    assert "measured faster at p50" in message
    assert "No verdict on the storage: the runs differ in kernel, --compressible, --wait." in message
    assert message.index("differ in:") < message.index("measured faster")
    assert compare(*words, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in found["settings"]] == ["target", "kernel", "--compressible", "--wait"]
    assert found["settings"][-1] == {"of": "option", "name": "--wait", "values": {"A": ["spin"], "B": ["hybrid"]}}
    assert found["comparisons"][0]["settings"] == ["target", "kernel", "--compressible", "--wait"]


def test_the_time_of_polling_differs_only_if_the_loop_sleeps(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def named(wait: str) -> bool:
        paths = [
            run(tmp_path, f"{wait}{ns}", 1, run={"typed": typed, "wait": wait, "options": {"busy_poll": ns}})
            for ns, typed in ((0, {}), (200_000, {"busy-poll": "200us"}))
        ]
        assert compare(*paths, "--out", tmp_path, "--overwrite") == 0
        return "--busy-poll (0 s in A; 200 µs in B)" in capsys.readouterr().out

    assert [named(wait) for wait in ("spin", "hybrid")] == [False, True]


def test_time_of_polling_that_a_run_cannot_use_is_no_difference(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [
        run(tmp_path, name, 1, run={"wait": wait, "options": options})
        for name, wait, options in (("s", "spin", {}), ("h", "hybrid", {"busy_poll": 0}), ("o", "hybrid", {}))
    ]
    assert compare(*paths, "--out", tmp_path) == 0
    assert "--busy-poll" not in capsys.readouterr().out


def test_runs_that_differ_only_in_their_seed_are_repetitions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [
        run(
            tmp_path,
            f"{side}{seed}",
            slower * (1 + seed / 500),
            run={
                "typed": {"seed": str(seed)} if seed > 1 else {},
                "options": {"seed": seed},
                "target": {"path": "/dev/x", "logical_block_bytes": block},
            },
        )
        for side, slower, block in (("x", 1.0, 512), ("y", 2.0, 4096))
        for seed in (1, 2, 10)
    ]
    assert compare(*paths[:3], "vs", *paths[3:], "--out", tmp_path) == 0
    message = capsys.readouterr().out
    assert "The runs of A differ in: --seed (1, 2, 10 in A).\n" in message and "not repetitions" not in message
    assert "A and B differ in: logical block (512 B in A; 4 KiB in B).\n" in message
    assert "B against A: slower at p50" in message and "No verdict" not in message


def test_only_another_target_allows_a_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [
        run(tmp_path, f"{side}{n}", slower * (1 + n / 500), run={"target": {"path": f"/dev/{side}", "kind": "block"}})
        for side, slower in (("x", 1.0), ("y", 2.0))
        for n in range(3)
    ]
    assert compare(*paths[:3], "vs", *paths[3:], "--out", tmp_path) == 0
    message = capsys.readouterr().out
    assert "A and B differ in: target (/dev/x in A; /dev/y in B).\n" in message
    assert "B against A: slower at p50" in message and "No verdict" not in message


def test_a_renamed_value_is_no_difference(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = [as_version_1(run(tmp_path, f"x{n}", 1 + n / 500, run={"wait": "work"})) for n in range(3)]
    new = [run(tmp_path, f"y{n}", 1 + n / 500, run={"wait": "inline"}) for n in range(3)]
    assert compare(*old, "vs", *new, "--out", tmp_path) == 0
    assert "differ in" not in capsys.readouterr().out


def test_different_settings_within_a_side_are_reported(
    runs: dict[str, list[Path]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    odd = run(tmp_path, "odd", 2, run={"typed": {"depth": "8"}, "engine": "threads"})
    same = [run(tmp_path, f"s{n}", 2, run={"engine": "io_uring"}) for n in range(2)]
    assert compare(*runs["a"], "vs", *same, odd, "--out", tmp_path) == 0
    message = capsys.readouterr().out
    assert "The runs of B differ in: --depth (8, default in B); --engine (io_uring, threads in B)." in message
    assert "not repetitions" in message


def test_a_load_without_latencies_is_no_side(
    runs: dict[str, list[Path]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    load = write_load(tmp_path / "a.load.parquet", [load_row(5)])
    assert compare(runs["a"][0], load, "--out", tmp_path) == 1
    assert "a.load.parquet has no latencies: an original is a load with latencies" in capsys.readouterr().err
    assert not list(tmp_path.glob("*.html"))


def test_values_are_those_of_the_report(
    runs: dict[str, list[Path]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compare(runs["a"][0], runs["b"][0], "--out", tmp_path, "--json") == 0
    found = json.loads(capsys.readouterr().out)["comparisons"][0]["differences"]
    with open_requests([runs["b"][0]]) as requests:
        values = pooled(list(distributions(requests.table, requests.table.latency_ns).values()))
    shares = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99.9": 0.999}
    shown = {one["metric"]: one["b_ns"] for one in found}
    assert shown == {name: values.quantile(shares[name]) if name in shares else values.mean for name in shown}
    assert all(one["low"] <= one["change"] <= one["high"] for one in found)
    assert max(shown.values()) <= values.maximum


def test_intervals_are_bars_at_their_values() -> None:
    x, y = error_bars(np.array([2.0, 100.0]), np.array([5.0, 7.0]), np.array([4.0, 6.0]), np.array([6.0, 9.0]))
    # There is a gap between the bars.
    pieces = [
        part for part in np.split(np.column_stack([x, y]), np.flatnonzero(np.isnan(y))) if np.isfinite(part).any()
    ]
    spans = [part[np.isfinite(part[:, 1])] for part in pieces]
    assert all(len(part) == 2 and part[1, 0] / part[0, 0] < 1.2 for part in spans)
    upright = [part[:, 1].tolist() for part in spans if part[0, 0] == part[1, 0]]
    assert upright == [[4, 6], [6, 9]]
    across = {float(part[0, 1]) for part in spans if part[0, 0] != part[1, 0]}
    assert across == {4, 5, 6, 7, 9}


def test_an_interval_far_beyond_the_others_ends_with_an_arrow(open_study: OpenStudy) -> None:
    highs = {"p50": 0.406, "p90": 0.233, "p99": 2.897, "p99.9": 498.059}
    found = [Difference(metric, 1, 1, 0.1, -0.5, high, Finding.NONE, 3) for metric, high in highs.items()]
    with open_study([run_row(n, latency=MS) for n in range(10)]) as study:
        sides = [Side(letter, study) for letter in "AB"]
        figure = changes({"B": found}, sides)
        assert figure
        assert figure.y.high < 800
        line = figure.layers[0]
        assert isinstance(line, Line)
        at_top = line.x[line.y == np.nanmax(line.y)]
        assert at_top.min() == at_top.max() > 900, "its point"
        assert "289.7" in f"{np.sort(np.unique(line.y[np.isfinite(line.y)]))}", "whole"


def test_equal_throughputs_of_two_sides_are_both_visible(open_study: OpenStudy) -> None:
    with open_study([run_row(n, scheduled=n * 100 * MS, latency=MS) for n in range(100)]) as study:
        figure = delivered([Side(letter, study) for letter in "AB"])
    strokes = [layer.stroke for layer in figure.layers if isinstance(layer, Steps)]
    assert len(set(strokes)) == 2 and [row.stroke for row in figure.legend.rows] == strokes


def test_fake_results_of_a_side_are_in_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fakes = [run(tmp_path, name, 1, run={"fake": "FAKE RESULT: nothing was read"}) for name in ("a1", "a2", "a3")]
    real = run(tmp_path, "b", 1)
    compare(*fakes, "vs", real, "--out", tmp_path)
    assert "a1 of A, a2 of A and a3 of A are fake results: nothing was read." in capsys.readouterr().out


def test_a_percentile_that_no_slice_has_is_not_drawn(tmp_path: Path) -> None:
    file = write_run(tmp_path / "a.replay.parquet", made_run(300, seconds=10), span=SPAN)
    with open_requests([file]) as requests:
        side = Side("A", Study(requests, Options(), origin_ns=0))
        assert over_time([side, side], 0.5) is not None
        assert over_time([side, side], 0.99) is None


def test_the_average_throughput_counts_the_last_window(tmp_path: Path) -> None:
    # One per second for ten seconds, then many in a short last window.
    rows = [run_row(n, scheduled=n * S, latency=MS) for n in range(11)]
    rows += [run_row(11 + n, scheduled=10 * S + n * MS, latency=MS) for n in range(89)]
    file = write_run(tmp_path / "a.replay.parquet", rows)
    with open_requests([file]) as requests:
        side = Side("A", Study(requests, Options(), origin_ns=0))
        assert [row.cells for row in delivered([side, side]).legend.rows] == [("9.91",), ("9.91",)]


def test_with_an_unfilled_target_a_condition_is_undecided(
    runs: dict[str, list[Path]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reads = sum(op == "read" for op in made_run(3000, seconds=10)["op"].to_pylist())
    empty = run(tmp_path, "empty", 2, run={"statistics": STATISTICS | {"zero_reads": reads}})
    words = (*runs["a"], "vs", *runs["b"][:2], empty, "--out", tmp_path)
    assert compare(*words, "--fail-if", "p99 > +10%") == 4
    message = capsys.readouterr()
    assert f"Target not filled: {reads:,} of {reads:,} reads of empty returned only zeros (B)." in message.out
    assert "No verdict on the storage: reads returned only zeros" in message.out
    assert message.err == "p99 > +10% is undecided for B: 1 run read a target that was not filled\n"


@pytest.mark.parametrize(("failed", "code"), [(1, 3), (9, 4)])
def test_failed_requests_are_named_and_many_prevent_a_verdict(
    runs: dict[str, list[Path]], tmp_path: Path, capsys: pytest.CaptureFixture[str], failed: int, code: int
) -> None:
    sides = []
    for path in runs["b"]:
        table = pq.ParquetFile(path).read()
        outcome = pa.array(["error"] * failed + table["outcome"].to_pylist()[failed:])
        table = table.set_column(table.schema.get_field_index("outcome"), "outcome", outcome)
        sides.append(write_run(tmp_path / path.name, table, span=SPAN))
    words = (*runs["a"], "vs", *sides, "--out", tmp_path, "--fail-if", "p50 > +10%")
    assert compare(*words) == code
    message = capsys.readouterr()
    named = f"{3 * failed} of 9,000 requests failed in B"
    assert f"Failed requests: {named}" in message.out
    # Those of one run succeeded in no other.
    assert f"of the {3000 - failed:,} requests that completed on both sides" in message.out
    assert ("No verdict on the storage: requests failed" in message.out) == (code == 4)
    assert (message.err == f"p50 > +10% is undecided for B: {named}\n") == (code == 4)


def test_a_page_of_other_runs_is_replaced_only_if_asked(
    runs: dict[str, list[Path]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, other = (runs["a"][0], runs["b"][0]), (runs["a"][0], runs["b"][1])
    assert compare(*first, "--out", tmp_path) == 0
    assert compare(*first, "--out", tmp_path) == 0
    assert compare(*other, "--out", tmp_path) == 1
    assert "b0.replay.parquet" in capsys.readouterr().err
    assert compare(*other, "--out", tmp_path, "--overwrite") == 0


def test_diagrams_of_a_comparison_with_a_fake_result_are_stamped(open_study: OpenStudy) -> None:
    with open_study([run_row(n, scheduled=n * S, latency=MS) for n in range(40)], run={"fake": "simulated"}) as study:
        sides = [Side(letter, study) for letter in "AB"]
        figures = [curves(sides), delivered(sides), over_time(sides, 0.5)]
    assert all("FAKE RESULT" in [note.text for note in figure.notes] for figure in figures if figure)


def test_large_changes_are_factors() -> None:
    assert [change_text(change) for change in (-0.5, 0.123, 3306.584)] == ["-50.0 %", "+12.3 %", "× 3,308"]
