"""The questions that the first screen of a campaign's page answers."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from factory import MS, US, run_row, write_run

from iosonar.campaign import state
from iosonar.campaign.report import run_report
from iosonar.campaign.report.analysis import Analysis, analyse_campaign
from iosonar.campaign.report.answers import QUESTIONS, answers
from iosonar.campaign.report.factors import Place
from iosonar.campaign.report.found import Found
from iosonar.campaign.report.leaf_findings import Findings
from iosonar.campaign.report.page import campaign_page
from iosonar.campaign.report.results import read_results
from iosonar.campaign.state import LeafState
from iosonar.figures.model import Severity
from iosonar.findings.finding import Severity as Weight
from iosonar.progress import shown_by
from iosonar.report.page import Answer

UNFAITHFUL: dict[str, Any] = {
    "statistics": {"within_pct": {"10": 10.0, "50": 40.0, "100": 60.0}, "delay_us": {"p99": 900.0, "max": 1e3}}
}
SATURATED, QUIET = "096-threads", "016-threads"


def leaf(top: Path, place: Place, number: int, rows: list[dict[str, Any]], **run: Any) -> None:
    """A leaf with a run of these rows."""
    directory = top.joinpath(*place.path)
    directory.mkdir(parents=True)
    write_run(directory / "X.host.replay.parquet", rows, run=run)
    path, begin = [*place.path], 1.7e9 + number * 60
    state.write(
        directory,
        LeafState("/".join(path), "done", started=begin, ended=begin + 30, path=path, variables=dict(place.variables)),
    )


def quiet(number: int) -> list[dict[str, Any]]:
    """2 s of 1,000 requests/s that take about 100 µs."""
    latency = np.random.default_rng(number).lognormal(math.log(100), 0.1, 2000)
    return [run_row(n, scheduled=n * MS, latency=int(value * US)) for n, value in enumerate(latency)]


def saturated(number: int) -> list[dict[str, Any]]:
    """Half of 1,000 requests/s are completed in time."""
    more = number * US
    return [
        run_row(n, scheduled=n * MS, delay=n * MS, latency=2 * MS + more, delay_reason="depth") for n in range(8000)
    ]


def place(threads: str, repeat: int) -> Place:
    return Place((threads, f"repeat-{repeat}"), {"threads": threads.partition("-")[0]})


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two levels, three times each, in turn: with one of them the storage is too slow."""
    top = tmp_path_factory.mktemp("answers") / "study"
    for repeat in range(3):
        leaf(top, place(QUIET, repeat), 2 * repeat, quiet(repeat))
        leaf(top, place(SATURATED, repeat), 2 * repeat + 1, saturated(repeat))
    return top


def analysed(top: Path) -> Analysis:
    return analyse_campaign(read_results(top))


def of(analysis: Analysis, question: str) -> Answer:
    return next(each for each in answers(analysis) if each.question.startswith(question))


def test_a_campaign_answers_all_ten_questions(campaign: Path) -> None:
    analysis = analysed(campaign)
    found = answers(analysis)
    assert len(found) == len(QUESTIONS) == 10
    assert all(each.question.endswith("?") and each.text.endswith(".") for each in found)
    assert of(analysis, "Were the runs valid").text == "Yes: all 6 leaves can be used."
    assert of(analysis, "Is one device").text == "Each leaf has one device."
    assert "threads makes the largest difference: from 016 to 096" in of(analysis, "Did the load").text
    assert of(analysis, "How sure").text.startswith("Each combination of levels ran 3 times. ")


def test_a_limit_is_named_with_the_level_that_has_it(campaign: Path) -> None:
    analysis = analysed(campaign)
    limit = of(analysis, "What limits")
    assert f"in 3 of 6 leaves, most often where threads is 096 (3 of 3). In {SATURATED}/repeat-0: " in limit.text
    assert "the storage completes 500" in limit.text
    assert limit.severity in (Severity.WARNING, Severity.BAD)
    assert of(analysis, "From which rate").text == "From about 500 requests/s on, in 3 of 6 leaves."


def test_the_table_of_leaves_has_the_findings(campaign: Path) -> None:
    analysis = analysed(campaign)
    page = campaign_page(analysis, gate_of(campaign, analysis), campaign, "study")
    leaves, findings = page.sections[-1].tables
    assert leaves.columns[-1] == "findings"
    numbers = {row[0]: row[-1] for row in leaves.rows}
    assert all(("S03" in numbers[name]) == (SATURATED in name) for name in numbers)
    row = next(row for row in findings.rows if row[0].startswith("S03: "))
    assert row[2].startswith("in 3 of 6 leaves") and SATURATED in row[3]


def gate_of(top: Path, analysis: Analysis) -> Any:
    from iosonar.campaign.report import gate

    return gate.judge(top, [], list(analysis.leaves))


def test_invalid_and_missing_leaves_are_counted(tmp_path: Path) -> None:
    for repeat in range(3):
        leaf(tmp_path, place(QUIET, repeat), repeat, quiet(repeat), **(UNFAITHFUL if repeat == 0 else {}))
    failed = tmp_path / QUIET / "repeat-9"
    failed.mkdir()
    state.write(failed, LeafState("x", "failed", "No space left"))
    text = of(analysed(tmp_path), "Were the runs valid").text
    assert text == "With limits: of 4 leaves, 2 are valid; 1 has an unfaithful replay and 1 has no result."


def test_few_valid_leaves_are_no_good_news_of_all(tmp_path: Path) -> None:
    leaf(tmp_path, place(QUIET, 0), 0, quiet(0))
    for repeat in range(1, 4):
        leaf(tmp_path, place(QUIET, repeat), repeat, quiet(repeat), **UNFAITHFUL)
    limit = of(analysed(tmp_path), "What limits the storage?")
    assert limit.severity is Severity.NEUTRAL
    assert limit.text == "No limit was found in the only valid leaf of 4."


def test_one_valid_leaf_of_each_level_is_no_effect(tmp_path: Path) -> None:
    for number, (threads, repeat) in enumerate([(QUIET, 0), ("032-threads", 0), (QUIET, 1), ("032-threads", 1)]):
        leaf(tmp_path, place(threads, repeat), number, quiet(number), **(UNFAITHFUL if repeat else {}))
    analysis = analysed(tmp_path)
    sure = of(analysis, "How sure").text
    assert sure.startswith("No combination of levels has more than one valid leaf. There are too few leaves")
    summary = campaign_page(analysis, gate_of(tmp_path, analysis), tmp_path, "study").summary
    assert "Varied in the 2 valid ones: threads" in summary.lead[0] and not summary.tiles


def test_times_of_unfaithful_leaves_answer_nothing(tmp_path: Path) -> None:
    for repeat in range(2):
        leaf(tmp_path, place(QUIET, repeat), repeat, quiet(repeat), **UNFAITHFUL)
    analysis = analysed(tmp_path)
    valid = of(analysis, "Were the runs valid")
    assert (valid.severity, valid.text) == (Severity.BAD, "No: all 2 leaves have an unfaithful replay.")
    for question in ("What limits", "From which rate", "Is it the cache"):
        assert of(analysis, question).text == "Not known: every result is unfaithful."
    assert of(analysis, "What next").text.startswith("End other programs")


def test_no_effect_stands_large_above_times_that_say_nothing(campaign: Path) -> None:
    analysis = analysed(campaign)
    shown = campaign_page(analysis, gate_of(campaign, analysis), campaign, "study").summary.tiles
    doubtful = replace(analysis, doubt="every result is unfaithful")
    hidden = campaign_page(doubtful, gate_of(campaign, doubtful), campaign, "study").summary.tiles
    assert shown and not hidden


def test_a_collapsed_leaf_is_too_slow_from_the_rate_before_it(campaign: Path) -> None:
    analysis = analysed(campaign)
    collapsed = (
        Found("S03", Weight.BAD, "It falls behind.", "", capacity_per_s=500),
        Found("S05", Weight.WARNING, "It collapses.", "", capacity_per_s=1800),
    )
    leaves = replace(analysis, used=tuple(replace(leaf, findings=collapsed) for leaf in analysis.used))
    assert of(leaves, "From which rate").text == "From about 1,800 requests/s on, in all 6 leaves."
    leaves = replace(analysis, used=tuple(replace(leaf, findings=collapsed[1:]) for leaf in analysis.used))
    assert of(leaves, "From which rate").text.startswith("No such rate was reached.")


def test_each_result_is_diagnosed_once_with_progress(campaign: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read_results(campaign)
    steps: list[tuple[str, int, int]] = []
    monkeypatch.setattr("iosonar.campaign.report.results.diagnose_requests", lambda study: 1 / 0)
    with shown_by(lambda *step: steps.append(step)):
        again = read_results(campaign)
    assert [number for _, number, _ in steps] == [1, 2, 3, 4, 5, 6] and steps[-1][2] == 6
    assert all(each.findings for each in again if SATURATED in each.name)


def test_the_json_has_the_numbers_of_findings(campaign: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_report(campaign, [], campaign / "campaign.report.html", True, []) == 0
    leaves = json.loads(capsys.readouterr().out)["leaves"]
    assert all(("S03" in each["diagnosis"]) == (SATURATED in each["leaf"]) for each in leaves)


def test_findings_of_other_leaves_are_named(campaign: Path) -> None:
    cached = Found("S01", Weight.INFO, "Reads have 2 levels.", "")
    leaves = [replace(each, findings=(cached,)) if QUIET in each.name else each for each in read_results(campaign)]
    found = Findings(analyse_campaign(leaves))
    first = found.first(("S03",))
    assert first and [each.number for each in found.elsewhere(("S03", "S01"), first)] == ["S01"]
    # Cache levels are no limit.
    assert "S01" not in of(analyse_campaign(leaves), "What limits").text
    assert of(analyse_campaign(leaves), "What are the slow").text.startswith("Cache levels (S01), in 3 of 6 leaves")
