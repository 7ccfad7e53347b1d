"""Ends of programs: a one-line reason, the usual exit code, and no leftovers."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from resource import RLIMIT_NOFILE, setrlimit

import pytest
from binary import small_file_system
from factory import write_run
from made_run import made_run
from test_text_results import program

from iosonar.processes import descendants

PROGRAM = "import sys; from iosonar.cli.{} import main; main()"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("run") / "a.replay.parquet", made_run(20_000, seconds=10))


def started(name: str, directory: Path, *words: object, **more: object) -> subprocess.Popen[bytes]:
    (directory / "tmp").mkdir(exist_ok=True)
    environment = os.environ | {"TMPDIR": str(directory / "tmp"), "PYTHONPATH": os.pathsep.join(sys.path)}
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | more
    command = [sys.executable, "-c", PROGRAM.format(name), *map(str, words)]
    return subprocess.Popen(command, env=environment, **streams)  # type: ignore[call-overload, no-any-return]


def alive(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_during_pictures_leaves_no_process_or_file(run: Path, tmp_path: Path, number: signal.Signals) -> None:
    out = tmp_path / "out"
    process = started("report", tmp_path, run, "--out", out, "--format", "png", "--size", "4k")
    assert process.stdout and process.stderr
    with process.stdout, process.stderr:
        # The first picture exists, others are being drawn.
        assert process.stdout.readline().endswith(b".png\n")
        drawing = descendants(process.pid)
        process.send_signal(number)
        assert process.wait() == 128 + number
        message = process.stderr.read().decode().splitlines()
    assert len(drawing) > 0
    # They were killed, which takes a moment on a busy machine.
    until = time.monotonic() + 30
    while left := [pid for pid in drawing if alive(pid)]:
        assert time.monotonic() < until, left
        time.sleep(0.05)
    words = "interrupted" if number is signal.SIGINT else f"ended by {number.name}"
    assert message[-1] == f"iosonar report: {words}" and "Traceback" not in "".join(message)
    assert not list((tmp_path / "tmp").iterdir())
    assert all(path.read_bytes().startswith(b"\x89PNG") and path.name[0] != "." for path in out.iterdir())


def test_a_signal_during_a_query(run: Path, tmp_path: Path) -> None:
    query = "SELECT count(*) FROM requests a, requests b, range(1000) WHERE a.sector + b.sector % 7 = 3"
    process = started("sql", tmp_path, run, query)
    assert process.stderr and process.stdout
    while not list((tmp_path / "tmp").iterdir()):
        assert process.poll() is None
        time.sleep(0.01)
    with process.stdout, process.stderr:
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 128 + signal.SIGTERM
        assert process.stderr.read() == b"iosonar sql: ended by SIGTERM\n"
    assert not list((tmp_path / "tmp").iterdir())


def test_a_signal_that_is_ignored_stays_ignored(run: Path, tmp_path: Path) -> None:
    command = f"trap '' HUP INT; echo ready; exec {sys.executable} -c '{PROGRAM.format('report')}' \"$@\""
    words = [run, "--out", tmp_path, "--only", "latency.realtime", "--format", "svg"]
    process = subprocess.Popen(
        ["sh", "-c", command, "sh", *map(str, words)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
    )
    assert process.stdout
    with process.stdout:
        assert process.stdout.readline() == b"ready\n"
        time.sleep(0.3)
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline().endswith(b".svg\n")
        process.stdout.read()
    assert process.wait() == 0


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("report", ("--only", "latency.realtime", "--format", "svg")),
        ("report", ("--only", "latency.realtime")),
        ("sql", ("FROM requests LIMIT 3",)),
        ("sql", ("FROM requests", "--format", "csv")),
    ],
)
def test_a_full_standard_output_is_an_error(run: Path, tmp_path: Path, name: str, words: tuple[str, ...]) -> None:
    with Path("/dev/full").open("wb") as full:
        out = ("--out", tmp_path / "out") if name == "report" else ()
        process = started(name, tmp_path, run, *words, *out, stdout=full)
        assert process.stderr
        with process.stderr:
            message = process.stderr.read().decode()
        assert process.wait() == 1
    assert message == f"iosonar {name}: cannot write to standard output: No space left on device\n"
    assert not list((tmp_path / "tmp").iterdir())


def test_a_wrong_query_on_full_streams_ends_with_code_2(run: Path, tmp_path: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        process = started("sql", tmp_path, run, "SELEC", stdout=full, stderr=full)
        assert process.wait() == 2


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB."""
    with small_file_system(tmp_path / "small", "64k") as directory:
        yield directory


# As many as are drawn by other processes.
PICTURES = "latency.realtime,latency.setpoint,latency.completed,latency.points"


@pytest.mark.parametrize("read_only", [True, False])
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("report", ("--only", PICTURES, "--format", "png", "--size", "4k", "--out", "{}")),
        ("report", ("--only", "latency.realtime", "--out", "{}")),
        ("sql", ("FROM requests", "--out", "{}/x.parquet")),
        ("compare", ("--out", "{}")),
    ],
)
def test_a_directory_that_cannot_be_written(
    run: Path,
    tmp_path: Path,
    small_disk: Path,
    name: str,
    words: tuple[str, ...],
    read_only: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if read_only:
        subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    other = [write_run(tmp_path / "b.replay.parquet", made_run(2_000, seconds=10))] if name == "compare" else []
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    # A bug is an exception here, not a traceback.
    main = importlib.import_module(f"iosonar.cli.{name}").main
    assert program(main, name, [run, *other, *(word.format(small_disk) for word in words)], monkeypatch) == 1
    message = capsys.readouterr().err.splitlines()
    why = "Read-only file system" if read_only else "No space left on device"
    last = message[-1]
    assert last.startswith(f"iosonar {name}: cannot write {small_disk}") and last.endswith(f": {why}"), message
    assert not [path for path in small_disk.iterdir() if path.name.startswith(".")]
    assert not list((tmp_path / "tmp").iterdir())


def test_no_room_for_temporary_files(run: Path, tmp_path: Path, small_disk: Path) -> None:
    (small_disk / "filling").write_bytes(bytes(60 << 10))
    environment = os.environ | {"TMPDIR": str(small_disk), "PYTHONPATH": os.pathsep.join(sys.path)}
    source = small_disk.parent / "a.load"
    source.write_text("".join(f"{n}.5 ; {n * 99991 % 7919} ; 8 ; R\n" for n in range(50_000)))
    command = [sys.executable, "-c", PROGRAM.format("sql"), str(source), "SELECT 1"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "No space left on device" in done.stderr and len(done.stderr.splitlines()) == 1


def test_a_report_never_replaces_an_input(tmp_path: Path) -> None:
    run = write_run(tmp_path / "a.replay.parquet", made_run(200, seconds=1))
    # The output for a diagram's data is an input of the report.
    also = tmp_path / "a-and-1-more.g01.latency.realtime.parquet"
    other = write_run(tmp_path / "b.replay.parquet", made_run(200, seconds=1, seed=2))
    also.symlink_to(other)
    before = other.read_bytes()
    words = ("--only", "latency.realtime", "--data", "parquet", "--format", "svg", "--out", tmp_path)
    process = started("report", tmp_path, run, also, *words)
    message = process.communicate()[1].decode()
    assert process.returncode == 1 and "is also an input" in message
    assert other.read_bytes() == before and also.is_symlink()


def test_a_report_replaces_files_only(run: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.report.html")
    process = started("report", tmp_path, run, "--only", "latency.realtime", "--out", tmp_path)
    assert process.communicate()[1].decode().endswith("a.report.html: not a regular file\n")
    assert process.returncode == 1 and (tmp_path / "a.report.html").is_fifo()


@pytest.mark.parametrize("name", ["report", "compare", "ab", "sql", "sweep", "sensitivity", "campaign"])
def test_help_and_usage_on_a_full_disk_have_their_exit_codes(name: str, tmp_path: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        process = started(name, tmp_path, "--help", stdout=full)
        _, message = process.communicate()
        assert process.returncode == 1
        assert message.decode() == f"iosonar {name}: cannot write to standard output: No space left on device\n"
        process = started(name, tmp_path, "--no-such-option", stderr=full)
        process.communicate()
        assert process.returncode == 2


@pytest.mark.parametrize("limit", [6, 7, 8, 10])
def test_few_file_descriptors_leave_no_temporary_directory(run: Path, tmp_path: Path, limit: int) -> None:
    words = [run, run, "--out", tmp_path / "out"]
    process = started("compare", tmp_path, *words, preexec_fn=lambda: setrlimit(RLIMIT_NOFILE, (limit, limit)))
    _, message = process.communicate()
    assert process.returncode in (1, 2) and b"Traceback" not in message, message.decode()
    assert not list((tmp_path / "tmp").iterdir())
