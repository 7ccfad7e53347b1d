"""The questions that the first screen of a campaign of calls answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from call_factory import replayed, write_calls_run

from iosonar.campaign import state
from iosonar.campaign.report.analysis import Analysis, analyse_campaign
from iosonar.campaign.report.answers import answers
from iosonar.campaign.report.call_answers import QUESTIONS
from iosonar.campaign.report.results import read_results
from iosonar.campaign.state import LeafState
from iosonar.figures.model import Severity
from iosonar.report.page import Answer

MS = 1000.0
UNFAITHFUL: dict[str, Any] = {
    "statistics": {"verdict": {"faithful": False, "sentence": "NOT faithful: 12 % within 50 µs"}}
}
SYNCED, PLAIN = "sync-each", "sync-never"


def leaf(top: Path, kind: str, number: int, rows: list[dict[str, Any]], **run: Any) -> None:
    directory = top / kind / f"repeat-{number}"
    directory.mkdir(parents=True)
    timed = {"options": {"timing": "exact"}}
    write_calls_run(directory / "T.localhost.calls-run.parquet", rows, run=timed | run)
    begin, path = 1.7e9 + 60 * number + (30 if kind == SYNCED else 0), [kind, f"repeat-{number}"]
    variables = {"sync": kind.partition("-")[2]}
    found = LeafState("/".join(path), "done", started=begin, ended=begin + 20, path=path, variables=variables)
    state.write(directory, found)


def log(synced: bool, late_us: float = 0, wrong: int = 0) -> list[dict[str, Any]]:
    """A log of 600 pieces of 64 KiB, each 10 ms; the last is late by `late_us`, and the first have other results."""
    rows: list[dict[str, Any]] = []
    for n in range(600):
        made = [("write", 20_000, {"position": n << 16, "length": 1 << 16, "result": 1 << 16})]
        made += [("fdatasync", 3_000_000 + n * 1000, {"result": 0})] * synced
        for part, (name, took_ns, more) in enumerate(made):
            wait = late_us * n / 600
            row = replayed(
                len(rows),
                name,
                n * 10 * MS + part * 50,
                1 + wait,
                path="/db/log",
                delay_reason="predecessor" if wait > 1 else "none",
                expected_result=more["result"],
                expected_duration_ns=took_ns,
                outcome="other_result" if n < wrong else "same",
                **more,
            )
            rows.append(row | {"completed_ns": row["issued_ns"] + took_ns})
    return rows


def campaign(top: Path, late_us: float = 0, wrong: int = 0, **run: Any) -> Analysis:
    """Two levels, twice each: with one of them each write is synced."""
    for number in range(2):
        leaf(top, SYNCED, number, log(True, late_us, wrong), **run)
        leaf(top, PLAIN, number, log(False), **run)
    return analyse_campaign(read_results(top))


def of(analysis: Analysis, question: str) -> Answer:
    return next(each for each in answers(analysis) if each.question.startswith(question))


def test_a_campaign_of_calls_answers_all_ten_questions(tmp_path: Path) -> None:
    analysis = campaign(tmp_path)
    found = answers(analysis)
    assert len(found) == len(QUESTIONS) == 10
    assert all(each.question.endswith("?") and each.text.endswith(".") for each in found)
    assert of(analysis, "Were the runs valid").text == "Yes: all 4 leaves can be used."
    assert of(analysis, "Is the storage fast").text.startswith("Yes, for the loads of 4 leaves: they kept up")
    assert of(analysis, "Were the files").text.startswith("Yes: in the 4 leaves, no call had another result")
    assert of(analysis, "Is one file").text.startswith("In the 4 leaves, no place takes most of the time")


def test_the_waste_is_named_with_the_level_that_has_it(tmp_path: Path) -> None:
    analysis = campaign(tmp_path)
    waste = of(analysis, "What takes the time")
    assert waste.severity is Severity.WARNING
    assert "A sync after each write (F02), in 2 of 4 leaves, most often where sync is each (2 of 2)" in waste.text
    assert "600 syncs of /db/log" in waste.text
    slow = of(analysis, "Which calls are slow")
    assert f"in {SYNCED}/repeat-" in slow.text
    assert of(analysis, "What next").text.startswith("A sync after each write (F02): put several rows into a")


def test_late_calls_and_other_results_are_counted(tmp_path: Path) -> None:
    analysis = campaign(tmp_path, late_us=900 * MS, wrong=20)
    late = of(analysis, "Is the storage fast")
    assert late.severity is Severity.WARNING
    assert late.text.startswith("Not in 2 of 4 leaves: in ") and "the last call came 89" in late.text
    prepared = of(analysis, "Were the files")
    assert prepared.severity is Severity.WARNING
    assert "in 2 of 4 leaves, calls had another result" in prepared.text and "40 calls" in prepared.text


def test_times_of_unfaithful_leaves_of_calls_answer_nothing(tmp_path: Path) -> None:
    analysis = campaign(tmp_path, **UNFAITHFUL)
    assert of(analysis, "Were the runs valid").severity is Severity.BAD
    for question in ("Is the storage fast", "Which calls are slow"):
        assert of(analysis, question).text == "Not known: every result is unfaithful."


def test_fake_leaves_of_calls_are_not_praised(tmp_path: Path) -> None:
    analysis = campaign(tmp_path, fake="FAKE RESULT: no call was made")
    assert Severity.GOOD not in {each.severity for each in answers(analysis)}


@pytest.mark.parametrize("repeat", range(2))
def test_findings_of_calls_are_kept_with_the_results(tmp_path: Path, repeat: int) -> None:
    campaign(tmp_path)
    found = {leaf.name: leaf for leaf in read_results(tmp_path)}
    assert [each.number for each in found[f"{SYNCED}/repeat-{repeat}"].findings] == ["F02"]
    assert found[f"{PLAIN}/repeat-{repeat}"].findings == ()
