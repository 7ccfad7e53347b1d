"""The summary on the page of a run or a load."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conftest import OpenStudy
from factory import MS, STATISTICS, US, S, load_row, run_row, write_load, write_run

from iosonar.diagrams import CATALOGUE, Options, Study
from iosonar.figures.model import Figure, NoteKind, Severity
from iosonar.report.page import Summary, prose, render, tile_columns
from iosonar.report.run_page import run_page
from iosonar.report.selection import Selection
from iosonar.study.of_requests import judgement_of
from iosonar.table import open_requests

MISSED: dict[str, Any] = {"statistics": STATISTICS | {"within_pct": {"10": 1, "50": 42, "100": 50}}}
ROWS = [run_row(n, scheduled=n * MS, latency=MS) for n in range(200)]


def summary(study: Study) -> Summary:
    return run_page(study, ()).summary


def tile(of: Summary, label: str) -> tuple[str, str]:
    return next((tile.value, tile.more) for tile in of.tiles if tile.label == label)


@pytest.mark.parametrize("run", [MISSED, {"fake": "FAKE RESULT: nothing was read"}])
def test_an_unfaithful_run_shows_no_success_on_times(open_study: OpenStudy, run: dict[str, Any]) -> None:
    with open_study(ROWS, run=run) as study:
        shown = summary(study)
        sonar = next(diagram for diagram in CATALOGUE if diagram.name == "latency.realtime").build(study)
    assert isinstance(sonar, Figure)
    (note,) = [note for note in sonar.notes if note.kind is NoteKind.VERDICT]
    assert note.severity is Severity.NEUTRAL and "No verdict: " in note.text and "Passed" not in note.text
    assert {banner.severity for banner in shown.inconclusive} == {Severity.NEUTRAL}
    assert [banner.text for banner in shown.inconclusive][:2] == [
        "No latency above 5 s; the maximum is 1 ms",
        "No delay above 10 s; the maximum is 0 s",
    ]
    # Checks independent of times still hold.
    assert "No request failed" in [banner.text for banner in shown.checks if banner.severity is Severity.GOOD]
    assert not any("above" in banner.text for banner in shown.checks)
    assert not any(banner.severity is Severity.GOOD for banner in shown.banners if "faithful" not in banner.head)


def test_a_faithful_run_has_a_verdict(open_study: OpenStudy) -> None:
    with open_study([run_row(n, scheduled=n * 10 * MS) for n in range(1_100)]) as study:
        shown = summary(study)
    assert not shown.inconclusive
    assert "No latency above 5 s; the maximum is 1 ms" in [banner.text for banner in shown.checks]
    assert shown.banners[-1].head == "Good run:"


@pytest.mark.parametrize("slow", [(12, 20), (0, 5)], ids=["not steady", "short"])
def test_a_run_that_was_not_steady_is_not_called_good(open_study: OpenStudy, slow: tuple[int, int]) -> None:
    rows = [
        run_row(n, scheduled=n * 10 * MS, latency=MS * (50 if slow[0] * 100 <= n < slow[1] * 100 else 1))
        for n in range(2000)
    ]
    with open_study(rows) as study:
        shown = summary(study)
    assert [banner.head for banner in shown.banners] == ["Replay faithful:"]
    assert "S14 The run is too short" in [finding.head for finding in shown.findings]
    with open_study([row | {"completed_ns": row["issued_ns"] + MS} for row in rows]) as study:
        (*_, last) = summary(study).banners
    assert (last.head, last.severity) == ("Good run:", Severity.GOOD)
    assert last.text == "no request failed, and all latencies and delays are within their limits."


def test_the_page_of_a_load_shows_demand_once(tmp_path: Path) -> None:
    path = write_load(tmp_path / "a.load.parquet", [load_row(n * MS, op=("read", "write")[n % 2]) for n in range(999)])
    with open_requests([path]) as requests:
        study = Study(requests, Options())
        page = run_page(study, Selection().choose(CATALOGUE, requests))
        alone = run_page(study, Selection(only=("overview",)).choose(CATALOGUE, requests))
    names = {section.id: [figure.name for figure in section.figures] for section in page.sections}
    assert names["story"] == ["position.setpoint", "thrp.setpoint"] and names["throughput"] == ["thrs.setpoint"]
    # With --only they are drawn.
    assert [figure.name for section in alone.sections for figure in section.figures] == [
        "overview.thrp",
        "overview.thrs",
    ]


def test_not_faithful_is_stated_once(open_study: OpenStudy) -> None:
    with open_study(ROWS, run=MISSED) as study:
        assert [banner.head for banner in summary(study).banners] == ["Replay NOT faithful, no verdict on the device:"]
    with open_study([*ROWS, run_row(outcome="error", errno=5)], run=MISSED) as study:
        last = summary(study).banners[-1]
    assert (last.head, last.text) == ("Measured as well, without a verdict:", "1 request failed.")
    with open_study(ROWS, run=MISSED | {"warnings": ["the disk was busy; `iosonar x` shows why"]}) as study:
        assert summary(study).banners[-1].text == "The disk was busy; `iosonar x` shows why."


def test_a_percentile_of_discards_says_so(open_study: OpenStudy) -> None:
    rows = [run_row(n, scheduled=n * MS, latency=MS, op="write") for n in range(1900)]
    rows += [run_row(n, scheduled=n * MS, latency=(20 + n % 10) * MS, op="discard") for n in range(1900, 2000)]
    with open_study(rows) as study:
        assert tile(summary(study), "Latency p99")[1] == "1 in 100 is slower, mostly flushes, discards"
    with open_study([row | {"op": "write"} for row in rows]) as study:
        assert tile(summary(study), "Latency p99")[1] == "1 in 100 is slower"


def test_a_load_of_another_size_is_one_warning(open_study: OpenStudy) -> None:
    beyond = "the load reaches up to 3 GiB, but the target has 1 GiB: requests beyond its end wrap around"
    close = "the load reaches up to 11 MiB, but the target has 1 GiB: all requests are close together there"
    for factor, warning, expected in [
        (3.0, beyond, "The load spans 3 times"),
        (1.47, beyond, "The load spans 1.47 times"),
        (0.0108, close, "The load reaches up to"),
    ]:
        run = {"statistics": STATISTICS | {"wrap_factor": factor}, "warnings": [warning]}
        with open_study(ROWS, run=run) as study:
            shown = summary(study)
        banners = [each.text for each in shown.banners if each.severity is Severity.WARNING]
        warnings = [*banners, *(each.text for each in shown.findings if each.severity is Severity.WARNING)]
        assert len(warnings) == 1 and warnings[0].startswith(expected), warnings


def test_the_page_of_a_load_has_nothing_of_a_replay(tmp_path: Path) -> None:
    rows = [load_row(n * MS) | {"latency_ns": 2 * MS} for n in range(101)]
    import pyarrow as pa
    from factory import LOAD_SCHEMA

    schema = LOAD_SCHEMA.append(pa.field("latency_ns", pa.int64()))
    path = write_load(tmp_path / "a.load.parquet", pa.Table.from_pylist(rows, schema=schema))
    with open_requests([path]) as requests:
        shown = summary(Study(requests, Options()))
    assert [table.title for table in shown.tables] == ["Latency"]
    assert not shown.banners and not shown.checks and not shown.inconclusive
    assert [tile.label for tile in shown.tiles if "Delay" in tile.label] == []
    assert tile(shown, "Recorded latency, max") == ("2 ms", "")
    # 101 requests of 4 KiB in a tenth of a second.
    assert tile(shown, "Rate") == ("1,010 requests/s", "")
    assert tile(shown, "Data") == ("4.14 MB/s", "414 kB in total")
    assert shown.lead[0] == "A load of 101 requests over 100 ms."


def test_shares_of_operations_include_all_requests(open_study: OpenStudy) -> None:
    rows = [
        run_row(),
        run_row(op="write"),
        run_row(op="write", pushed_back=True),
        run_row(op="write", outcome="error", errno=5),
        run_row(op="flush", sectors=0, bytes_done=0),
    ]
    with open_study(rows) as study:
        assert tile(summary(study), "Requests") == ("5", "20.0 % reads, 60.0 % writes, 20.0 % others")


def test_throughput_equals_that_of_the_replay(open_study: OpenStudy) -> None:
    # 2001 completions in 2.001 s, the last an error without data.
    rows = [run_row(n, scheduled=n * MS, latency=MS) for n in range(2000)]
    rows.append(run_row(2000, scheduled=2 * S, latency=MS, outcome="error", errno=5, bytes_done=0))
    with open_study(rows) as study:
        shown = summary(study)
    assert tile(shown, "Throughput")[0] == "1,000 requests/s"
    assert tile(shown, "Data") == ("4.09 MB/s", "8.19 MB in total")


def test_a_share_does_not_reach_a_threshold_that_it_misses(open_study: OpenStudy) -> None:
    rows = [run_row(n, delay=(1 if n % 10_000 < 9499 else 60) * US) for n in range(10_000)]
    with open_study(rows, run={"statistics": {}}) as study:
        shown = summary(study)
    assert "94.9 % within 50 µs, 95 % needed" in shown.banners[0].text
    assert shown.checks[0].text.startswith("94.9 % of the 10,000 requests that were not held back")


def test_an_older_footer_lacks_the_number_of_requests(open_study: OpenStudy) -> None:
    rows = [run_row(n, scheduled=n * MS, delay_reason="depth" if n % 4 == 0 else "none") for n in range(2000)]
    with open_study(rows, run={"statistics": STATISTICS}) as study:
        texts = [banner.text for banner in summary(study).checks]
    assert any(text.startswith("99.4 % of the 1,500 requests that were not held back") for text in texts)


def test_one_request_is_too_short_to_be_steady(open_study: OpenStudy) -> None:
    with open_study([run_row()]) as study:
        assert "Too short to tell whether latency was steady" in [banner.text for banner in summary(study).checks]


def test_prose_is_escaped_and_keeps_units_with_numbers() -> None:
    assert prose("<b> `rm x` & 5 ms, 95 % of 3 more") == (
        "&lt;b&gt; <code>rm x</code> &amp; 5\u00a0ms, 95\u00a0% of 3 more"
    )


def test_a_fake_result_is_stated_once(open_study: OpenStudy) -> None:
    with open_study(
        ROWS, run={"fake": "FAKE RESULT: nothing was read", "target": {"path": "none", "kind": "none"}}
    ) as study:
        shown = summary(study)
    assert [banner.text for banner in shown.banners if "nothing was read" in banner.text] == ["Fake: nothing was read."]
    assert shown.lead[0] == "200 requests were replayed: 199 ms of load took 200 ms."


def test_many_long_names_are_abbreviated(tmp_path: Path) -> None:
    paths = [
        write_run(tmp_path / f"{n}{'-long' * 10}.replay.parquet", ROWS[: 10 + n], run={"started_unix_ns": n + 1})
        for n in range(9)
    ]
    with open_requests(paths) as requests:
        shown = summary(Study(requests, Options()))
    assert shown.title == f"0{'-long' * 10} and 8 more"
    assert any(banner.text.startswith("The least faithful run: 99.4 %") for banner in shown.checks)


@pytest.mark.parametrize(
    ("factor", "text"),
    [
        (0.9, "The load spans 90.0 % of the target"),
        (1, "The load spans 100 % of the target"),
        (2.5, "The load spans 2.5 times the target's size and wraps around"),
    ],
)
def test_the_extent_of_a_load(open_study: OpenStudy, factor: float, text: str) -> None:
    with open_study(ROWS, run={"statistics": STATISTICS | {"wrap_factor": factor}}) as study:
        assert text in [banner.text for banner in summary(study).checks]


@pytest.mark.parametrize(
    ("options", "lead", "has_delays"),
    [
        ({}, "200 requests were replayed: 199 ms of load took 200 ms.", True),
        ({"closed": "think"}, "200 requests were replayed in a closed loop, in 200 ms.", True),
        ({"asap": True}, "200 requests were replayed as fast as possible, in 200 ms.", False),
    ],
)
def test_a_run_without_the_times_of_the_load_has_no_demand(
    open_study: OpenStudy, options: dict[str, Any], lead: str, has_delays: bool
) -> None:
    with open_study(ROWS, run={"options": options, "target": {"path": "none", "kind": "none"}}) as study:
        page = run_page(
            study, [diagram for diagram in CATALOGUE if diagram.name in ("overview.thrp", "delay.setpoint")]
        )
    shown = page.summary
    assert shown.lead[0] == lead
    assert ("Delay" in [table.title for table in shown.tables]) is has_delays
    assert any(tile.label == "Delay p99" for tile in shown.tiles) is has_delays
    assert any("delay" in banner.text for banner in (*shown.checks, *shown.inconclusive)) is has_delays
    assert [empty.name for empty in page.empty] == ([] if has_delays else ["delay.setpoint"])
    throughput = next(f for section in page.sections for f in section.figures if f.name == "overview.thrp")
    is_timed = not options
    assert ("demand" in throughput.title) is is_timed
    assert any("of load" in note.text for note in throughput.notes) is is_timed
    assert tile(shown, "Throughput")[1] == ("1,005 requests/s demanded" if is_timed else "")
    assert "none" not in throughput.of


def test_a_fake_result_is_never_called_faithful_or_checked(open_study: OpenStudy) -> None:
    sentence = "This replay was faithful: 100 % of its requests were issued within 10 µs."
    own = {"requests": 200, "within_pct": {"10": 100, "50": 100, "100": 100}, "delay_us": {"p99": 1.0, "max": 2.0}}
    verdict = {"faithful": True, "sentence": sentence, "own": own}
    run = {"fake": "FAKE RESULT: simulated", "statistics": {"verdict": verdict, "zero_reads": 0}}
    with open_study(ROWS, run=run) as study:
        shown = summary(study)
        verdict = judgement_of(study).as_json()
    assert shown.banners[0].text == "Fake: simulated." and shown.banners[0].severity is Severity.BAD
    texts = [f"{banner.head} {banner.text}" for banner in (*shown.banners, *shown.checks, *shown.inconclusive)]
    assert not any("was faithful" in text or "only zeros" in text for text in texts)
    assert not any("scheduled time" in banner.text for banner in shown.checks)
    assert not any(banner.severity is Severity.GOOD for banner in shown.banners)
    assert verdict["zero_reads"] == {"grade": None, "requests": None}


def test_the_page_says_what_to_try_as_the_terminal_does(open_study: OpenStudy) -> None:
    own = {"requests": 200, "within_pct": {"10": 1, "50": 2, "100": 3}, "delay_us": {"p99": 1.0, "max": 2.0}}
    remedies = [{"try": "stop other programs", "costs": "nothing"}, {"try": "--isolate", "costs": "a processor"}]
    verdict = {"faithful": False, "sentence": "This replay was not faithful.", "own": own, "remedies": remedies}
    with open_study(ROWS, run={"statistics": {"verdict": verdict}}) as study:
        (found,) = [banner for banner in summary(study).banners if banner.steps]
    assert found.steps == ("stop other programs (costs: nothing)", "--isolate (costs: a processor)")


def test_a_percentile_of_too_few_requests_is_not_shown(open_study: OpenStudy) -> None:
    with open_study(ROWS) as study:
        shown = summary(study)
    assert tile(shown, "Latency p50") == ("1 ms", "half are faster")
    assert tile(shown, "Latency p99") == tile(shown, "Latency p99.9") == ("–", "too few requests")
    assert [row[3:7] for row in shown.tables[0].rows] == [("1 ms", "1 ms", "–", "–")]
    assert "99 %" not in shown.lead[1]


def test_of_several_tiles_none_is_alone_in_its_row() -> None:
    for tiles in range(4, 13):
        columns = dict(part.removeprefix("--in-").split(":") for part in tile_columns(tiles).split(";"))
        assert all(int(found) <= int(most) for most, found in columns.items())
        assert all(tiles % int(columns[most]) != 1 for most in ("4", "6", "9")), (tiles, columns)


def test_a_page_without_diagrams_has_no_help_for_them(open_study: OpenStudy) -> None:
    with open_study(ROWS) as study:
        page = run_page(study, ())
        whole = run_page(study, [each for each in CATALOGUE if each.name == "latency.realtime"])
    plain = render(page, None)
    assert "</kbd>" not in plain and "Drag in a diagram" not in plain and 'class="plot"' not in plain
    text = render(whole, None)
    assert text.count("Drag in a diagram") == 1 and "</kbd>" in text and "<th>whole run</th>" in text
