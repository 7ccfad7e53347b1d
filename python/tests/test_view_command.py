"""`iosonar view` as a program."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from binary import iosonar
from factory import run_row, write_run

from iosonar.view.index import cache_directory


def program(*words: str | Path) -> subprocess.Popen[str]:
    binary = Path(sys.executable).with_name("iosonar")
    return subprocess.Popen([binary, "view", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_the_address_is_printed_and_ctrl_c_ends_it(tmp_path: Path) -> None:
    run = write_run(tmp_path / "a.replay.parquet", [run_row(1), run_row(2, scheduled=1000)])
    with program(run, "--index", tmp_path / "caches") as started:
        assert started.stdout and started.stderr
        address = started.stdout.readline().strip()
        with urllib.request.urlopen(address) as answer:
            assert b"2 requests" in answer.read()
        assert list((tmp_path / "caches").iterdir())
        started.send_signal(signal.SIGINT)
        assert started.wait(30) == 130
        assert "Traceback" not in started.stderr.read()


def test_the_address_leads_to_a_place_and_findings_are_known(tmp_path: Path) -> None:
    run = write_run(tmp_path / "a.replay.parquet", [run_row(1), run_row(2, scheduled=1000)])
    place = ("--figure", "delay.realtime", "--from", "1ms", "--to", "2")
    with program(run, "--index", tmp_path / "caches", *place) as started:
        assert started.stdout
        address, _, at = started.stdout.readline().strip().partition("#")
        assert at == "figure=delay.realtime&x0=0.001&x1=2.0"
        with urllib.request.urlopen(f"{address}findings") as answer:
            assert json.load(answer) == {"findings": []}
        started.send_signal(signal.SIGINT)
        assert started.wait(30) == 130


def test_what_a_view_cannot_show_is_refused(tmp_path: Path) -> None:
    run = write_run(tmp_path / "a.replay.parquet", [run_row(1)])
    for words, reason in (
        ([tmp_path / "none"], "No such file"),
        ([run, "--follow"], "whose run has ended"),
        ([run, "--port", "70000"], "65535"),
        ([run, "--from", "1"], "a later --to"),
        ([run, "--figure", "none"], "latency.realtime"),
    ):
        with program(*words) as started:
            assert started.stderr and reason in started.stderr.read()
            assert started.wait(30) in (1, 2)


def test_the_index_is_in_the_directory_of_caches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_directory() == tmp_path / "iosonar" / "view"
    assert "view" in iosonar("--help")
