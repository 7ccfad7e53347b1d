"""Sensitivity series on simulated devices in virtual time, whose answers are known."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from binary import iosonar

from iosonar.errors import UsageError, UserError
from iosonar.series import sensitivity_findings as words
from iosonar.series.notes import unfilled_notes
from iosonar.series.plan import opened
from iosonar.series.result import Result, read
from iosonar.series.run import run
from iosonar.series.sensitivity import Degradation, Row, Sensitivity, parsed, plan, rows, text_of

PROGRAM = "from iosonar.cli.sensitivity import main; raise SystemExit(main())"


@pytest.fixture(scope="module")
def load(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A read every 10 ms."""
    path = tmp_path_factory.mktemp("load") / "even.load.parquet"
    iosonar("generate", "uniform", path, "--rate", 100, "--duration", "10s", "--reads", "100%", "--span", "10G")
    return path


def found(
    load: Path, directory: Path, times: str, repeats: int = 1, model: str = "constant=1ms servers=1"
) -> list[Row]:
    with opened(directory, plan(Sensitivity(load, times, repeats, (), model, True, ()))) as series:
        return rows(run(series, lambda _: None))


def test_quantised_requests_queue_as_they_arrive_at_once(load: Path, tmp_path: Path) -> None:
    exact, short, long = found(load, tmp_path / "a.sensitivity", "1ms,100ms")[:3]
    assert (exact.name, short.name, long.name) == ("exact", "quantize-1ms", "quantize-100ms")
    assert exact.response_mean_s == pytest.approx(1e-3, rel=1e-3) and exact.ratio_mean == 1
    assert exact.faithful and short.faithful is None
    # Every 10 ms a request is at a multiple of 1 ms, so nothing changes; ten of them meet at each 100 ms.
    assert short.ratio_mean == pytest.approx(1, rel=1e-3)
    assert long.ratio_mean == pytest.approx(5.5, rel=0.02)
    assert long.ratio_p99 == pytest.approx(10, rel=0.02)
    assert long.ratio_in_flight == pytest.approx(5.5, rel=0.05)


def test_a_device_without_a_queue_does_not_feel_a_delay(load: Path, tmp_path: Path) -> None:
    directory = tmp_path / "b.sensitivity"
    exact, _, delayed = found(load, directory, "20ms", model="constant=1ms")
    assert delayed.how is Degradation.DELAY and exact.ratio_in_flight == 1
    assert delayed.ratio_mean == pytest.approx(1, rel=1e-3)
    words = json.loads((directory / "series.json").read_text())["points"][2]["words"]
    assert words == ["--perturb", "delay=10ms", "--seed", "1"]
    with opened(directory, plan(Sensitivity(load, "20ms", 1, (), "constant=1ms", True, ()))) as series:
        result = read(series.result(series.plan.points[2]), series.plan.points[2])
    assert result is not None
    # The mean of a uniform delay up to 20 ms is 10 ms.
    assert result.response_mean_s - result.latency_mean_s == pytest.approx(10e-3, rel=0.1)


def test_repeats_have_other_seeds_and_are_added(load: Path, tmp_path: Path) -> None:
    directory, model = tmp_path / "c.sensitivity", "exponential=1ms"
    first = found(load, directory, "10ms", model=model)
    before = (directory / "exact.1.replay.parquet").stat().st_mtime_ns
    second = found(load, directory, "10ms", repeats=2, model=model)
    assert [row.runs for row in first] == [1, 1, 1] and [row.runs for row in second] == [2, 2, 2]
    assert first[0].response_mean_s != second[0].response_mean_s
    assert (directory / "exact.1.replay.parquet").stat().st_mtime_ns == before
    with pytest.raises(UserError, match=r"device was .* is .*constant=1ms"):
        found(load, directory, "10ms", model="constant=1ms")


def test_the_command_writes_tables_pictures_and_a_page(load: Path, tmp_path: Path) -> None:
    directory = tmp_path / "d.sensitivity"
    words = [str(load), "--simulate", "constant=1ms servers=1", "--virtual-time", "--times", "10us,100ms", "--json"]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words, "--output", directory], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    printed: dict[str, Any] = json.loads(done.stdout)
    assert [each["point"] for each in printed["points"]] == [
        *("exact", "quantize-10us", "quantize-100ms", "delay-10us", "delay-100ms")
    ]
    assert "simulated" in printed["fake"][0] and "perturb" not in printed["fake"][0]
    names = {path.name for path in directory.iterdir()}
    assert {"d.g01.sensitivity.response.png", "d.g02.sensitivity.in-flight.png", "d.report.html"} <= names
    assert {"d.points.csv", "d.points.parquet", "exact.1.replay.parquet"} <= names


def result(name: str, value: float, latency_s: float | None = None, *, unfilled: bool = False) -> Result:
    return Result(
        name=name,
        value=value,
        requests=10,
        rate=10,
        response_mean_s=1e-3,
        response_median_s=1e-3,
        response_p99_s=1e-3,
        latency_mean_s=latency_s or 1e-3 + value,
        latency_p99_s=latency_s or 1e-3 + value,
        mean_in_flight=1,
        faithful=True,
        failed=0,
        fake="",
        delayed_by_depth=0,
        warnings=(),
        unfilled=unfilled,
    )


def test_a_point_is_compared_with_the_exact_runs_of_its_seeds() -> None:
    # Another seed is another load for the device: the second exact run takes three times as long.
    exact = [result("exact.1", 0, 1e-3), result("exact.2", 0, 3e-3)]
    degraded = [result("quantize-1ms.1", 1e-3, 1e-3), *(result(f"quantize-5ms.{n}", 5e-3, n * 2e-3) for n in (1, 2))]
    assert [row.ratio_mean for row in rows([*exact, *degraded])] == [1, 1, 1.5]


def test_an_unfilled_target_is_marked_and_allows_no_finding() -> None:
    def said(*, exact: bool, degraded: bool) -> tuple[list[str], list[str]]:
        results = [result("exact.1", 0, unfilled=exact), result("delay-1ms.1", 1e-3, unfilled=degraded)]
        found = rows(results)
        assert [each["unfilled"] for each in words.as_rows(found)] == [exact, degraded]
        return words.findings(found, unfilled_notes(results)), [row[-1] for row in words.table(found).rows]

    findings, marks = said(exact=True, degraded=True)
    assert len(findings) == 1 and findings[0].startswith("2 points of 2 read a target that was never filled")
    assert marks == ["target not filled"] * 2
    findings, marks = said(exact=False, degraded=True)
    assert len(findings) == 1 and findings[0].startswith("1 point of 2 read") and marks == ["", "target not filled"]
    findings, marks = said(exact=False, degraded=False)
    assert "changes most" in findings[0] and marks == ["", ""]
    assert findings[1:] == [
        "The mean number of requests in flight is that of the exact replay with all degraded times."
    ]


def test_times_have_units() -> None:
    assert parsed("1ms,10us,1000us") == [10e-6, 1e-3]
    assert [text_of(seconds) for seconds in (10e-6, 1.5e-3, 2.0, 500e-9)] == ["10us", "1500us", "2s", "500ns"]
    for wrong in ("", "1", "x", "0us", "2h", "10us,"):
        with pytest.raises(UsageError):
            parsed(wrong)


@pytest.mark.parametrize("option", ["--perturb=delay=1ms", "--seed=2", "--repeat=2", "--start-at=1767225600"])
def test_options_that_the_series_decides_are_refused(option: str) -> None:
    asked = Sensitivity(Path("a.load.parquet"), "1ms", 1, ("/dev/null",), None, False, (option,))
    with pytest.raises(UsageError, match="the series sets it for each run"):
        plan(asked)
