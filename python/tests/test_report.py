from __future__ import annotations

import struct
from pathlib import Path

import pytest
from factory import MS, S, load_row, run_row, write_load, write_run
from made_run import made_run

from iosonar.cli.report import app
from iosonar.errors import UsageError
from iosonar.table.engine import memory_bytes
from iosonar.text import joined_names


def report(*words: object) -> int:
    """Runs `iosonar report` and returns its exit code."""
    with pytest.raises(SystemExit) as ended:
        app([str(word) for word in words], prog_name="iosonar report")
    return int(ended.value.code or 0)


def png_size(path: Path) -> tuple[int, int]:
    content = path.read_bytes()
    assert content.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", content[16:24])
    return width, height


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_run(tmp_path / "db.replay.parquet", made_run(2000, seconds=10))


def test_pictures_of_a_run(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert report(run, "--out", tmp_path / "out", "--format", "png") == 0
    written = [Path(line) for line in capsys.readouterr().out.splitlines()]
    verdict = written.pop()
    assert verdict.name == "db.verdict.json"
    names = [path.name for path in written]
    assert names == sorted(names)
    assert {"db.g000.overview.thrp.png", "db.g01.latency.realtime.png", "db.g04.delay.setpoint.png"} <= set(names)
    assert {png_size(path) for path in written} == {(1200, 800)}
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted([*names, verdict.name])


def test_svg_in_another_theme_and_size(run: Path, tmp_path: Path) -> None:
    words = ("--only", "latency.realtime", "--format", "svg", "--theme", "dark", "--size", "800x500")
    assert report(run, "--out", tmp_path, *words) == 0
    text = (tmp_path / "db.g01.latency.realtime.svg").read_text()
    assert "Latency over issue time" in text and "#0f1318" in text


def test_an_unknown_diagram_suggests_similar_ones(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert report(run, "--only", "latency.realtim") == 2
    assert "did you mean latency.realtime" in capsys.readouterr().err


def test_empty_diagrams_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_run(tmp_path / "a.replay.parquet", [run_row(latency=None), run_row(scheduled=MS, latency=None)])
    assert report(path, "--out", tmp_path, "--only", "latency.realtime") == 0
    assert capsys.readouterr().err == "latency.realtime not drawn: no latencies in the file\n"


@pytest.mark.parametrize("rows", [[], [run_row()], [run_row(issued_ns=None, completed_ns=None, outcome="dropped")]])
def test_a_nearly_empty_run_is_no_error(tmp_path: Path, rows: list[dict[str, object]]) -> None:
    assert report(write_run(tmp_path / "a.replay.parquet", rows), "--out", tmp_path) == 0


def test_the_other_half_must_have_the_same_schema_version(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("IOSONAR_SCHEMA_VERSION", "4")
    assert report(run) == 1
    assert "use version 3" in capsys.readouterr().err


def test_a_directory_that_cannot_be_written_is_an_error(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert report(run, "--out", "/proc/none") == 1
    assert capsys.readouterr().err.startswith("iosonar report: ")


def test_copies_and_mixtures_are_refused(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert report(run, run, "--out", tmp_path) != 0
    assert "is named twice" in capsys.readouterr().err
    load = write_load(tmp_path / "a.load.parquet", [load_row(5)])
    assert report(load, run, "--out", tmp_path) != 0
    assert "a.load.parquet is a load" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--window", "0"), "`0` is not a time above zero"),
        (("--window", "-3"), "`-3` is not a time above zero"),
        (("--window", "nan"), "20ms 10m"),
        (("--window", "1e-9"), "at most 100,000 windows fit, so use at least 0.0001"),
        (("--bad-latency", "nan"), "--bad-latency"),
        (("--bad-latency", "-1"), "--bad-latency"),
        (("--bad-delay", "inf"), "--bad-delay"),
        (("--working-sets", "1,x"), "Invalid value for --working-sets: `x` is not a time above zero"),
        (("--working-sets", ","), "no window: use times"),
        (("--bad-count", "0"), "--bad-count"),
        (("--format", "png", "--size", "huge"), "1200x800 or 4k"),
        (("--size", "huge"), "1200x800 or 4k"),
        (("--memory", "much"), "write it like 2GiB, 800M, or as bytes"),
        (("--memory", "64"), "a number without a unit is bytes, write 64M for MiB"),
        (("--engine", "abacus"), "unknown engine"),
    ],
)
def test_a_wrong_command_line_is_explained(
    run: Path, tmp_path: Path, words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert report(run, "--out", tmp_path, *words) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.glob("*.html"))


def test_memory_has_the_units_of_all_sizes() -> None:
    sizes = ("2147483648", "2G", "2GiB", "2gb", " 2 g ", "2_048M", "4194304s", "2147483648B")
    assert {memory_bytes(size) for size in sizes} == {2 << 30}
    assert memory_bytes("1.5M") == 3 << 19
    for wrong in ("", "G", "1.2.3G", "-1G", "2Q", "1023k", "0"):
        with pytest.raises(UsageError, match="--memory"):
            memory_bytes(wrong)


def test_the_windows_of_working_sets_can_be_chosen(tmp_path: Path) -> None:
    rows = [load_row(number * S, sector=8 * number) for number in range(20)]
    path = write_load(tmp_path / "a.load.parquet", rows)
    words = ("--out", tmp_path, "--only", "ws_log", "--format", "svg", "--data", "csv", "--working-sets", "1,7,all")
    assert report(path, *words) == 0
    [table] = tmp_path.glob("*ws_log.csv")
    series = {line.split(",")[0].strip('"') for line in table.read_text().splitlines()[1:]}
    assert series == {"δ = 1 s", "δ = 7 s", "δ = ∞"}


def test_pages_of_a_load_and_of_its_run_have_different_names(tmp_path: Path) -> None:
    run = write_run(tmp_path / "x.replay.parquet", made_run(50, seconds=1))
    load = write_load(tmp_path / "x.load.parquet", [load_row(n * MS) for n in range(50)])
    for path in (run, load):
        assert report(path, "--out", tmp_path / "out", "--only", "thrp") == 0
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"x.report.html", "x.verdict.json", "x.load.report.html"}


@pytest.mark.parametrize("format_", ["html", "png", "svg"])
def test_outputs_of_another_input_are_replaced_only_if_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], format_: str
) -> None:
    paths = []
    for name in ("a", "b ]-->"):
        (tmp_path / name).mkdir()
        paths.append(write_run(tmp_path / name / "x.replay.parquet", made_run(50, seconds=1)))
    words = ("--out", tmp_path / "out", "--only", "overview.thrp", "--format", format_)
    assert report(paths[0], *words) == 0
    # Its own are replaced.
    assert report(paths[0], *words) == 0
    before = {path: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    assert report(paths[1], *words) == 1
    message = capsys.readouterr().err
    assert "a/x.replay.parquet" in message and "--out" in message and "--overwrite" in message
    assert {path: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before
    assert report(paths[1], *words, "--overwrite") == 0
    assert report(paths[1], *words) == 0
    assert report(paths[0], *words) == 1


def test_a_page_that_does_not_say_what_it_shows_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = write_run(tmp_path / "x.replay.parquet", made_run(50, seconds=1))
    page = tmp_path / "x.report.html"
    page.write_text("mine")
    assert report(run, "--out", tmp_path) == 1
    assert page.read_text() == "mine" and not (tmp_path / "x.verdict.json").exists()
    assert "not known to be of this input" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("stems", "expected"),
    [
        (["old.1", "old.2", "old.3"], "old.1-3"),
        (["run.08", "run.09", "run.10"], "run.08-10"),
        (["old.1", "old.3"], "old.1-and-1-more"),
        (["a", "b", "c"], "a-and-2-more"),
        (["a"], "a"),
    ],
)
def test_several_runs_have_a_name_that_says_which(stems: list[str], expected: str) -> None:
    assert joined_names(stems) == expected
