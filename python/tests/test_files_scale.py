"""`iosonar files scale`: several instances of a replay, and of a program beside it."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
from binary import iosonar
from test_report import report


def test_each_instance_of_replay_and_program_has_a_row(tmp_path: Path) -> None:
    trace, root, output = tmp_path / "t.calls.parquet", tmp_path / "root", tmp_path / "t.scale.parquet"
    root.mkdir()
    iosonar("files", "generate", "cms-analysis", trace, "--scale", "0.0001", "--rate", "100k")
    program = [
        "--setup",
        "touch {root}/set-up",
        "--program",
        "test -f {root}/set-up && echo {instance} >> " + str(tmp_path / "seen"),
    ]
    printed = iosonar(
        "files",
        "scale",
        trace,
        "--root",
        root,
        "--output",
        output,
        "--instances",
        "1,2",
        *program,
        "--",
        "--timing",
        "asap",
    )
    rows = pq.read_table(output).to_pylist()
    assert [(row["instances"], row["what"], row["instance"]) for row in rows] == [
        (number, what, instance) for number in (1, 2) for what in ("replay", "program") for instance in range(number)
    ]
    assert all(row["seconds"] > 0 for row in rows)
    assert sorted((tmp_path / "seen").read_text().split()) == ["0", "0", "1"]
    assert printed.count("  replay ") == printed.count("  program ") == 2
    assert list(root.iterdir()) == []


def test_a_page_without_a_program_has_no_empty_columns(tmp_path: Path) -> None:
    trace, root, output = tmp_path / "t.calls.parquet", tmp_path / "root", tmp_path / "t.scale.parquet"
    root.mkdir()
    iosonar("files", "generate", "cms-analysis", trace, "--scale", "0.0001", "--rate", "100k")
    iosonar("files", "scale", trace, "--root", root, "--output", output, "--instances", "1,2", "--", "--timing", "asap")
    assert report(output, "--out", tmp_path) == 0
    page = (tmp_path / "t.scale.report.html").read_text(encoding="utf-8")
    assert "An instance of the replay took" in page
    assert "replay against program" not in page
