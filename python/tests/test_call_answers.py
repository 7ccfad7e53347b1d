"""The questions that the first screen of a page of calls answers."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from call_factory import call, read, replayed, write, write_calls, write_calls_run

from iosonar.figures.model import Severity
from iosonar.library.run import open_run
from iosonar.report.call_answers import QUESTIONS, call_answers
from iosonar.report.calls_page import calls_page
from iosonar.report.page import Answer, render
from iosonar.study.calls import CallStudy

MS = 1000.0
Answered = Callable[[Path], dict[str, Answer]]


@pytest.fixture
def study() -> Any:
    with ExitStack() as stack:

        def opened(*paths: Path) -> CallStudy:
            found = stack.enter_context(open_run(*paths, original="none")).study
            assert isinstance(found, CallStudy)
            return found

        yield opened


def by_question(study: CallStudy) -> dict[str, Answer]:
    found = call_answers(study)
    assert len(found) == len(QUESTIONS) == 10
    assert all(each.question.endswith("?") and each.text.endswith(".") for each in found)
    names = ("valid", "time", "enough", "slow", "place", "cache", "changed", "prepared", "sure", "next")
    return dict(zip(names, found, strict=True))


def reads(count: int = 1500) -> list[dict[str, Any]]:
    return [read(n * MS, "/data/film", n << 17, 1 << 17, duration_ns=100_000 + n % 7 * 1000) for n in range(count)]


def replay_of(
    path: Path, slower: float = 1.0, late_us: float = 0, wrong: int = 0, slow: float = 1.0, **run: Any
) -> Path:
    """A replay of `reads`; delays of calls that wait for earlier ones grow to `late_us`; each 20th call is `slow`."""
    rows = []
    for n, each in enumerate(reads()):
        wait = late_us * n / 1500
        row = replayed(
            n,
            "read",
            n * MS,
            1 + wait,
            path="/data/film",
            position=n << 17,
            length=1 << 17,
            result=1 << 17,
            delay_reason="predecessor" if wait > 1 else "none",
            expected_result=1 << 17,
            expected_duration_ns=each["duration_ns"],
            outcome="fewer" if n < wrong else "same",
        )
        rows.append(
            row
            | {
                "completed_ns": row["issued_ns"]
                + round(each["duration_ns"] * (slow if slow > 1 and n % 20 == 0 else slower))
            }
        )
    return write_calls_run(path / "a.calls-run.parquet", rows, run={"options": {"timing": "exact"}} | run)


def test_a_clean_trace_answers_all_ten_questions(study: Any, tmp_path: Path) -> None:
    found = by_question(study(write_calls(tmp_path / "a.calls.parquet", reads())))
    assert found["valid"].text == "Yes: it is complete, and no call was lost."
    assert found["time"].text == "The reads: 154 ms of 154 ms in calls on files. The recording lasted 1.5 s."
    assert found["slow"].text.startswith("The reads take longest: the median is 103 µs, p99 106 µs.")
    assert found["place"].severity is Severity.GOOD
    assert "iosonar files replay" in found["next"].text
    assert not {Severity.BAD, Severity.WARNING} & {each.severity for each in found.values()}


def test_the_worst_waste_answers_what_takes_the_time(study: Any, tmp_path: Path) -> None:
    rows = []
    for n in range(300):
        rows.append(write(n * 10 * MS, "/db/log", n * 4096, 4096))
        rows.append(call("fdatasync", n * 10 * MS + 50, 3000, file="/db/log", fd=3))
    found = by_question(study(write_calls(tmp_path / "a.calls.parquet", rows)))
    assert (found["time"].number, found["time"].severity) == ("F02", Severity.WARNING)
    assert found["time"].diagram == "response.sync"
    assert found["next"].text == "Put several rows into a transaction, or several records into a write, and sync once."
    assert found["slow"].text.startswith("The syncs take longest: the median is 3 ms")


def test_a_change_of_slow_calls_alone_is_a_change(study: Any, tmp_path: Path) -> None:
    found = by_question(study(replay_of(tmp_path, slow=4.0)))["changed"]
    assert "slower than in the original; the 99th percentile is 42" in found.text
    found = by_question(study(replay_of(tmp_path, slow=1.5)))["changed"]
    assert found.text.startswith("Neither: ") and "the median is 103 µs" in found.text


def test_a_replay_that_keeps_up_is_fast_enough(study: Any, tmp_path: Path) -> None:
    found = by_question(study(replay_of(tmp_path)))
    assert found["valid"].text.startswith("Yes. ")
    assert found["enough"].text.startswith("Yes, for this load of 1,001 calls/s")
    assert found["changed"].text == "Neither: the calls are the same, and the median is 103 µs against 103 µs."
    assert found["prepared"].severity is Severity.GOOD


def test_a_slower_storage_is_told_from_the_program(study: Any, tmp_path: Path) -> None:
    found = by_question(study(replay_of(tmp_path, slower=5, late_us=800 * MS)))
    assert found["enough"].severity is Severity.WARNING
    assert "the last call came 799 ms late" in found["enough"].text
    assert found["changed"].text.startswith("The storage or the machine: the calls are the same, but slower")


def test_files_that_were_not_prepared_are_named(study: Any, tmp_path: Path) -> None:
    found = by_question(study(replay_of(tmp_path, wrong=30)))
    assert found["prepared"].severity is Severity.WARNING
    assert found["prepared"].text.startswith("Perhaps not: 30 calls (2.0 %) had another result")
    assert found["valid"].text.startswith("With limits: 30 calls")


def test_times_of_an_unfaithful_replay_of_calls_answer_nothing(study: Any, tmp_path: Path) -> None:
    verdict = {"faithful": False, "sentence": "NOT faithful: 12 % within 50 µs"}
    found = by_question(study(replay_of(tmp_path, wrong=30, statistics={"verdict": verdict})))
    assert found["valid"].severity is Severity.BAD
    # The reason for the No comes first, not the calls with another result, which alone are a limit.
    assert "faithful" in found["valid"].text and found["valid"].text.endswith(", and 1 more reason.")
    for name in ("time", "enough", "slow", "place", "changed"):
        assert found[name].text == "Not known: the replay was not faithful.", name
    assert found["sure"].severity is Severity.WARNING


def test_a_fake_replay_of_calls_is_not_praised(study: Any, tmp_path: Path) -> None:
    found = by_question(study(replay_of(tmp_path, fake="FAKE RESULT: no call was made")))
    assert Severity.GOOD not in {each.severity for each in found.values()}


def test_times_of_strace_are_not_compared(study: Any, tmp_path: Path) -> None:
    path = write_calls(tmp_path / "a.calls.parquet", reads(), source={"format": "strace"})
    assert "strace slows each one down" in by_question(study(path))["sure"].text


def test_a_comparison_and_no_calls_have_no_answers(study: Any, tmp_path: Path) -> None:
    trace = write_calls(tmp_path / "a.calls.parquet", reads())
    assert call_answers(study(trace, replay_of(tmp_path))) == ()
    assert call_answers(study(write_calls(tmp_path / "b.calls.parquet", []))) == ()


def test_the_page_of_calls_begins_with_the_answers(study: Any, tmp_path: Path) -> None:
    rows = [read(n * MS, "/d/<b>film", n << 17, 1 << 17, duration_ns=100_000) for n in range(500)]
    page = calls_page(study(write_calls(tmp_path / "a.calls.parquet", rows)), ())
    html = render(page, None)
    assert html.index("What takes the time?") < html.index("Response time p50")
    assert "<b>film" not in html
