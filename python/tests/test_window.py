"""Windows of runs and loads: which requests are in them, and that all of a page is of them."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import jsonschema
import numpy as np
import pytest
from binary import TOP, iosonar
from conftest import OpenRun
from factory import MS, STATISTICS, US, S, load_row, run_row, write_load, write_run

from iosonar.cli.report import app
from iosonar.diagrams import CATALOGUE, Options, Study
from iosonar.errors import UsageError, UserError
from iosonar.figures.model import Figure, Steps
from iosonar.library.run import open_run as open_files
from iosonar.library.windows import in_window
from iosonar.report.run_page import run_page
from iosonar.study.of_requests import judgement_of, summary_of
from iosonar.study.runs import runs_of
from iosonar.table import Requests, Window

OWN = {
    "statistics": STATISTICS
    | {
        "verdict": {
            "faithful": True,
            "sentence": "This replay was faithful: all was well.",
            "own": {"requests": 100, "delay_us": {"p99": 1.0}, "within_pct": {"10": 100, "50": 100, "100": 100}},
        }
    }
}


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A minute of random requests on a simulated disk."""
    directory = tmp_path_factory.mktemp("window")
    load, run = directory / "p.load.parquet", directory / "p.replay.parquet"
    iosonar("generate", "poisson", load, "--rate", 100, "--duration", 60, "--seed", 3)
    iosonar("replay", load, "--simulate", "hdd-behind-cache", "--virtual-time", "--output", run)
    return run


def report(*words: object) -> int:
    with pytest.raises(SystemExit) as ended:
        app([str(word) for word in words], prog_name="iosonar report")
    return int(ended.value.code or 0)


def query(sql: str) -> duckdb.DuckDBPyConnection:
    """Computed without iosonar."""
    return duckdb.connect().execute(sql)


def count(run: Path) -> int:
    return int(query(f"SELECT count(*) FROM '{run}'").fetchall()[0][0])


def part(requests: Requests, from_s: float | None = None, to_s: float | None = None) -> Study:
    return in_window(requests, Options(window=Window.of(from_s, to_s)))


def test_all_numbers_are_of_the_window(replayed: Path) -> None:
    with open_files(replayed, from_s=20, to_s=40) as run:
        found, study = run.summary, run.study
        assert isinstance(study, Study)
        tiles = {tile.label: tile.value for tile in run_page(study, ()).summary.tiles}
    rows = query(
        "SELECT op, completed_ns - issued_ns AS latency, bytes_done, scheduled_ns, completed_ns "
        f"FROM '{replayed}' WHERE scheduled_ns >= 20e9 AND scheduled_ns < 40e9"
    ).df()
    assert found.rows == len(rows) > 1500
    assert (found.reads, found.writes) == ((rows.op == "read").sum(), (rows.op == "write").sum())
    assert found.latency.mean_s == pytest.approx(rows.latency.mean() / 1e9)
    assert found.latency.p99_s == pytest.approx(np.quantile(rows.latency, 0.99, method="inverted_cdf") / 1e9, rel=1e-3)
    assert found.latency.max_s == rows.latency.max() / 1e9
    seconds = (rows.completed_ns.max() - rows.scheduled_ns.min()) / 1e9
    assert found.rate_per_s == pytest.approx(len(rows) / seconds)
    assert found.bytes_moved == rows.bytes_done.sum()
    assert tiles["Requests"] == f"{len(rows):,}"


def test_windows_share_no_request_and_leave_none_out(replayed: Path) -> None:
    ends = (None, 10, 25.5, None)
    numbers: list[int] = []
    for start, end in pairwise(ends):
        with open_files(replayed, from_s=start, to_s=end) as run:
            numbers += run.to_arrow("request")["request"].to_numpy().tolist()
    assert sorted(numbers) == list(range(len(numbers)))
    assert len(numbers) == count(replayed)


def test_the_time_of_issue_counts_without_a_schedule(open_run: OpenRun) -> None:
    rows = [run_row(n, scheduled=0, delay=n * S) for n in range(10)]
    with open_run(rows, run={"options": {"asap": True}}) as requests:
        assert part(requests, 3, 5).span.requests == 2
    with open_run(rows) as requests, pytest.raises(UserError, match=r"no request of .* is due from 3 s to 5 s"):
        part(requests, 3, 5)


def test_the_fidelity_of_a_window_is_measured_in_it(open_run: OpenRun) -> None:
    # The second half is late, although the run as a whole says that it was faithful.
    rows = [run_row(n, scheduled=n * MS, delay=US if n < 500 else 80 * US) for n in range(1000)]
    with open_run(rows, run=OWN) as requests:
        early, late, whole = (part(requests, *at) for at in ((None, 0.5), (0.5, None), (None, None)))
        assert judgement_of(early)["fidelity"].grade == "good"
        assert judgement_of(late)["fidelity"].grade == judgement_of(late).grade == "bad"
        assert judgement_of(whole)["fidelity"].grade == "good"
        (judged,) = runs_of(late)
        assert judged.fidelity and (judged.fidelity.requests, judged.fidelity.within_50_us) == (500, 0.0)
        heads = [banner.head for banner in run_page(late, ()).summary.banners]
        texts = " ".join(banner.text for banner in run_page(early, ()).summary.banners)
    assert heads[:2] == ["Window:", "Replay NOT faithful in this window, no verdict on the device:"]
    assert "all was well" not in texts and "500 of 1,000 requests, due before 500 ms" in texts


def test_a_window_where_only_the_device_delayed_is_faithful(open_run: OpenRun) -> None:
    rows = [run_row(n, scheduled=n * MS, delay=MS, delay_reason="depth" if n < 500 else "none") for n in range(1000)]
    with open_run(rows, run=OWN) as requests:
        assert judgement_of(part(requests, None, 0.5))["fidelity"].grade == "good"
        assert judgement_of(part(requests, 0.5, None))["fidelity"].grade == "bad"


def test_zero_reads_are_those_of_the_whole_run(open_run: OpenRun) -> None:
    rows = [run_row(n, scheduled=n * MS) for n in range(1000)]
    with open_run(rows, run={"statistics": STATISTICS | {"zero_reads": 60}}) as requests:
        check = judgement_of(part(requests, None, 0.1))["zero_reads"]
    assert check.grade == "warning" and check.sentence == "60 reads of the whole run returned only zeros"
    assert check.reason.startswith("6.0 % of the reads")


def test_requests_from_before_a_window_are_in_flight_in_it(open_run: OpenRun) -> None:
    # One request takes the whole run, the others almost no time.
    rows = [run_row(0, latency=10 * S), *(run_row(n, scheduled=n * 10 * MS, latency=US) for n in range(1, 1000))]
    with open_run(rows) as requests:
        study = part(requests, 4, 6)
        figure = next(each for each in CATALOGUE if each.name == "latency.flying").build(study)
    assert isinstance(figure, Figure)
    (mean,) = (layer.y for layer in figure.layers if isinstance(layer, Steps) and layer.label == "Reads")
    assert mean.min() == pytest.approx(1.0, abs=0.01)
    assert figure.x.low == 4.0


def test_a_page_and_its_verdict_have_names_of_their_own(replayed: Path, tmp_path: Path) -> None:
    assert report(replayed, "--from", "20", "--to", "0.5m", "--out", tmp_path) == 0
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"p.from-20s-to-30s.report.html", "p.from-20s-to-30s.verdict.json"}
    verdict = json.loads((tmp_path / "p.from-20s-to-30s.verdict.json").read_text())
    jsonschema.validate(verdict, json.loads((TOP / "docs/schemas/verdict.json").read_text()))
    assert verdict["window"] == {"from_s": 20, "to_s": 30, "of_requests": count(replayed)}


@pytest.mark.parametrize("times", [("5", "5"), ("10m", "2m")])
def test_a_window_without_a_length_is_refused(
    replayed: Path, times: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert report(replayed, "--from", times[0], "--to", times[1]) == 2
    assert "is not before --to" in capsys.readouterr().err


def warm(seconds: int, slow: range, factor: int = 50) -> list[dict[str, Any]]:
    return [
        run_row(n, scheduled=n * S // 100, latency=(factor if n // 100 in slow else 1) * MS + n % 7)
        for n in range(seconds * 100)
    ]


@pytest.mark.parametrize(
    ("slow", "since", "about"),
    [
        (range(4), 4.0, "The warm-up is left out: latency was steady from 4"),
        (range(0), None, "There was no warm-up to leave out"),
        (range(24, 40), None, "No warm-up was left out, as its end is not known: not steady"),
    ],
)
def test_only_a_warm_up_whose_end_is_known_is_left_out(
    open_run: OpenRun, slow: range, since: float | None, about: str
) -> None:
    with open_run(warm(40, slow)) as requests:
        study = in_window(requests, Options(skip_warm_up=True))
        assert study.window and study.window.about.startswith(about)
        assert study.is_part == (since is not None)
        assert study.span.requests == (4000 if since is None else pytest.approx(4000 - since * 100, abs=210))
        page = run_page(study, ()).summary
    assert page.banners[0].head == ("Window:" if since else "All requests:")
    assert about in page.banners[0].text
    assert summary_of(study).latency.max_s == pytest.approx(0.05 if since is None and slow else 0.001, rel=0.01)


@pytest.mark.parametrize("window", [(), ("--from", "1s", "--to", "30")])
def test_limit_leaves_out_the_warm_up_that_sql_finds(window: tuple[str, ...], tmp_path: Path) -> None:
    run = write_run(tmp_path / "a.replay.parquet", warm(40, range(4)))
    first = "SELECT min(scheduled_ns), count(*) FROM in_window"
    start, count = iosonar("sql", run, first, "--format", "csv", "--skip-warm-up", *window).split()[1].split(",")
    assert 4 * S <= int(start) < 6 * S
    whole, found = (json.loads(iosonar("limit", "--json", *window, *more, run)) for more in ((), ("--skip-warm-up",)))
    assert found["window"] == {"from_s": int(start) / 1e9, "to_s": 30.0 if window else None}
    assert found["requests"] == int(count) < whole["requests"]


def test_a_warm_up_is_sought_within_the_window(open_run: OpenRun) -> None:
    with open_run(warm(60, range(4))) as requests:
        study = in_window(requests, Options(window=Window.of(20, None), skip_warm_up=True))
    assert study.window and study.window.from_ns == 20 * S


def test_a_load_has_windows_but_no_warm_up(tmp_path: Path) -> None:
    load = write_load(tmp_path / "x.load.parquet", [load_row(at=n * S) for n in range(10)])
    with open_files(load, from_s=2, to_s=5) as run:
        assert run.summary.rows == 3
    with open_files(load, skip_warm_up=True) as run, pytest.raises(UsageError, match="a load has no warm-up"):
        run.study.prepare()
