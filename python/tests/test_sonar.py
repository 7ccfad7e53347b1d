from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from conftest import OpenStudy
from factory import MS, STATISTICS, S, run_row, write_run

from iosonar.diagrams import CATALOGUE, Options, Study
from iosonar.figures.model import Cloud, Direction, Empty, Figure, NoteKind, Role, Rule, Severity, Steps
from iosonar.figures.numbers import column_name
from iosonar.figures.size import Size
from iosonar.report.run_page import run_page
from iosonar.table import open_requests


def build(study: Study, name: str) -> Figure:
    figure = next(diagram for diagram in CATALOGUE if diagram.name == name).build(study)
    assert isinstance(figure, Figure)
    return figure


def notes(figure: Figure, kind: NoteKind) -> list[tuple[str, Severity]]:
    return [(note.text, note.severity) for note in figure.notes if note.kind is kind]


ROWS = [
    run_row(0, scheduled=0, latency=2 * MS),
    run_row(1, scheduled=1 * S, latency=4 * MS),
    run_row(2, scheduled=2 * S, delay=3 * MS, latency=1 * MS, op="write"),
    run_row(3, scheduled=3 * S, delay=5 * MS, latency=1 * MS, op="write", pushed_back=True),
    run_row(4, scheduled=4 * S, latency=None),
]


def test_the_sonar_diagram_has_a_dot_for_each_request(open_study: OpenStudy) -> None:
    with open_study(ROWS) as study:
        figure = build(study, "latency.realtime")
    cloud = figure.layers[0]
    assert isinstance(cloud, Cloud)
    assert [(part.role, int(part.counts.sum())) for part in cloud.parts] == [
        (Role.READ, 2),
        (Role.WRITE, 1),
        (Role.PUSHED_WRITE, 1),
    ]
    assert [row.cells for row in figure.legend.rows] == [
        ("2", "3 ms", "–", "4 ms"),
        ("1", "1 ms", "–", "1 ms"),
        ("1", "1 ms", "–", "1 ms"),
    ]
    assert notes(figure, NoteKind.VERDICT) == [("Passed: no latency above 5 s (max 4 ms)", Severity.GOOD)]
    assert figure.y.low <= 1e-3 and figure.y.high >= 4e-3


def test_a_failed_verdict_marks_the_first_violation(open_study: OpenStudy) -> None:
    rows = [*ROWS, run_row(5, scheduled=5 * S, latency=6 * S), run_row(6, scheduled=6 * S, latency=7 * S)]
    with open_study(rows) as study:
        figure = build(study, "latency.realtime")
    assert notes(figure, NoteKind.VERDICT) == [("Failed: 2 latencies above 5 s (max 7 s)", Severity.BAD)]
    rules = [layer for layer in figure.layers if isinstance(layer, Rule)]
    assert [(rule.direction, rule.at) for rule in rules] == [(Direction.HORIZONTAL, 5), (Direction.VERTICAL, 5)]


def test_delays_have_a_separate_limit(open_study: OpenStudy) -> None:
    with open_study([*ROWS, run_row(5, scheduled=5 * S, delay=6 * S)]) as study:
        figure = build(study, "delay.setpoint")
    assert notes(figure, NoteKind.VERDICT) == [("Passed: no delay above 10 s (max 6 s)", Severity.GOOD)]


def test_a_run_without_latencies_is_listed_as_empty(open_study: OpenStudy) -> None:
    with open_study([run_row(latency=None)]) as study:
        empty = next(diagram for diagram in CATALOGUE if diagram.name == "latency.realtime").build(study)
    assert empty == Empty("latency.realtime", "no latencies in the file")


def test_fidelity_comes_first(open_study: OpenStudy) -> None:
    with open_study(ROWS) as study:
        first = build(study, "latency.realtime").notes[0]
    assert (first.kind, first.severity) == (NoteKind.FIDELITY, Severity.GOOD)
    assert first.text == "Replay faithful: 97.5 % within 10 µs, 99.4 % within 50 µs, 99 % within 21 µs"


def test_an_unfaithful_run_has_no_verdict(open_study: OpenStudy) -> None:
    late = STATISTICS | {"within_pct": {"10": 3.0, "50": 21.0, "100": 40.0}}
    with open_study(ROWS, run={"statistics": late}) as study:
        first = build(study, "latency.realtime").notes[0]
    assert first.severity is Severity.BAD
    assert first.text.startswith("Replay NOT faithful, no verdict on the device: ")
    assert "21.0 % within 50 µs, 95 % needed" in first.text


def test_without_statistics_fidelity_comes_from_delays(open_study: OpenStudy) -> None:
    older = STATISTICS | {"within_pct": {"10": 97.5, "100": 99.7}}
    with open_study([run_row(delay=30_000)], run={"statistics": older}) as study:
        first = build(study, "latency.realtime").notes[0]
    assert first.text == "Replay faithful: 0 % within 10 µs, 100 % within 50 µs"


@pytest.mark.parametrize(("faithful", "severity"), [(True, Severity.GOOD), (False, Severity.BAD)])
def test_the_runs_own_verdict_takes_precedence_over_its_delays(
    open_study: OpenStudy, faithful: bool, severity: Severity
) -> None:
    own = {"requests": 9, "within_pct": {"10": 90.0, "50": 96.0, "100": 97.0}, "delay_us": {"p99": 120.0}}
    verdict = {"faithful": faithful, "sentence": "So it was.", "own": own}
    with open_study(ROWS, run={"statistics": STATISTICS | {"verdict": verdict}}) as study:
        first = build(study, "latency.realtime").notes[0]
        summary = run_page(study, []).summary
    assert (first.kind, first.severity) == (NoteKind.FIDELITY, severity)
    assert "90.0 % within 10 µs, 96.0 % within 50 µs, 99 % within 120 µs" in first.text
    assert (summary.banners[0].severity, summary.banners[0].text) == (severity, "So it was.")


def test_a_run_delayed_only_by_the_device_is_faithful(open_study: OpenStudy) -> None:
    own = {"requests": 0, "within_pct": None, "delay_us": None}
    verdict = {"faithful": True, "sentence": "This replay was faithful.", "own": own}
    with open_study(ROWS, run={"statistics": STATISTICS | {"verdict": verdict}}) as study:
        first = build(study, "latency.realtime").notes[0]
    assert (first.severity, first.text) == (Severity.GOOD, "Replay faithful: only the device held requests back")


def test_fake_and_cut_short_are_stamped(open_study: OpenStudy) -> None:
    with open_study(ROWS, complete=False, run={"fake": "no O_DIRECT"}) as study:
        figure = build(study, "overview.thrp")
    assert [text for text, _ in notes(figure, NoteKind.STAMP)] == ["FAKE RESULT", "CUT SHORT"]
    assert ("Fake: no O_DIRECT", Severity.BAD) in notes(figure, NoteKind.WARNING)


@pytest.mark.parametrize(
    ("factor", "severity", "words"),
    [
        (15.161, Severity.WARNING, "wrap-around factor 15.2"),
        (1.0, Severity.NEUTRAL, "load spans 100 % of the target"),
        (0.166, Severity.NEUTRAL, "load spans 16.6 % of the target"),
        (2.0, Severity.WARNING, "wrap-around factor 2"),
    ],
)
def test_the_wrap_around_factor_warns(open_study: OpenStudy, factor: float, severity: Severity, words: str) -> None:
    with open_study(ROWS, run={"statistics": STATISTICS | {"wrap_factor": factor}}) as study:
        ((text, found),) = notes(build(study, "delay.setpoint"), NoteKind.WRAP)
    assert found is severity
    assert text == words


def test_the_overview_has_demand_and_actual(open_study: OpenStudy) -> None:
    rows = [run_row(n, scheduled=n * S, delay=n * S, latency=MS) for n in range(40)]
    with open_study(rows) as study:
        figure = build(study, "overview.thrp")
    lines = {layer.role: layer for layer in figure.layers if isinstance(layer, Steps)}
    assert lines[Role.DEMAND].y[:-1].tolist() == [1.0] * 13
    assert np.isnan(lines[Role.DEMAND].y[-1])  # holds nothing but the last request, at its very beginning
    assert lines[Role.ACTUAL].y[0] == pytest.approx(2 / 3)
    assert lines[Role.ACTUAL].edges[-1] == pytest.approx(78.001)
    ((text, severity),) = notes(figure, NoteKind.VERDICT)
    assert severity is Severity.WARNING and "1 min 18 s for 39 s" in text


def test_points_of_several_runs_are_run_by_run(tmp_path: Path) -> None:
    files = [write_run(tmp_path / f"{name}.replay.parquet", [run_row(at) for at in range(3)]) for name in "ab"]
    with open_requests(files) as requests:
        several = build(Study(requests, Options()), "latency.points")
    with open_requests(files[:1]) as requests:
        one = build(Study(requests, Options()), "latency.points")
    assert several.x.label == "Request, run by run in the order of completion"
    assert several.title == "Latency over requests, run by run in the order of completion"
    assert one.x.label == "Request, in the order of completion"
    assert column_name(one.x) == column_name(several.x)


def test_a_histogram_has_a_legend_row_for_each_line(open_study: OpenStudy) -> None:
    rows = [run_row(0, latency=MS), run_row(1, latency=3 * MS, op="write")]
    with open_study(rows) as study:
        figure = build(study, "latency.bins")
    assert [row.label for row in figure.legend.rows] == ["Reads", "Writes", "All"]
    assert figure.legend.rows[-1].cells == ("2", "2 ms", "–", "3 ms")
    assert figure.y.low < 1, "bins with one request don't lie on the frame"


def test_the_peak_in_flight_does_not_depend_on_the_picture(open_study: OpenStudy) -> None:
    rows = [run_row(number, latency=MS) for number in range(7)] + [run_row(8, scheduled=10 * S)]
    for size in (Size(400, 300), Size(4000, 3000)):
        with open_study(rows, Options(size=size)) as study:
            legend = build(study, "latency.flying").legend
        assert legend.columns == ("avg", "highest mean", "peak")
        assert legend.rows[-1].cells == ("", "", "7")
