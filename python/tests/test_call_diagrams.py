from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from call_factory import call, read, replayed, write_calls, write_calls_run
from made_calls import DATABASE, LOG, TABLE, made_calls, made_replay

from iosonar.diagrams import Options
from iosonar.diagrams.calls import CATALOGUE, CallStudy
from iosonar.diagrams.calls.parts import bars, short_path
from iosonar.errors import UserError
from iosonar.figures.model import Cloud, Empty, Figure, Line, Steps
from iosonar.table.calls import open_calls

OpenCalls = Callable[..., AbstractContextManager[CallStudy]]
RUN = {"options": {"order": "conservative", "timing": "exact"}, "statistics": {"outdegree": {"0": 5, "1": 90, "7": 1}}}


@contextmanager
def opened(*paths: Path) -> Iterator[CallStudy]:
    with ExitStack() as stack:
        yield CallStudy([stack.enter_context(open_calls(path)) for path in paths], Options())


def build(study: CallStudy, name: str) -> Figure | Empty:
    (diagram,) = (each for each in CATALOGUE if each.name == name)
    return diagram.build(study)


def drawn(study: CallStudy, name: str) -> Figure:
    found = build(study, name)
    assert isinstance(found, Figure), found
    return found


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_calls(tmp_path_factory.mktemp("calls") / "shop.calls.parquet", made_calls(12))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows = made_replay(made_calls(12))
    return write_calls_run(tmp_path_factory.mktemp("calls") / "shop.calls-run.parquet", rows, run=RUN)


@pytest.fixture(scope="module")
def of_trace(trace: Path) -> Iterator[CallStudy]:
    with opened(trace) as study:
        yield study


@pytest.fixture(scope="module")
def of_run(run: Path) -> Iterator[CallStudy]:
    with opened(run) as study:
        yield study


@pytest.fixture(scope="module")
def of_both(trace: Path, run: Path) -> Iterator[CallStudy]:
    with opened(trace, run) as study:
        yield study


@pytest.mark.parametrize("name", [diagram.name for diagram in CATALOGUE])
def test_every_diagram_of_a_run_and_of_both_sides(of_run: CallStudy, of_both: CallStudy, name: str) -> None:
    for study in (of_run, of_both):
        found = build(study, name)
        if isinstance(found, Empty):
            assert found.reason
            continue
        assert found.layers
        labels = [layer.label for layer in found.layers if isinstance(layer, Line | Steps)]
        # The page switches series by their label.
        assert len(set(labels)) == len(labels)
        assert set(labels) <= {row.label for row in found.legend.rows}
        for layer in found.layers:
            if isinstance(layer, Steps):
                assert (np.diff(layer.edges) >= 0).all()


def test_a_run_has_all_diagrams_of_fidelity(of_run: CallStudy) -> None:
    for name in ("delay", "compute_error", "outdegree"):
        drawn(of_run, name)


def test_the_cloud_has_each_call_that_returned(of_trace: CallStudy) -> None:
    cloud = drawn(of_trace, "response.realtime").layers[0]
    assert isinstance(cloud, Cloud)
    assert cloud.requests == of_trace.calls


def test_offsets_are_of_the_files_with_the_most_bytes(of_trace: CallStudy) -> None:
    found = [drawn(of_trace, f"offset.{number}") for number in (1, 2, 3)]
    assert [figure.of.split(" · ")[0] for figure in found] == [TABLE, DATABASE, LOG]
    patterns = [figure.title.split(": ")[1] for figure in found]
    assert patterns == ["sequential with gaps", "random", "sequential"]


def test_the_original_is_beside_its_replay(of_both: CallStudy, of_run: CallStudy) -> None:
    labels = [row.label for row in drawn(of_both, "load.realtime").legend.rows]
    assert labels == ["shop", "shop (conservative, exact)"]
    # A run has the response times of its original.
    assert drawn(of_run, "response.read").legend.rows[0].label == "original"


def test_the_mix_adds_up(of_trace: CallStudy) -> None:
    for layer in drawn(of_trace, "mix").layers:
        assert isinstance(layer, Steps)
        assert np.nansum(layer.y) == pytest.approx(100)


def test_others_have_one_bar(tmp_path: Path) -> None:
    names = ["read", "write", "open", "close", "stat", "lseek", "fsync", "chmod", "mkdir", "rmdir", "link", "unlink"]
    path = write_calls(tmp_path / "t.calls.parquet", [call(name, at) for at, name in enumerate(names)])
    with opened(path) as study:
        figure = drawn(study, "mix")
    assert [text for _, text in figure.x.named][-1] == "others"
    assert len(figure.x.named) == 10


def test_a_percentile_without_a_bar_says_why(tmp_path: Path) -> None:
    rows = [call("stat", at) for at in range(200)] + [call("fsync", at) for at in range(30)]
    with opened(write_calls(tmp_path / "t.calls.parquet", rows)) as study:
        found = {name: [note.text for note in drawn(study, name).notes] for name in ("response.call",)}
    assert found["response.call"] == [
        "p90 needs at least 100 calls; missing bars have fewer",
        "p99 needs at least 1,000 calls: no bar",
    ]


def test_equal_names_get_numbers(run: Path) -> None:
    with opened(run, run) as study:
        assert [side.name for side in study.sides] == ["shop (conservative, exact)", "shop (conservative, exact) #2"]


def test_a_file_without_calls_has_no_diagrams(tmp_path: Path) -> None:
    row = replayed(0, "dup", 0, issued_ns=None, completed_ns=None, outcome="bookkeeping")
    with opened(write_calls_run(tmp_path / "r.calls-run.parquet", [row])) as study:
        assert {build(study, diagram.name).name for diagram in CATALOGUE} == {each.name for each in CATALOGUE}
        assert all(isinstance(diagram.build(study), Empty) for diagram in CATALOGUE)


@pytest.mark.slow
@pytest.mark.parametrize("duration", [None, 0, 1])
def test_one_call_is_enough(tmp_path: Path, duration: float | None) -> None:
    rows: list[dict[str, Any]] = [read(0, "/a", 0, 1) | {"duration_ns": duration}]
    with opened(write_calls(tmp_path / "t.calls.parquet", rows)) as study:
        for diagram in CATALOGUE:
            diagram.build(study)


def test_losses_are_in_each_figure(tmp_path: Path) -> None:
    path = write_calls(tmp_path / "t.calls.parquet", [read(0, "/a", 0, 1)], counts={"lost_events": 12}, complete=False)
    with opened(path) as study:
        notes = [note.text for note in drawn(study, "mix").notes]
    assert notes == ["t was cut short", "t: the recorder lost 12 events"]


def test_bars_of_a_histogram_have_gaps() -> None:
    edges, heights = bars(np.array([1.0, 2.0]), 1, 2)
    assert edges.tolist() == pytest.approx([0, 0.4, 1, 1.4])
    assert heights.tolist()[::2] == [1, 2]
    assert np.isnan(heights[1])


def test_long_paths_lose_their_beginning() -> None:
    assert short_path("/short") == "/short"
    assert short_path("/aaaa/bbbb/cccc", 11) == "…/bbbb/cccc"


def test_outdegrees_have_a_line_for_each_order(trace: Path, tmp_path: Path) -> None:
    head = "number\tcall\tpredecessors\n"
    (tmp_path / "fs.tsv").write_text(head + "0\topen\t\n" + "".join(f"{n}\tread\t0\n" for n in range(1, 9)))
    (tmp_path / "thread.tsv").write_text(head + "0\topen\t\n1\tread\t0\n")
    (tmp_path / "wrong.tsv").write_text("a\tb\n")
    with open_calls(trace) as calls:
        both = Options(graphs=(tmp_path / "fs.tsv", tmp_path / "thread.tsv"))
        rows = drawn(CallStudy([calls], both), "outdegree").legend.rows
        assert [(row.label, *row.cells) for row in rows] == [
            ("fs.tsv", "0", "0.889", "8"),
            ("thread.tsv", "0", "0.5", "1"),
        ]
        with pytest.raises(UserError, match="its last column is not"):
            build(CallStudy([calls], Options(graphs=(tmp_path / "wrong.tsv",))), "outdegree")


def test_the_last_bin_of_sizes_is_closed(tmp_path: Path) -> None:
    rows = [read(0, "/a", 0, 4096), read(10, "/a", 4096, 100)]
    with opened(write_calls(tmp_path / "t.calls.parquet", rows)) as study:
        (steps,) = drawn(study, "sizes").layers
    assert isinstance(steps, Steps) and steps.y.tolist()[-2:] == [1, 0]
