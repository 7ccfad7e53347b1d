"""Times on the command line are parsed as in the Rust half."""

import pytest
import typer
from typer.testing import CliRunner

from iosonar.cli.report import app
from iosonar.cli.times import seconds


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5", 5.0),
        ("0.5", 0.5),
        (".5", 0.5),
        ("1e-3", 0.001),
        ("5ms", 0.005),
        ("20 MS", 0.02),
        ("7ns", 7e-9),
        ("3us", 3e-6),
        ("3µs", 3e-6),
        ("10m", 600.0),
        ("2min", 120.0),
        ("1.5h", 5400.0),
        ("1d", 86_400.0),
    ],
)
def test_every_unit_is_accepted(text: str, expected: float) -> None:
    assert seconds(text) == pytest.approx(expected)


@pytest.mark.parametrize("text", ["", "s", "soon", "0", "-1", "-5ms", "1x", "1.2.3", "inf", "nan", "1e999", "5 ms s"])
def test_an_invalid_time_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="20ms 10m"):
        seconds(text)


@pytest.mark.parametrize("option", ["--bad-latency", "--bad-delay", "--window"])
def test_a_wrong_time_exits_with_2(option: str) -> None:
    result = CliRunner().invoke(app, ["none.replay.parquet", option, "soon"])
    assert result.exit_code == 2
    assert "20ms" in result.output
