"""Conditions: one grammar, outcomes, exit codes, JUnit XML and Markdown of report, compare and campaign."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest
from binary import iosonar
from call_factory import replayed, write_calls_run
from factory import MS, STATISTICS, S, run_row, write_run

from iosonar.cli import compare as compare_program
from iosonar.cli import report as report_program
from iosonar.errors import UsageError
from iosonar.figures.model import Severity
from iosonar.library.run import open_run
from iosonar.report.gate import Condition
from iosonar.report.gate import GateScope as Scope
from iosonar.report.gate_files import Case, CaseOutcome, write_junit, write_markdown
from iosonar.report.page import Banner, Summary, Table

GOOD = [run_row(n, scheduled=n * MS, latency=MS + n) for n in range(2000)]


def run(app: Any, name: str, *words: object) -> int:
    with pytest.raises(SystemExit) as ended:
        app([str(word) for word in words], prog_name=f"iosonar {name}")
    return int(ended.value.code or 0)


def report(*words: object) -> int:
    return run(report_program.app, "report", *words, "--only", "overview.thrp", "--overwrite")


def compare(*words: object) -> int:
    return run(compare_program.app, "compare", *words, "--overwrite")


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 2000 requests with latencies of about 1 ms, a thousand in a second."""
    return write_run(tmp_path_factory.mktemp("good") / "good.replay.parquet", GOOD)


@pytest.mark.parametrize(
    ("condition", "outcome"),
    [
        ("p99 > 900us", "holds"),
        ("p99 < 1.1ms", "holds"),
        ("latency.p99 > 1.1ms", "does not hold"),
        ("p97.5 > 0.9ms", "holds"),
        ("max >= 1.001999ms", "holds"),
        ("mean > 0.002s", "does not hold"),
        ("delay.p99 > 1ms", "does not hold"),
        ("throughput < 90%", "does not hold"),
        ("throughput < 1100/s", "holds"),
        ("iops > 900", "holds"),
        ("iops > 1100 requests/s", "does not hold"),
        ("bandwidth > 4MB/s", "holds"),
        ("bandwidth > 4MiB/s", "does not hold"),
        ("errors = 0", "holds"),
        ("requests != 2000", "does not hold"),
        ("verdict = faithful", "holds"),
        ("verdict = good", "holds"),
        ("warning", "does not hold"),
        ("verdict >= good", "holds"),
    ],
)
def test_a_condition_compares_a_run_with_a_limit(good: Path, condition: str, outcome: str) -> None:
    with open_run(good) as opened:
        assert opened.holds(condition) == outcome


def test_a_percentile_of_too_few_requests_is_undecided(good: Path) -> None:
    with open_run(good) as opened:
        expected = "is undecided: too few requests for p99.9, which takes at least 10,000, or"
        assert opened.holds("p99.9 > 1ns").startswith(expected)


@pytest.mark.parametrize(
    ("of", "text"),
    [
        (of, text)
        for of in Scope
        for text in (
            "p99",
            "p99 > 10",
            "p99 > 10parsec",
            "p100 > 1ms",
            "errors > 1ms",
            "verdict = great",
            "bandwidth > 5",
        )
    ]
    + [
        (Scope.RUN, "p99 > +10%"),
        (Scope.RUN, "state = done"),
        (Scope.SIDES, "max > +10%"),
        (Scope.SIDES, "p99 = 10%"),
        (Scope.SIDES, "p99 > 10%"),
        (Scope.SIDES, "throughput < 95%"),
        (Scope.SIDES, "throughput > 100"),
        (Scope.SIDES, "p99 > +1us"),
        (Scope.RUN, "p99 > -1ms"),
        (Scope.RUN, "throughput < -5%"),
    ],
)
def test_a_wrong_condition_says_what_is_right(of: Scope, text: str) -> None:
    with pytest.raises(UsageError, match="invalid condition"):
        Condition.parse(text, of)


def test_a_change_without_a_sign_is_corrected() -> None:
    for text, right in (("p99 > 10%", "p99 > +10%"), ("throughput < 5%", "throughput < -5%")):
        with pytest.raises(UsageError, match=f"like '{re.escape(right)}'"):
            Condition.parse(text, Scope.SIDES)


def test_the_p99_of_a_condition_is_that_of_the_rows(tmp_path: Path) -> None:
    load, path = tmp_path / "x.load.parquet", tmp_path / "x.replay.parquet"
    iosonar("generate", "poisson", load, "--rate", 200, "--duration", 20, "--seed", 5)
    iosonar("replay", load, "--simulate", "hdd", "--virtual-time", "--output", path)
    p95 = (
        duckdb.connect().execute(f"SELECT quantile_disc(completed_ns - issued_ns, 0.95) FROM '{path}'").fetchall()[0][0]
        / 1e6
    )
    with open_run(path) as opened:
        # A fake result: its times are undecided, its numbers are not.
        assert opened.holds(f"p95 > {p95 * 0.99:.6f}ms").startswith("is undecided: FAKE")
        assert opened.holds("requests > 0") == opened.holds("verdict = fake") == "holds"
    rows = pq.ParquetFile(path).read()
    real = write_run(tmp_path / "real.replay.parquet", rows)
    with open_run(real) as opened:
        assert opened.holds(f"p95 > {p95 * 0.998:.6f}ms") == "holds"
        assert opened.holds(f"p95 > {p95 * 1.002:.6f}ms") == "does not hold"


def test_a_fake_run_of_calls_is_bad(tmp_path: Path) -> None:
    rows = [replayed(number, "read", number * 1000) for number in range(9)]
    for fake, holds in ((None, "does not hold"), ("no calls were made", "holds")):
        path = write_calls_run(tmp_path / "x.calls-run.parquet", rows, run={"fake": fake})
        with open_run(path) as opened:
            found = opened.holds("bad")
            assert found == holds, fake


def test_report_ends_with_3_or_4_as_compare_does(
    good: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = (good, "--out", tmp_path)
    assert report(*words, "--fail-if", "p99 > 10ms", "--fail-on", "bad") == 0
    assert report(*words, "--fail-if", "p99 > 10ms", "--fail-if", "p99.9 > 1s") == 4
    assert report(*words, "--fail-if", "p99.9 > 1s", "--fail-if", "p99 < 10ms") == 3
    assert "p99 < 10ms holds: p99 is 1 ms" in capsys.readouterr().err
    assert report(*words, "--fail-if", "p99 ~ 10ms") == 2


def test_pages_show_the_outcome_of_each_condition(good: Path, tmp_path: Path) -> None:
    conditions = ("p99 < 10ms", "errors > 0", "p99.99 > 1s")
    words = ("--out", tmp_path, *(word for text in conditions for word in ("--fail-if", text)))
    slow = write_run(tmp_path / "slow.replay.parquet", [run_row(n, scheduled=n * MS, latency=MS) for n in range(2000)])
    assert report(good, *words) == compare(good, slow, *words, "--fail-if", "p99 > +1%") == 3
    of_run, of_sides = ((tmp_path / f"good.{kind}.html").read_text() for kind in ("report", "compare"))
    for text, of in ((of_run, ""), (of_sides, " for B")):
        assert f'<li class="bad">p99 &lt; 10ms holds{of}: p99 is 1' in text
        assert f'<li class="good">errors &gt; 0 does not hold{of}: errors is 0</li>' in text
        assert f'<li class="warning">p99.99 &gt; 1s is undecided{of}: too few requests' in text
    assert '<li class="warning">p99 &gt; +1% is undecided for B: too few runs' in of_sides
    assert report(good, "--out", tmp_path) == 0
    assert "<h3>Conditions</h3>" not in (tmp_path / "good.report.html").read_text()


def test_an_output_directory_is_not_left_empty(good: Path, tmp_path: Path) -> None:
    out = tmp_path / "new" / "dir"
    missing = tmp_path / "missing.replay.parquet"
    assert report(missing, "--out", out) == compare(good, missing, "--out", out) == 1
    assert run(report_program.app, "report", good, "--only", "nonsense", "--out", out) == 2
    assert compare(good, good, "--out", out) == 1
    assert not out.parent.exists()
    out.parent.mkdir()
    assert report(missing, "--out", out) == 1
    assert out.parent.exists() and not out.exists()
    assert report(good, "--out", out) == 0
    assert (out / "good.report.html").exists()


def test_a_window_changes_the_outcome_of_a_condition(tmp_path: Path) -> None:
    rows = [run_row(n, scheduled=n * MS, latency=(20 if n < 1000 else 1) * MS) for n in range(3000)]
    path = write_run(tmp_path / "a.replay.parquet", rows)
    words = (path, "--out", tmp_path, "--fail-if", "p90 > 10ms")
    assert report(*words) == 3
    assert report(*words, "--from", "1") == 0
    assert report(*words, "--to", "1s") == 3


def test_an_unfaithful_run_leaves_latencies_undecided(tmp_path: Path) -> None:
    missed = {"statistics": STATISTICS | {"within_pct": {"10": 1, "50": 42, "100": 50}}}
    path = write_run(tmp_path / "a.replay.parquet", GOOD, run=missed)
    assert report(path, "--out", tmp_path, "--fail-if", "p99 > 1s") == 4
    assert report(path, "--out", tmp_path, "--fail-if", "delay.p99 > 1s") == 0


def test_compare_takes_limits_of_values_and_of_changes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fast, slow = (
        write_run(
            tmp_path / f"{name}.replay.parquet",
            [run_row(n, scheduled=n * MS, latency=ms * MS + n) for n in range(2000)],
        )
        for name, ms in (("fast", 1), ("slow", 5))
    )
    assert compare(fast, slow, "--out", tmp_path, "--fail-if", "p99 > 2ms") == 3
    assert "p99 > 2ms holds for B: p99 is 5" in capsys.readouterr().err
    # The first side is what others are compared with.
    assert compare(slow, fast, "--out", tmp_path, "--fail-if", "p99 > 2ms", "--fail-if", "errors > 0") == 0
    capsys.readouterr()
    assert compare(fast, slow, "--out", tmp_path, "--fail-if", "p99 > 6ms", "--fail-if", "p97 > +10%", "--json") == 4
    printed = capsys.readouterr()
    found = json.loads(printed.out)
    assert [(one["condition"], one["side"], one["outcome"]) for one in found["conditions"]] == [
        ("p99 > 6ms", "B", "does not hold"),
        ("p97 > +10%", "B", "is undecided"),
    ]
    assert "p97" in [one["metric"] for one in found["comparisons"][0]["differences"]]


def test_windows_of_both_sides_are_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # The warm-ups of the sides end after 3 s and after 6 s.
    paths = [
        write_run(
            tmp_path / f"{name}.replay.parquet",
            [
                run_row(n, scheduled=n * S // 100, latency=(50 if n < warm * 100 else 1) * MS + n % 7)
                for n in range(6000)
            ],
        )
        for name, warm in (("a", 3), ("b", 6))
    ]
    assert compare(*paths, "--out", tmp_path, "--skip-warm-up", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    start = found["window"]["from_s"]
    assert 5.99 < start < 9
    of = {one["metric"]: one for one in found["comparisons"][0]["differences"]}
    for side, path in zip("ab", paths, strict=True):
        mean = (
            duckdb.connect()
            .execute(f"SELECT avg(completed_ns - issued_ns) FROM '{path}' WHERE scheduled_ns >= {round(start * 1e9)}")
            .fetchall()[0][0]
        )
        assert of["mean"][f"{side}_ns"] == pytest.approx(mean, rel=1e-6)
    assert compare(*paths, "--out", tmp_path, "--from", "1m", "--json") == 1
    assert "no request of" in capsys.readouterr().err


@pytest.mark.parametrize("program", [report, compare])
def test_junit_and_markdown_agree_with_the_exit_code(good: Path, tmp_path: Path, program: Callable[..., int]) -> None:
    other = write_run(tmp_path / "other.replay.parquet", [*GOOD[:-1], run_row(9999, scheduled=3 * S, latency=MS)])
    files = (good,) if program is report else (good, other)
    junit, markdown = tmp_path / "j.xml", tmp_path / "s.md"
    words = (*files, "--out", tmp_path, "--junit", junit, "--markdown", markdown)
    assert program(*words) == 0
    assert ElementTree.parse(junit).getroot().attrib["failures"] == "0"
    assert program(*words, "--fail-if", "p99 < 10ms", "--fail-if", "errors > 0", "--fail-if", "p99.99 > 1s") == 3
    suite = ElementTree.parse(junit).getroot()
    counts = {name: suite.attrib[name] for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": "3", "failures": "1", "errors": "1", "skipped": "0"}
    text = markdown.read_text()
    assert text.startswith("## ") and "| p99 \\< 10ms | failed |" in text and "p95" in text


def test_an_undecided_condition_may_be_skipped_in_junit(good: Path, tmp_path: Path) -> None:
    other = write_run(tmp_path / "other.replay.parquet", [*GOOD[:-1], run_row(9999, scheduled=3 * S, latency=MS)])
    junit = tmp_path / "j.xml"
    words = (good, other, "--out", tmp_path, "--junit", junit, "--fail-if", "p99 < 10ms", "--fail-if", "p99.99 > 1s")
    for more, name in (((), "error"), (("--skip-undecided",), "skipped")):
        assert compare(*words, *more) == 3
        suite = ElementTree.parse(junit).getroot()
        counts = {each: suite.attrib[each] for each in ("failures", "errors", "skipped")}
        assert counts == {"failures": "1", "errors": "0", "skipped": "0"} | {name + "s" * (name == "error"): "1"}
        (undecided,) = suite.findall(f"testcase/{name}")
        assert "is undecided for B: too few requests" in undecided.attrib["message"]
    assert compare(*words[:-4], "--fail-if", "p99.99 > 1s", "--skip-undecided") == 4


def test_bullets_of_markdown_have_one_mark(tmp_path: Path) -> None:
    banners = tuple(Banner(severity, "text.", "Head:") for severity in Severity)
    write_markdown(Summary("t", "", (), banners), [], tmp_path / "s.md")
    bullets = {line for line in (tmp_path / "s.md").read_text().splitlines() if line.startswith("-")}
    assert bullets == {f"- {mark}**Head:** text." for mark in ("✗ ", "⚠ ", "✓ ", "")}


@pytest.mark.parametrize("option", ["--junit", "--markdown"])
def test_files_for_ci_replace_no_file_of_another_program(good: Path, tmp_path: Path, option: str) -> None:
    precious, empty = tmp_path / "precious", tmp_path / "empty"
    precious.write_text("<testsuite name='other'/>")
    empty.touch()
    assert report(good, "--out", tmp_path, option, precious) == 2
    assert precious.read_text() == "<testsuite name='other'/>"
    assert not list(tmp_path.glob("*.html"))
    for _ in range(2):
        assert report(good, "--out", tmp_path, option, empty) == 0
    assert empty.stat().st_size > 0


@pytest.mark.parametrize("program", [report, compare])
def test_junit_and_markdown_in_one_file_are_refused(good: Path, tmp_path: Path, program: Callable[..., int]) -> None:
    one, out = tmp_path / "one", tmp_path / "out"
    (tmp_path / "link").symlink_to("one")
    for other in ("one", "../" + tmp_path.name + "/one", "link"):
        words = ("--out", out, "--junit", one, "--markdown", tmp_path / other)
        assert program(*(good,) * (1 if program is report else 2), *words) == 2
        assert not one.exists()
        assert not out.exists()


def test_text_in_markdown_cannot_end_its_table(tmp_path: Path) -> None:
    summary = Summary("a|b", "", ("<b>x</b>",), (Banner(Severity.BAD, "one\ntwo", "*H*:"),))
    cases = [Case("g", "p99 > 1|2", CaseOutcome.FAILED, "a|b\nc")]
    write_markdown(summary, cases, tmp_path / "s.md", [Table("T", ("", "n"), (("x|y", "1"),))])
    lines = (tmp_path / "s.md").read_text().splitlines()
    assert "## a\\|b" in lines and "\\<b\\>x\\</b\\>" in lines
    assert all(line.replace("\\|", "").count("|") in (0, 3, 4) for line in lines)
    write_junit("x", cases, tmp_path / "j.xml")
    assert ElementTree.parse(tmp_path / "j.xml").getroot().find("testcase/failure") is not None


def test_chosen_percentiles_are_in_tables_and_key_figures(good: Path, tmp_path: Path) -> None:
    assert report(good, "--out", tmp_path, "--percentiles", "p95,50,99.99", "--markdown", tmp_path / "s.md") == 0
    text = (tmp_path / "s.md").read_text()
    row = next(line for line in text.splitlines() if line.startswith("| Reads"))
    columns = "|  | requests | avg | p50 | p95 | p99.99 | max |"
    assert columns in text and "| – |" in row
    page = (tmp_path / "good.report.html").read_text()
    assert "Latency p95" in page and "1 in 20 is slower" in page and "Latency p99<" not in page
    for wrong in ("0", "100", "p", "50,60,70,80,90,95"):
        assert report(good, "--out", tmp_path, "--percentiles", wrong) == 2
