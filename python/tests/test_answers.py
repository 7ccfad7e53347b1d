"""The questions that the first screen of a page answers, and the terms that it explains."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import OpenStudy
from factory import MS, STATISTICS, US, S, run_row

from iosonar.figures.model import Severity
from iosonar.report.answers import QUESTIONS, answers
from iosonar.report.page import Answer, render
from iosonar.report.run_page import run_page
from iosonar.report.terms import Explained
from iosonar.study.requests import Study

ROWS = [run_row(n, scheduled=n * MS, latency=100 * US + n % 7 * US) for n in range(2000)]
"""2 s of 1,000 requests/s, all as fast."""


def of(study: Study, question: str) -> Answer:
    return next(each for each in answers(study) if each.question.startswith(question))


def test_a_clean_run_answers_all_ten_questions(open_study: OpenStudy) -> None:
    with open_study(ROWS) as study:
        found = answers(study)
        assert len(found) == len(QUESTIONS) == 10
        assert all(each.question.endswith("?") and each.text.endswith(".") for each in found)
        assert of(study, "Was the run valid").text.startswith("Yes. ")
        assert of(study, "What limits").text.startswith("No limit was reached: it completed all 1,000 requests/s")
        assert "1,000 requests/s" in of(study, "From which rate").text
        assert of(study, "What are the slow").text.startswith("None stand out: p99 takes 106 µs, the median 103 µs")
        assert of(study, "Is one device").text == "The run has one device."
        assert not [each for each in found if each.severity in (Severity.WARNING, Severity.BAD)]


def test_a_saturated_run_names_the_rate(open_study: OpenStudy) -> None:
    # The device completes 500 requests/s of 1,000.
    rows = [run_row(n, scheduled=n * MS, delay=n * MS, latency=2 * MS, delay_reason="depth") for n in range(8000)]
    with open_study(rows) as study:
        limit = of(study, "What limits")
        assert limit.number in ("S03", "S17") and limit.severity in (Severity.WARNING, Severity.BAD)
        assert "500 requests/s" in of(study, "From which rate").text
        # None stands out, as all are slow: no praise.
        slow = of(study, "What are the slow")
        assert slow.severity is not Severity.GOOD and "as all wait for the storage" in slow.text
        # Delays that grow because too much is demanded are no change of the storage.
        assert "the load demanded more than the storage completed" in of(study, "Did the load").text


@pytest.mark.parametrize("run", [{"statistics": STATISTICS | {"within_pct": {"10": 1, "50": 42, "100": 50}}}])
def test_times_of_an_unfaithful_run_answer_nothing(open_study: OpenStudy, run: dict[str, Any]) -> None:
    with open_study(ROWS, run=run) as study:
        valid = of(study, "Was the run valid")
        assert valid.severity is Severity.BAD and "try, " not in valid.text
        for question in ("What limits", "From which rate", "What are the slow", "Is it the cache", "Did the load"):
            assert of(study, question).text.startswith("Not known")
        assert of(study, "How sure").severity is Severity.WARNING


def test_a_made_up_device_is_not_praised(open_study: OpenStudy) -> None:
    with open_study(ROWS, run={"fake": "FAKE RESULT: nothing was read"}) as study:
        assert Severity.GOOD not in {each.severity for each in answers(study)}


def test_a_long_latency_of_a_fast_device_is_not_within_its_limit(open_study: OpenStudy) -> None:
    slow = [*ROWS, run_row(2000, scheduled=3 * S, latency=S)]
    queue = {"rotational": False}
    target = {"path": "/dev/sdx", "kind": "block", "sectors": 1 << 30, "queue": queue}
    with open_study(slow, run={"targets": [target], "target": target}) as study:
        summary = run_page(study, ()).summary
        heads = [banner.head for banner in summary.banners]
        assert "Good run:" not in heads
        assert not any(check.text.startswith("No latency above") for check in summary.checks)
        assert any("without moving parts" in check.text for check in summary.checks)


def test_the_page_links_answers_and_explains_terms(open_study: OpenStudy) -> None:
    with open_study(ROWS) as study:
        html = render(run_page(study, ()), None)
    assert "What limits the storage?" in html and '<a href="#figure-' not in html
    assert html.count('title="Issue time minus scheduled time') == 1


def test_a_term_is_explained_once_and_not_inside_of_tags() -> None:
    terms = Explained()
    first = terms.html('<span class="delay">the delay</span> of p99.9, a delay')
    assert first.count("<abbr") == 2 and '<span class="delay">the <abbr' in first
    assert ">p99.9</abbr>" in first
    assert "<abbr" not in terms.html("delays")
    assert terms.html("p99 latency").count("<abbr") == 2


def test_an_answer_is_not_repeated(open_study: OpenStudy) -> None:
    rows = [run_row(n, scheduled=n * MS, delay=n * MS, latency=2 * MS, delay_reason="depth") for n in range(8000)]
    with open_study(rows) as study:
        texts = [each.text for each in answers(study)]
    assert len(set(texts)) == len(texts)


def test_reads_of_zeros_are_no_cache_and_no_preparation(open_study: OpenStudy) -> None:
    statistics = STATISTICS | {"zero_reads": 1900, "reads_checked": 2000}
    with open_study(ROWS, run={"statistics": statistics}) as study:
        cache, prepared = of(study, "Is it the cache"), of(study, "Was the target")
    assert cache.text.startswith("Not known: reads of areas that were never written")
    assert prepared.text == "No. 1,900 of 2,000 reads (95.0 %) returned only zeros." and prepared.number == "S12"


def test_names_in_code_are_not_explained() -> None:
    assert Explained().html("<code>steady</code>, steady") == (
        '<code>steady</code>, <abbr title="Latency no longer drifts: the warm-up is over">steady</abbr>'
    )
