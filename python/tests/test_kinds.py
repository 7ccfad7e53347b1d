"""A third kind of rows, beside requests and calls, needs only files of its own and its name in the list of kinds."""

from __future__ import annotations

import ast
import json
import shutil
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from factory import load_row, write_load

import iosonar
from iosonar.cli.report import app as report_app
from iosonar.cli.sql import app as sql_app
from iosonar.diagrams import Diagram
from iosonar.diagrams.catalogue import Group
from iosonar.errors import UsageError, UserError
from iosonar.figures.model import Empty
from iosonar.library.family import Family, OpenOptions
from iosonar.report.page import Page, Summary, Tile
from iosonar.report.sections import page_of
from iosonar.study.base import BaseStudy
from iosonar.table import SourceFile
from iosonar.table.engines import start
from iosonar.table.files import read
from iosonar.table.kinds import KINDS, Kind
from iosonar.table.kinds.column import Presence, time, whole

TOP = Path(iosonar.__file__).parent
SHARED = (
    *("table/columns.py", "table/files.py", "table/footer.py", "table/source.py", "table/structure.py"),
    *("table/validation.py", "table/values.py", "table/versions.py", "table/views.py"),
    *("study/base.py", "study/check.py", "study/grades.py", "study/judgement.py", "study/summary.py"),
    *(
        "report/provenance.py",
        "report/compared.py",
        "report/gate_changes.py",
        "report/formats.py",
        "report/gate_files.py",
    ),
    *(
        "report/gate.py",
        "report/output_options.py",
        "report/outputs.py",
        "report/page.py",
        "report/pictures.py",
        "report/sections.py",
        "report/verdict.py",
    ),
    *("library/comparison.py", "library/family.py", "library/frames.py", "library/run.py"),
    *("cli/compare.py", "cli/report.py", "cli/run.py", "cli/sql.py"),
)
KINDS_ALONE = (
    "requests",
    "calls",
    "scale",
    "scaling",
    "of_requests",
    "of_calls",
    "of_scaling",
    "run_page",
    "calls_page",
)


class MessageStudy(BaseStudy):
    def __init__(self, table: Any, files: Sequence[SourceFile], opening: OpenOptions) -> None:
        super().__init__(opening.options)
        self.table, self._files = table, tuple(files)

    @property
    def files(self) -> tuple[SourceFile, ...]:
        return self._files

    @property
    def stem(self) -> str:
        return self.files[0].output_stem


def study(files: Sequence[SourceFile], opening: OpenOptions, stack: ExitStack) -> MessageStudy:
    engine = start(opening.spill, opening.resources)
    stack.callback(engine.close)
    return MessageStudy(read(files[0], engine), files, opening)


def page(study: MessageStudy, diagrams: Sequence[Diagram[MessageStudy]]) -> Page:
    header = Summary("messages", "messages", tiles=(Tile("Messages", str(study.table.count().to_pyarrow().as_py())),))
    return page_of(study, diagrams, header, {"all": ("All", "")}, lambda diagram: "all", {})


FAMILY = Family[MessageStudy](
    noun="messages",
    title="messages",
    study=study,
    table=lambda study: study.table,
    diagrams=(Diagram("peers", "a01", Group.ALWAYS, lambda study: Empty("peers", "too few peers")),),
    page=page,
)


@pytest.fixture
def messages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table of a kind that is registered for the test."""
    module = ModuleType("iosonar_of_messages")
    module.FAMILY = FAMILY  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    columns = {"at_ns": time(Presence.REQUIRED), "peer": whole(9, Presence.REQUIRED), "bytes": whole(2**40)}
    kind = Kind(
        "message", "a log of messages", columns, module.__name__, view="messages", derived={"twice": "2 * peer"}
    )
    monkeypatch.setitem(KINDS, kind.name, kind)
    path = tmp_path / "a.message.parquet"
    footer = {"schema_version": 3, "kind": "message"}
    rows = pa.table({"at_ns": [1, 2, 5], "peer": [1, 2, 1], "own": ["x", "y", "z"]})
    pq.write_table(rows.replace_schema_metadata({"iosonar": json.dumps(footer)}), path)
    return path


def test_a_third_kind_of_rows_is_queried(messages: Path, capsys: pytest.CaptureFixture[str]) -> None:
    query = "SELECT place, peer, twice, bytes, own FROM messages ORDER BY at_ns"
    with pytest.raises(SystemExit):
        sql_app([str(messages), query, "--format", "csv"])
    assert capsys.readouterr().out == "place,peer,twice,bytes,own\n0,1,2,,x\n1,2,4,,y\n2,1,2,,z\n"


def test_a_third_kind_of_rows_is_opened_and_drawn(messages: Path, tmp_path: Path) -> None:
    with iosonar.open(messages) as run:
        assert repr(run) == f"<a log of messages {messages}>"
        assert run.to_arrow("peer").to_pydict() == {"peer": [1, 2, 1]}
        assert run.diagrams == ("peers",)
        (path,) = run.report(tmp_path)
        with pytest.raises(UserError, match="a log of messages: it has no summary"):
            _ = run.summary
        with pytest.raises(UserError, match="a log of messages: there is no verdict on it"):
            _ = run.verdict
    assert "Messages" in path.read_text()


def test_what_a_third_kind_of_rows_lacks_is_refused(messages: Path, tmp_path: Path) -> None:
    load = write_load(tmp_path / "a.load.parquet", [load_row()])
    with pytest.raises(UsageError, match="a load, not of messages: make a separate report of it"):
        iosonar.open(load, messages)
    with pytest.raises(UserError, match="a log of messages, which cannot be compared"):
        iosonar.compare(messages, shutil.copy(messages, tmp_path / "b.message.parquet"))


def test_options_of_requests_are_not_for_other_kinds(messages: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        report_app([str(messages), "--static", "--fail-on", "bad", "--out", str(messages.parent)])
    assert ended.value.code == 2
    assert "--static, --fail-if: not for messages" in capsys.readouterr().err


def test_windows_are_refused_for_rows_that_have_none(messages: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UsageError, match="--from, --to and --skip-warm-up: not for messages"):
        iosonar.open(messages, from_s=1)
    with pytest.raises(UsageError, match="--from, --to and --skip-warm-up: not for messages"):
        iosonar.compare(messages, shutil.copy(messages, messages.with_name("b.parquet")), skip_warm_up=True)
    with pytest.raises(SystemExit) as ended:
        sql_app([str(messages), "FROM messages", "--to", "1"])
    assert ended.value.code == 2
    assert "a log of messages: --from, --to and --skip-warm-up are not for it" in capsys.readouterr().err


def test_a_condition_for_rows_without_metrics_is_refused(messages: Path) -> None:
    with iosonar.open(messages) as run, pytest.raises(UserError, match="a log of messages: there are no conditions"):
        run.holds("p99 > 10ms")


@pytest.mark.parametrize("name", SHARED)
def test_shared_files_import_nothing_of_a_kind(name: str) -> None:
    tree = ast.parse((TOP / name).read_text())
    imports = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert not [module for module in imports if module.rpartition(".")[2] in KINDS_ALONE]
