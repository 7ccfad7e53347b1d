"""`iosonar diagnose`: its output, thresholds and exit codes; and the document of all findings."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from binary import TOP
from factory import S
from findings_kit import made

from iosonar.findings.registry import all_detectors
from iosonar.findings.thresholds import Measured, Threshold, WrongThresholdError, parse_overrides

DOCUMENT = TOP / "docs/generated/findings.md"


def diagnose(*words: object) -> subprocess.CompletedProcess[str]:
    binary = Path(sys.executable).with_name("iosonar")
    environment = {**os.environ, "COLUMNS": "100"}
    return subprocess.run([binary, "diagnose", *map(str, words)], capture_output=True, text=True, env=environment)


@pytest.fixture
def stalling(tmp_path: Path) -> Path:
    """A request each 10 ms, and each 2 s one that takes 180 ms with those after it."""
    at = np.arange(6000) * 10_000_000
    into = at % (2 * S)
    latency = np.where(into < 180_000_000, 180_000_000 - into, 300_000 + at // 10_000_000 % 7 * 10_000)
    return made(tmp_path / "a.replay.parquet", at, latency)


def test_a_finding_is_printed_with_its_details(stalling: Path) -> None:
    done = diagnose(stalling)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(
        "S07 warning  Periodic stalls: Every 2 s, the storage stops for up to 180 ms: 30 stalls"
    )
    for label in ("usually means", "ruled out", "advice", "rows", "confidence"):
        assert re.search(rf"^    {label} +\S", done.stdout, re.MULTILINE), label
    assert f'iosonar sql {stalling} "SELECT * FROM requests WHERE latency_ns >= ' in done.stdout
    assert "    confidence     high: 30 stalls are within" in done.stdout


def test_the_severity_decides_on_the_exit_code(stalling: Path) -> None:
    codes = {limit: diagnose(stalling, "--fail-on", limit).returncode for limit in ("info", "warning", "bad")}
    assert codes == {"info": 3, "warning": 3, "bad": 0}


def test_json_has_findings_and_what_was_not_looked_for(stalling: Path) -> None:
    found = json.loads(diagnose(stalling, "--json").stdout)
    assert [each["number"] for each in found["findings"]] == ["S07"]
    assert found["findings"][0]["values"]["period_s"] == pytest.approx(2)
    assert found["files"] == [str(stalling)]


def test_times_of_an_unfaithful_replay_are_not_looked_at(tmp_path: Path) -> None:
    at = np.arange(3000) * 10_000_000
    late = made(
        tmp_path / "late.replay.parquet",
        at,
        np.where(at % (2 * S) < 180_000_000, 180_000_000, 300_000),
        {"run": {"statistics": {}}},
        issued_ns=at + 5_000_000,
    )
    found = json.loads(diagnose(late, "--json").stdout)
    assert "S07" not in [each["number"] for each in found["findings"]]
    assert {"number": "S07", "why": "the replay was not faithful"} in found["not_checked"]


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("S07", "write it like S07.length=20ms"),
        ("S99.length=1", "no finding has the number S99"),
        ("S07.size=1", "S07 has S07.period, S07.length, S07.stalls"),
        ("S07.length=fast", "length is a time above zero, such as 2 ms"),
        ("S07.length=-1", "length is a time above zero"),
    ],
)
def test_a_wrong_threshold_is_refused_with_the_right_ones(typed: str, said: str) -> None:
    known = {each.number: each.thresholds for each in all_detectors()}
    with pytest.raises(WrongThresholdError, match=re.escape(said)):
        parse_overrides([typed], known)


def test_thresholds_take_the_units_of_what_they_measure() -> None:
    kinds = {
        Measured.TIME: [("20ms", 0.02), ("2m", 120)],
        Measured.BYTES: [("64MiB", 1 << 26), ("2GB", 2e9), ("4096", 4096)],
        Measured.SHARE: [("5%", 0.05), ("0.2", 0.2)],
        Measured.NUMBER: [("3", 3), ("1.5", 1.5)],
    }
    for unit, texts in kinds.items():
        for text, value in texts:
            assert Threshold("x", 1, unit, "").parse(text) == pytest.approx(value)
    assert Threshold("x", 1, Measured.NUMBER, "").parse("3s") is None


def test_a_wrong_threshold_is_an_error_of_the_command_line(stalling: Path) -> None:
    done = diagnose(stalling, "--threshold", "S07.length=fast")
    assert done.returncode == 2
    assert done.stderr.startswith("iosonar diagnose: --threshold S07.length=fast: length is a time above zero")


def test_numbers_and_names_of_findings_are_unique() -> None:
    detectors = all_detectors()
    assert len({each.number for each in detectors}) == len({each.name for each in detectors}) == len(detectors)
    for each in detectors:
        texts = [each.meaning, *each.advice, *(threshold.about for threshold in each.thresholds)]
        assert all(re.fullmatch(r"[A-Z`].*[.]", text) for text in texts), each.number


def test_the_document_has_all_findings() -> None:
    text = "\n".join(document()) + "\n"
    if os.environ.get("UPDATE_DOCS"):
        DOCUMENT.write_text(text, encoding="utf-8")
    assert DOCUMENT.read_text(encoding="utf-8") == text, "run this test with UPDATE_DOCS=1"


def document() -> list[str]:
    lines = [
        "# Findings",
        "",
        "<!-- Generated from python/iosonar/findings (UPDATE_DOCS=1 pytest python/tests/test_diagnose.py). -->",
        "",
        "What `iosonar diagnose` looks for; S are findings of requests, F of calls to files. A threshold is set by",
        "`--threshold NUMBER.NAME=VALUE`, such as `--threshold S07.length=20ms`.",
    ]
    for each in all_detectors():
        lines += ["", f"## {each.number} {each.title}", "", f"`{each.name}`. {each.meaning}", ""]
        lines += [f"- {advice}" for advice in each.advice]
        if each.thresholds:
            lines += ["", "| threshold | default | |", "|---|---|---|"]
            lines += [
                f"| `{each.number}.{threshold.name}` | {threshold.text(threshold.default)} | {threshold.about} |"
                for threshold in each.thresholds
            ]
    return lines
