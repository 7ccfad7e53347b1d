"""Programs in reports: their streams, the time from a cause to the issue, comparisons, SQL."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from binary import iosonar
from factory import MS, RUN_SCHEMA, US, S, run_row, write_run
from test_compare import compare
from test_sql import sql

from iosonar.diagrams import CATALOGUE, Options, Study
from iosonar.figures.model import Empty, Figure, Role
from iosonar.report.page import Page, Table
from iosonar.report.run_page import run_page
from iosonar.report.selection import Selection
from iosonar.study.runs import wrap_factor
from iosonar.table import Stream, open_requests, streams_of
from iosonar.units import span

SCHEMA = RUN_SCHEMA.append(pa.field("stream", pa.int32())).append(pa.field("cause", pa.int64()))
PROGRAM: dict[str, Any] = {
    "name": "orders",
    "about": "Clients and a report",
    "text": 'name = "orders"\n',
    "streams": [
        {"name": "client", "instances": 2, "open": False},
        {"name": "report", "instances": 1, "open": True},
    ],
}
OPTIONS = {"set": ["think=10ms"], "scale": 2, "seed": 7}


def rows(**more: Any) -> list[dict[str, Any]]:
    """A read of the report each 10 ms; a write of a client at each completion of the last one, 20 µs late for half."""
    found = [run_row(n, scheduled=n * 10 * MS, latency=2 * MS, stream=1, cause=None) for n in range(100)]
    at = 0
    for n in range(200):
        delay = 20 * US if n % 2 else 0
        cause = 100 + n - 1 if n else None
        found.append(run_row(100 + n, scheduled=at, delay=delay, latency=MS, op="write", stream=0, cause=cause))
        at += delay + MS
    return [row | more for row in found]


def program_run(path: Path, found: list[dict[str, Any]] | None = None, program: dict[str, Any] = PROGRAM) -> Path:
    table = pa.Table.from_pylist(rows() if found is None else found, schema=SCHEMA)
    return write_run(path, table, run={"load": None, "program": program, "options": OPTIONS, "statistics": {}})


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return program_run(tmp_path / "orders.replay.parquet")


def table(page: Page, title: str) -> Table:
    (section,) = (section for section in page.sections if section.id == "streams")
    return next(each for each in section.tables if each.title.startswith(title))


def test_a_stream_has_its_requests_rate_mix_latency_and_delay(run: Path) -> None:
    with open_requests([run]) as requests:
        client, report = Study(requests, Options()).streams
        assert (client.stream.name, client.stream.open, client.stream.instances) == ("client", False, 2)
        assert (client.values.requests, client.values.reads, client.values.writes) == (200, 0, 200)
        assert (report.values.requests, report.values.reads, report.values.data) == (100, 100, 100 * 4096)
        assert report.values.latency.quantile(0.5) == pytest.approx(2 * MS, rel=1e-3)
        assert client.values.delay.maximum == 20 * US


def test_the_time_from_a_cause_to_the_issue_is_the_delay(run: Path) -> None:
    with open_requests([run]) as requests:
        causes = Study(requests, Options()).causes
    # The first client's request has no cause, the report's have none.
    assert list(causes) == [0]
    assert causes[0].delay.count == causes[0].not_held_back == 199
    assert causes[0].within_10_us == pytest.approx(99 / 199)
    assert causes[0].within_50_us == 1.0


def test_requests_that_were_held_back_do_not_count_within_10_us(tmp_path: Path) -> None:
    held = program_run(tmp_path / "held.replay.parquet", rows(pushed_back=True))
    with open_requests([held]) as requests:
        causes = Study(requests, Options()).causes
        page = run_page(Study(requests, Options()), ())
    assert causes[0].delay.count == 199
    assert causes[0].not_held_back == 0
    assert not any("waited for the completion" in sentence for sentence in page.summary.lead)
    assert table(page, "From the completion").rows[0][2:4] == ("", "")


def test_the_page_names_the_program_parameters_and_streams(run: Path) -> None:
    with open_requests([run]) as requests:
        whole = run_page(Study(requests, Options()), ())
    page = whole.summary
    assert page.lead[0] == "300 requests of the program orders were issued on /dev/loop9, in 992 ms."
    assert page.lead[2] == (
        "199 requests waited for the completion of another one: 49.7 % were issued within 10 µs of it, "
        "100 % within 50 µs."
    )
    facts = dict(page.facts)
    assert facts["Program"] == "orders: Clients and a report"
    assert facts["Parameters"] == "think=10ms, scale 2, seed 7"
    assert "Load" not in facts
    client, report = table(whole, "Requests of each stream").rows
    assert client[:6] == ("client", "closed", "2", "200", "202 requests/s", "100 % writes")
    assert report[:6] == ("report", "open", "1", "100", "101 requests/s", "100 % reads")
    # A hundred latencies have no p99.
    assert report[7:9] == (span(2 * MS / S), "–")


def test_only_programs_have_diagrams_with_a_line_per_stream(run: Path, tmp_path: Path) -> None:
    names = {"streams.latency", "streams.rate"}
    diagrams = [diagram for diagram in CATALOGUE if diagram.name in names]
    with open_requests([run]) as requests:
        chosen = {diagram.name for diagram in Selection().choose(CATALOGUE, requests)}
        study = Study(requests, Options())
        figures = [diagram.build(study) for diagram in diagrams]
        page = run_page(study, diagrams)
    assert names <= chosen
    latency, rate = figures
    assert isinstance(latency, Figure) and isinstance(rate, Figure)
    # The report has too few requests in each slice for a median.
    assert [row.label for row in latency.legend.rows] == ["client"]
    assert "No line for report: p50 needs at least 20 requests" in [note.text for note in latency.notes]
    assert [row.label for row in rate.legend.rows] == ["client", "report"]
    assert [section.id for section in page.sections] == ["slowest", "streams"]
    with open_requests([write_run(tmp_path / "load.replay.parquet", [run_row()])]) as requests:
        assert names.isdisjoint(diagram.name for diagram in Selection().choose(CATALOGUE, requests))
        assert isinstance(diagrams[0].build(Study(requests, Options())), Empty)


def test_of_many_streams_all_but_the_busiest_share_a_line(tmp_path: Path) -> None:
    program = PROGRAM | {"streams": [{"name": f"s{n}", "instances": 1, "open": True} for n in range(8)]}
    found = [
        run_row(n, scheduled=n * MS, stream=stream, cause=None)
        for n, stream in enumerate(stream for stream in range(8) for _ in range(10 * (stream + 1)))
    ]
    path = program_run(tmp_path / "many.replay.parquet", found, program)
    rate = next(diagram for diagram in CATALOGUE if diagram.name == "streams.rate")
    with open_requests([path]) as requests:
        figure = rate.build(Study(requests, Options()))
    assert isinstance(figure, Figure)
    assert [row.label for row in figure.legend.rows] == ["s7", "s6", "s5", "s4", "s3", "3 other streams"]
    assert figure.legend.rows[-1].role is Role.FAINT


def test_streams_of_several_files_join_by_program_and_name(tmp_path: Path) -> None:
    other = PROGRAM | {"name": "batch"}
    paths = [
        program_run(tmp_path / f"{name}.replay.parquet", rows(iteration=number), program)
        for number, (name, program) in enumerate((("a", PROGRAM), ("b", PROGRAM), ("c", other)))
    ]
    with open_requests(paths) as requests:
        assert streams_of(requests.files) == (
            Stream("orders: client", 4, False, ((0, 0), (1, 0))),
            Stream("orders: report", 2, True, ((0, 1), (1, 1))),
            Stream("batch: client", 2, False, ((2, 0),)),
            Stream("batch: report", 1, True, ((2, 1),)),
        )
        assert [each.values.requests for each in Study(requests, Options()).streams] == [400, 200, 200, 100]


def test_a_load_beside_a_program_is_a_stream_of_its_own(tmp_path: Path) -> None:
    found = [*rows(), *(run_row(n, scheduled=n * MS, stream=None, cause=None) for n in range(50))]
    made = pa.Table.from_pylist(found, schema=SCHEMA)
    path = write_run(tmp_path / "both.replay.parquet", made, run={"load": "mysql.load.gz", "program": PROGRAM})
    with open_requests([path]) as requests:
        study = Study(requests, Options())
        assert [(each.stream.name, each.values.requests) for each in study.streams] == [
            ("client", 200),
            ("report", 100),
            ("requests of the load", 50),
        ]
        assert study.has_demand
        assert (
            run_page(study, ())
            .summary.lead[0]
            .startswith("350 requests of the program orders, beside mysql.load.gz, were issued")
        )


def test_closed_streams_have_no_demand_and_no_wrap_around(tmp_path: Path, run: Path) -> None:
    closed = PROGRAM | {"streams": [{"name": "client", "instances": 2, "open": False}]}
    path = program_run(tmp_path / "closed.replay.parquet", [row for row in rows() if row["stream"] == 0], closed)
    with open_requests([path]) as requests:
        assert not Study(requests, Options()).has_demand
        assert wrap_factor(requests.files[0]) is None
    with open_requests([run]) as requests:
        assert Study(requests, Options()).has_demand


def test_sql_knows_the_names_of_streams(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain = write_run(tmp_path / "plain.replay.parquet", [run_row()])
    query = "SELECT source, stream_name, count(*) AS n FROM requests GROUP BY ALL ORDER BY ALL"
    assert sql(run, plain, query, "--format", "json") == 0
    assert json.loads(capsys.readouterr().out) == [
        {"source": 0, "stream_name": "client", "n": 200},
        {"source": 0, "stream_name": "report", "n": 100},
        {"source": 1, "stream_name": None, "n": 1},
    ]
    assert sql(run, "FROM streams", "--format", "json") == 0
    first, _ = json.loads(capsys.readouterr().out)
    assert first == {
        "source": 0,
        "stream": 0,
        "program": "orders",
        "stream_name": "client",
        "instances": 2,
        "open": False,
    }
    assert sql(plain, "SELECT count(*) AS n FROM streams", "--format", "json") == 0
    assert json.loads(capsys.readouterr().out) == [{"n": 0}]


def compared(a: Path, b: Path, capsys: pytest.CaptureFixture[str]) -> tuple[str, dict[str, Any]]:
    assert compare(a, b, "--out", a.parent / "page.html") == 0
    text = capsys.readouterr().out
    assert compare(a, b, "--json", "--out", a.parent / "again.html") == 0
    (against,) = json.loads(capsys.readouterr().out)["comparisons"]
    return text, against


def test_runs_of_one_program_compare_at_any_number_of_requests(
    tmp_path: Path, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    slower = [row for row in rows() if row["request"] < 200]
    text, against = compared(run, program_run(tmp_path / "slower.replay.parquet", slower), capsys)
    assert "A · orders: 1 run of orders, 300 requests" in text
    assert "different" not in text and "differ in" not in text
    assert (against["same_load"], against["pairing"]) == (True, "unpaired")


def test_runs_of_different_programs_get_a_warning(
    tmp_path: Path, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = PROGRAM | {"name": "batch"}
    text, against = compared(run, program_run(tmp_path / "other.replay.parquet", program=other), capsys)
    assert "B against A, different programs: orders in A, batch in B." in text
    assert not against["same_load"]


def test_another_text_under_the_same_name_is_another_load(
    tmp_path: Path, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = PROGRAM | {"text": 'name = "orders"\n# changed\n'}
    text, against = compared(run, program_run(tmp_path / "other.replay.parquet", program=other), capsys)
    assert "text of the program" in text
    assert not against["same_load"]


def test_virtual_time_issues_at_the_completion_of_the_cause(tmp_path: Path) -> None:
    path = tmp_path / "tpcb.replay.parquet"
    words = ("--simulate", "sata-ssd", "--virtual-time", "--for", "2s", "--set", "think=exponential mean=50ms")
    iosonar("workload", "run", "tpcb", *words, "--output", path)
    with open_requests([path]) as requests:
        study = Study(requests, Options())
        (teller,) = study.streams
        assert (teller.stream.name, teller.stream.instances) == ("teller", 10)
        assert study.causes[0].within_10_us == 1.0
        found = requests.table
        causes = found.select(cause="request", end="completed_ns")
        joined = found.filter(found.cause.notnull()).join(causes, "cause")
        late = (joined.issued_ns - joined.end - joined.delay_ns).abs().max()
        assert joined.aggregate(late=late, n=joined.count()).to_pyarrow().to_pylist() == [
            {"late": 0, "n": study.causes[0].delay.count}
        ]
        page = run_page(study, ()).summary
        assert "of the program tpcb were issued" in page.lead[0]
