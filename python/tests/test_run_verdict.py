from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from conftest import OpenStudy
from factory import MS, STATISTICS, S, run_row, write_run
from test_report import report

from iosonar.diagrams.notes import common_notes
from iosonar.figures.model import NoteKind
from iosonar.study.check import Check
from iosonar.study.checks.outcomes import counted
from iosonar.study.grades import Grade
from iosonar.study.judgement import Judgement
from iosonar.study.of_requests import judgement_of

SCHEMA = json.loads((Path(__file__).parents[2] / "docs/schemas/verdict.json").read_text())

GOOD = [run_row(n, scheduled=n * S) for n in range(20)]
SKIPPED: dict[str, Any] = {"issued_ns": None, "completed_ns": None}


@pytest.mark.parametrize(
    ("rows", "footer", "part", "grade"),
    [
        ([], {}, "fidelity", "good"),
        ([run_row(latency=6 * S)], {}, "bad_latency", "bad"),
        ([run_row(delay=11 * S)], {}, "bad_delay", "bad"),
        ([run_row(outcome="error", errno=5)], {}, "errors", "bad"),
        ([run_row(outcome="dropped", **SKIPPED)], {}, "dropped", "warning"),
        ([run_row(outcome="dropped", **SKIPPED)] * 3, {}, "dropped", "bad"),
        ([run_row(outcome="beyond_end", **SKIPPED)], {}, "skipped", "warning"),
        ([], {"complete": False}, "complete", "bad"),
        ([], {"run": {"fake": "simulated"}}, "real", "bad"),
        ([], {"run": {"statistics": STATISTICS | {"wrap_factor": 2.5}}}, "wrap_around", "warning"),
        ([], {"run": {"statistics": STATISTICS | {"zero_reads": 1}}}, "zero_reads", "warning"),
        ([], {"run": {"statistics": STATISTICS | {"zero_reads": 2}}}, "zero_reads", "bad"),
        (
            [],
            {"run": {"statistics": STATISTICS | {"within_pct": {"10": 1, "50": 94, "100": 95}}}},
            "fidelity",
            "warning",
        ),
        ([run_row(delay=MS)] * 20, {"run": {"statistics": {"wrap_factor": 1}}}, "fidelity", "bad"),
    ],
)
def test_each_part_of_a_verdict_has_its_grade_and_reason(
    open_study: OpenStudy, rows: list[dict[str, Any]], footer: dict[str, Any], part: str, grade: str
) -> None:
    with open_study([*GOOD, *rows], **footer) as study:
        verdict = json.loads(json.dumps(judgement_of(study).as_json()))
    jsonschema.validate(verdict, SCHEMA)
    assert verdict[part]["grade"] == grade
    assert verdict["grade"] == grade
    assert len(verdict["reasons"]) == (grade != "good")
    others = [
        name for name, value in verdict.items() if isinstance(value, dict) and value["grade"] not in ("good", None)
    ]
    assert others == ([] if grade == "good" else [part])


def test_an_unknown_value_has_no_grade(open_study: OpenStudy) -> None:
    with open_study(GOOD) as study:
        assert judgement_of(study).as_json()["zero_reads"] == {"grade": None, "requests": None}
    with open_study(GOOD, run={"statistics": STATISTICS | {"zero_reads": 0}}) as study:
        assert judgement_of(study).as_json()["zero_reads"] == {"grade": Grade.GOOD, "requests": 0}


@pytest.mark.parametrize(
    "run",
    [{"engine": "simulate"}, {"engine": "null"}, {"target": {"path": "none", "kind": "none", "sectors": 2**54 - 1}}],
)
def test_without_a_target_nothing_wraps_around(open_study: OpenStudy, run: dict[str, Any]) -> None:
    run = {"statistics": STATISTICS | {"wrap_factor": 3.5e-9}} | run
    with open_study(GOOD, run=run) as study:
        assert judgement_of(study).as_json()["wrap_around"] == {"grade": Grade.GOOD, "factor": None}
        assert not [note for note in common_notes(study) if note.kind is NoteKind.WRAP]


def test_numbers_agree_with_their_nouns(open_study: OpenStudy) -> None:
    assert counted(1, "skipped") == "1 request was skipped"
    assert counted(2000, "dropped") == "2,000 requests were dropped"
    assert counted(1, "failed") == "1 request failed"
    with open_study(GOOD, run={"statistics": STATISTICS | {"zero_reads": 1}}) as study:
        assert judgement_of(study).as_json()["reasons"][0].startswith("5.0 % of the reads returned only zeros")


def test_a_run_that_was_not_faithful_names_remedies(open_study: OpenStudy) -> None:
    remedies = [
        {"try": "--isolate=priority", "costs": "other programs wait meanwhile"},
        {"try": "--wait hybrid", "costs": "a little"},
    ]
    own = {"requests": 20, "within_pct": {"10": 50.0, "50": 60.0, "100": 70.0}, "delay_us": None}
    verdict = {"faithful": False, "sentence": "It was not.", "own": own, "remedies": remedies}
    with open_study(GOOD, run={"statistics": STATISTICS | {"verdict": verdict}}) as study:
        reason = judgement_of(study).as_json()["reasons"][0]
    steps = "1. --isolate=priority (costs: other programs wait meanwhile), 2. --wait hybrid (costs: a little)"
    assert reason.endswith(f"95 % needed; try, in this order: {steps}")
    with open_study(GOOD, run={"statistics": STATISTICS | {"verdict": verdict | {"remedies": []}}}) as study:
        assert judgement_of(study).as_json()["reasons"][0].endswith("needed")


def test_a_run_on_time_that_was_not_faithful_has_the_reason(open_study: OpenStudy) -> None:
    own = {"requests": 20, "within_pct": {"10": 100.0, "50": 100.0, "100": 100.0}, "delay_us": None}
    sentence = "This replay was not faithful: issue times were perturbed on purpose. The device itself delayed 9 %."
    verdict = {"faithful": False, "sentence": sentence, "own": own, "remedies": []}
    with open_study(GOOD, run={"statistics": STATISTICS | {"verdict": verdict}}) as study:
        assert judgement_of(study).as_json()["reasons"][0].endswith("issue times were perturbed on purpose")


def test_fail_on_includes_worse_grades() -> None:
    def fails(grade: Grade, limit: Grade) -> bool:
        return Judgement((), "requests", 1, (Check("complete", grade),)).fails(limit)

    assert fails(Grade.BAD, Grade.WARNING)
    assert fails(Grade.WARNING, Grade.WARNING)
    assert not fails(Grade.WARNING, Grade.BAD)


def test_scripts_get_an_exit_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_run(tmp_path / "a.replay.parquet", [*GOOD, run_row(latency=6 * S)])
    words = (path, "--out", tmp_path, "--only", "overview.thrp")
    assert report(*words, "--fail-on", "bad") == 3
    assert "verdict >= bad holds: the run is bad: 1 latency above 5 s" in capsys.readouterr().err
    assert report(*words, "--fail-on", "bad", "--bad-latency", "7") == 0
    assert report(*words, "--fail-on", "bad", "--bad-count", "2") == 0
    jsonschema.validate(json.loads((tmp_path / "a.verdict.json").read_text()), SCHEMA)


def test_an_output_directory_that_is_a_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = write_run(tmp_path / "a.replay.parquet", GOOD)
    for out in (run, run / "below"):
        assert report(run, "--out", out) == 1
        assert f"{out} is not a directory; name another one" in capsys.readouterr().err


def test_a_run_without_requests_is_bad_and_says_so(tmp_path: Path) -> None:
    run = write_run(tmp_path / "a.replay.parquet", [])
    assert report(run, "--out", tmp_path) == 0
    verdict = json.loads((tmp_path / "a.verdict.json").read_text())
    jsonschema.validate(verdict, SCHEMA)
    assert (verdict["grade"], verdict["reasons"]) == ("bad", ["no request was replayed"])
    page = (tmp_path / "a.report.html").read_text()
    assert "No request was replayed on /dev/loop9." in page
    assert "held back" not in page and "latency above" not in page
    assert page.count("no latencies in the file") == 1, "diagrams of the same reason are named together"
