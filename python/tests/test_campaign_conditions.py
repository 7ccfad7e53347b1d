"""Conditions of `campaign --fail-if`: metrics of a leaf, their outcomes, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from test_campaign_report import leaf

from iosonar.campaign.report import gate, run_report
from iosonar.campaign.report.analysis import analyse_campaign
from iosonar.campaign.report.factors import Place
from iosonar.campaign.report.page import campaign_page
from iosonar.campaign.report.results import LeafResult, read_results
from iosonar.errors import UsageError
from iosonar.report.gate import HOLDS, UNDECIDED, Fidelity, Outcome
from iosonar.report.gate_files import CaseOutcome


def result(**more: Any) -> LeafResult:
    known = {"p99": 0.02, "delay.p99": 1e-5, "throughput": 0.97, "errors": 0.0}
    return LeafResult("a/b", ("a", "b"), Path("a/b"), "done", metrics=known, fidelity=Fidelity.FAITHFUL, **more)


def outcome_of(text: str, leaf: LeafResult) -> Outcome:
    judged = gate.judge(Path(), gate.parse_conditions([text]), [leaf])
    of = {CaseOutcome.FAILED: Outcome.HOLDS, CaseOutcome.PASSED: Outcome.FAILS}
    return of.get(judged.leaves[0].outcome, Outcome.UNDECIDED)


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("p99 > 10ms", True),
        ("latency.p99 > 30ms", False),
        ("p99>=20ms", True),
        ("delay.p99 > 1ms", False),
        ("throughput < 98%", True),
        ("errors > 0", False),
        ("errors == 0", True),
        ("verdict = unfaithful", False),
        ("verdict != faithful", False),
        ("state != done", False),
        ("p50 > 1ms", None),
    ],
)
def test_conditions_hold_for_metrics_of_a_leaf(text: str, holds: bool | None) -> None:
    assert outcome_of(text, result()) is (
        Outcome.UNDECIDED if holds is None else Outcome.HOLDS if holds else Outcome.FAILS
    )


@pytest.mark.parametrize(
    "text",
    [
        "p99",
        "p99 > 10",
        "p99 > 10%",
        "p99 > 10parsec",
        "throughput < 95",
        "errors > 1ms",
        "p100 > 1ms",
        "verdict = great",
    ],
)
def test_wrong_conditions_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="invalid condition"):
        gate.parse_conditions([text])


def test_a_leaf_that_was_replayed_is_judged_by_its_result() -> None:
    each = replace(result(), state="replayed")
    assert outcome_of("p99 > 10ms", each) is Outcome.HOLDS
    assert outcome_of("state = replayed", each) is Outcome.HOLDS
    assert outcome_of("state != done", each) is Outcome.HOLDS


def test_leaves_have_all_percentiles_that_a_run_has(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    leaf(tmp_path, Place(("a",), {}), 1000, 1)
    read_results(tmp_path)
    for text, holds in (("p98.5 > 1ms", True), ("delay.p75 > 1ms", False), ("p99.9 < 1s", None), ("p12 < 900us", True)):
        expected = UNDECIDED if holds is None else HOLDS if holds else 0
        assert run_report(tmp_path, [], None, True, [text]) == expected, text
        assert gate.judge(tmp_path, gate.parse_conditions([text])).exit_code == expected, text
    report = json.loads(capsys.readouterr().out.rpartition("\n{\n")[2].join(("{", "")))
    assert {"p98.5", "p12", "p50"} <= report["leaves"][0]["metrics"].keys(), "what was measured stays known"


def test_a_delay_is_shown_and_judged_as_measured(tmp_path: Path) -> None:
    for number, delay_ns in enumerate((200, 900, 200, 900, 200, 900)):
        leaf(
            tmp_path, Place((f"x{delay_ns}", f"repeat-{number}"), {"x": f"{delay_ns}"}), 1000, number, delay_ns=delay_ns
        )
    results = read_results(tmp_path)
    assert {each.metrics["delay.p99"] for each in results} == {200e-9, 900e-9}
    assert {each.metrics["delay.max"] for each in results} == {200e-9, 900e-9}
    judged = gate.judge(tmp_path, gate.parse_conditions(["delay.p99 >= 1us"]), results)
    assert judged.exit_code == 0
    analysis = analyse_campaign(results)
    (effect,) = next(each.effects for each in analysis.metrics if each.metric == "delay.p99")
    assert effect.change == pytest.approx(0, abs=1e-9), "the model has a floor"
    page = campaign_page(analysis, judged, tmp_path, "c")
    assert "Delays below 1 µs count as 1 µs in means and changes" in page.sections[0].about
    assert "effects.delay.p99" not in [figure.name for figure in page.sections[0].figures]


def test_of_an_unfaithful_run_only_latencies_are_undecided() -> None:
    each = result(doubt="the replay was NOT faithful")
    assert outcome_of("p99 > 10ms", each) is Outcome.UNDECIDED
    assert outcome_of("delay.p99 > 1us", each) is Outcome.HOLDS


def test_the_page_names_leaves_with_the_same_outcome_together(tmp_path: Path) -> None:
    results = [replace(result(doubt="FAKE"), name=name) for name in ("a", "b", "c")]
    judged = gate.judge(tmp_path, gate.parse_conditions(["p99 > 1ms"]), results)
    page = campaign_page(analyse_campaign(results), judged, tmp_path, "c")
    (banner,) = (each for each in page.summary.banners if each.head == "Gate undecided:")
    assert banner.text == "p99 > 1ms (FAKE) for a, b and c."
