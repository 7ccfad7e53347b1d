"""The diagrams of a load, on small inputs with known results."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from conftest import OpenStudy
from factory import S, load_row, run_row, write_load
from hypothesis import given, settings
from hypothesis import strategies as st
from test_sonar import build

from iosonar.diagrams import Options, Study
from iosonar.figures.model import Direction, Line, NoteKind, Role, Rule, Steps, Unit
from iosonar.quantities.positions import popularity
from iosonar.quantities.series import Series
from iosonar.quantities.turns import turns
from iosonar.table import Requests, open_requests

GIB = 1 << 21


@contextmanager
def load(directory: Path, rows: list[dict[str, object]], **footer: object) -> Iterator[Requests]:
    with open_requests([write_load(directory / "a.load.parquet", rows, **footer)]) as requests:
        yield requests


def test_sizes_are_counted_by_operation(tmp_path: Path) -> None:
    rows = [load_row(sectors=length, op=op) for length, op in ((8, "read"), (8, "read"), (11, "read"), (256, "write"))]
    with load(tmp_path, rows) as requests:
        figure = build(Study(requests, Options()), "rqsize.bins")
    lines = {layer.role: layer for layer in figure.layers if isinstance(layer, Steps)}
    reads = lines[Role.READ]
    assert (figure.x.unit, figure.x.low) == (Unit.BYTES, 512)
    assert reads.y[np.searchsorted(reads.edges, 8 * 512, side="right") - 1] == 2
    assert np.nansum(reads.y) == 3
    assert [row.cells for row in figure.legend.rows] == [
        ("3", "4.5 KiB", "4 KiB", "5.5 KiB"),
        ("1", "128 KiB", "128 KiB", "128 KiB"),
        ("4", "35.4 KiB", "4 KiB", "128 KiB"),
    ]
    assert np.nansum(lines[Role.ALL].y) == 4
    assert not [note for note in figure.notes if note.kind is NoteKind.FIDELITY]


def test_sizes_do_not_depend_on_outcomes(open_study: OpenStudy) -> None:
    rows = [run_row(0), run_row(1, pushed_back=True), run_row(2, outcome="error"), run_row(3, op="write")]
    with open_study(rows) as study:
        figure = build(study, "rqsize.bins")
    assert [(row.label, row.cells[0]) for row in figure.legend.rows] == [("Reads", "3"), ("Writes", "1"), ("All", "4")]


def test_positions_mark_the_end_of_the_device(tmp_path: Path) -> None:
    rows = [load_row(sector=0), load_row(sector=GIB - 1), load_row(sector=2 * GIB, op="write")]
    with load(tmp_path, rows, devices=[{"name": "sda", "sectors": 4 * GIB}]) as requests:
        figure = build(Study(requests, Options()), "rqpos.bins")
    lines = {layer.role: layer for layer in figure.layers if isinstance(layer, Steps)}
    # 256 bins of 16 MiB.
    assert {int(place): int(lines[Role.READ].y[place]) for place in np.flatnonzero(lines[Role.READ].y > 0)} == {
        0: 1,
        63: 1,
    }
    assert np.flatnonzero(lines[Role.WRITE].y > 0).tolist() == [128]
    assert figure.of.endswith("bins of 16 MiB")
    assert [(rule.direction, rule.at) for rule in figure.layers if isinstance(rule, Rule)] == [
        (Direction.VERTICAL, 4.0 * 2**30)
    ]


@pytest.mark.parametrize(
    ("device", "last", "bins", "width"),
    [
        (2**20, 2**20 - 8, 256, "2 MiB"),
        (2**20 + 1, 100, 129, "4 MiB"),
        (None, 0, 1, "4 KiB"),
        (2**54 - 1, 2**40, 256, "32 PiB"),
        # Made for a larger device: all requests are drawn.
        (2**20, 2**40, 129, "4 TiB"),
    ],
)
def test_bins_of_positions_suit_the_device(
    tmp_path: Path, device: int | None, last: int, bins: int, width: str
) -> None:
    devices = [{"name": "sda"} | ({"sectors": device} if device else {})]
    with load(tmp_path, [load_row(sector=0), load_row(sector=last)], devices=devices) as requests:
        figure = build(Study(requests, Options()), "rqpos.bins")
    (line,) = (layer for layer in figure.layers if isinstance(layer, Steps))
    assert len(line.y) == bins
    assert np.nansum(line.y) == 2
    assert figure.of.endswith(f"bins of {width}")
    if device and last < device:
        assert line.edges[-1] == device * 512


def test_turns_are_requests_below_their_predecessor(tmp_path: Path) -> None:
    sectors = [10, 20, 15, 15, 5, 30, 1]
    rows = [
        load_row(number * S // 2, sector=sector, op="write" if number == 4 else "read")
        for number, sector in enumerate(sectors)
    ]
    with load(tmp_path, rows) as requests:
        found = turns(requests.table, "scheduled_ns", 1.0)
    # Windows: 10 20 | 15 15 | 5 30 | 1
    assert found.turns[Series.READ].tolist() == [0, 1, 0, 1]
    assert found.requests[Series.READ].tolist() == [2, 2, 1, 1]
    assert found.turns[Series.WRITE].tolist() == [0, 0, 1, 0]


@pytest.mark.parametrize("at_once", [1, 3, 100])
def test_turns_do_not_depend_on_the_number_sorted_at_once(
    tmp_path: Path, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("iosonar.quantities.turns.ROWS_AT_ONCE", at_once)
    chance = np.random.default_rng(5)
    sectors = chance.integers(0, 50, 200).tolist()
    # Ten requests at a time: their order is that of the file.
    rows = [load_row(number // 10 * S, sector=sector) for number, sector in enumerate(sectors)]
    with load(tmp_path, rows) as requests:
        found = turns(requests.table, "scheduled_ns", 1.0)
    expected = [before > after for before, after in pairwise([sectors[0], *sectors])]
    assert found.turns[Series.READ].tolist() == np.array(expected).reshape(20, 10).sum(axis=1).tolist()


def test_turns_are_counted_for_each_device(tmp_path: Path) -> None:
    rows = [load_row(1, sector=100), load_row(2, sector=50) | {"device": 1}, load_row(3, sector=200)]
    with load(tmp_path, rows) as requests:
        found = turns(requests.table, "scheduled_ns", 1.0)
    assert found.turns[Series.READ].tolist() == [0]


def test_turns_are_a_percentage_of_requests(tmp_path: Path) -> None:
    rows = [load_row(number * S // 4, sector=1000 - number) for number in range(80)]
    with load(tmp_path, rows) as requests:
        figure = build(Study(requests, Options()), "turns.setpoint")
    (line,) = (layer for layer in figure.layers if isinstance(layer, Steps))
    assert line.y.tolist() == [75.0] + [100.0] * 19


@settings(max_examples=15)
@given(
    requests=st.lists(
        st.tuples(st.integers(0, 200), st.integers(1, 40), st.sampled_from(["read", "write"])), min_size=1, max_size=30
    )
)
def test_popularity_equals_a_count_of_pages(tmp_path: Path, requests: list[tuple[int, int, str]]) -> None:
    with load(tmp_path, [load_row(sector=first, sectors=length, op=op) for first, length, op in requests]) as opened:
        found = popularity(opened.table)
    for kind in ("read", "write", "all"):
        pages: Counter[int] = Counter()
        for first, length, op in requests:
            if kind in (op, "all"):
                pages.update(range(first // 8, (first + length - 1) // 8 + 1))
        assert (kind in found) == bool(pages)
        if pages:
            accesses = sorted(pages.values(), reverse=True)
            assert np.repeat(found[kind].accesses, found[kind].pages).tolist() == accesses
            half = found[kind].pages_for(0.5)
            assert sum(accesses[: int(half)]) <= sum(accesses) / 2 <= sum(accesses[: int(half) + 1])


def test_popularity_marks_the_quantiles_of_a_cache(tmp_path: Path) -> None:
    # One page with 64 accesses, 64 pages with one: half of all accesses go to one page.
    rows = [load_row(number, sector=0) for number in range(64)]
    rows += [load_row(100 + number, sector=8 * (1 + number)) for number in range(64)]
    with load(tmp_path, rows) as requests:
        figure = build(Study(requests, Options()), "freq.bins")
    rules = {rule.label: rule.at for rule in figure.layers if isinstance(rule, Rule)}
    assert rules["1/2"] == pytest.approx(1.0)
    (pages,) = (layer for layer in figure.layers if isinstance(layer, Steps))
    assert (pages.edges.tolist(), pages.y.tolist()) == ([1, 2, 66], [64, 1])
    assert figure.y.low < 1, "pages with one access don't lie on the frame"


def test_working_sets_have_their_known_sizes_over_time(tmp_path: Path) -> None:
    rows = [load_row(number * S, sector=8 * number) for number in range(20)]
    with load(tmp_path, rows) as requests:
        study = Study(requests, Options())
        sizes, distance, each = (build(study, name) for name in ("ws_lin", "sum_dist", "avg_dist"))
    lines = {layer.label: layer for layer in sizes.layers if isinstance(layer, Line)}
    assert list(lines) == ["δ = 1 s", "δ = 6 s", "δ = ∞"]
    assert lines["δ = 6 s"].y[-1] == 6 * 4096
    assert lines["δ = ∞"].y[-1] == 20 * 4096
    spread = {layer.label: layer for layer in distance.layers if isinstance(layer, Line)}
    assert spread["δ = 6 s"].y[-1] == (6 * 8 - 1) * 512
    normal = {layer.label: layer for layer in each.layers if isinstance(layer, Line)}
    assert normal["δ = 6 s"].y[-1] == pytest.approx((6 * 8 - 1) / 48)


def test_windows_much_shorter_than_the_run_are_drawn_as_means(tmp_path: Path) -> None:
    # Zero or one request within the last second: individual samples would fill the whole picture.
    rows = [load_row(number * 20 * S, sector=(number * 7919) % 4096 * 8) for number in range(4320)]
    with load(tmp_path, rows) as requests:
        study = Study(requests, Options())
        figures = [build(study, name) for name in ("ws_lin", "ws_log", "sum_dist", "avg_dist")]
    for figure in figures:
        lines = {layer.label: layer for layer in figure.layers if isinstance(layer, Line)}
        assert len(lines["δ = 1 s"].x) == len(lines["δ = 1 s"].y) <= 330
        assert len(lines["δ = 10 min"].x) > 330
        assert lines["δ = 1 s"].x[0] < lines["δ = 1 s"].x[-1] <= lines["δ = ∞"].x[-1]
        assert "; up to δ = 1 min, means over " in figure.of
    short = next(layer for layer in figures[0].layers if isinstance(layer, Line))
    # One second of twenty, at the sampled times.
    assert 0 < float(np.nanmean(short.y)) < 4096


def test_names_of_shares_do_not_overlap(tmp_path: Path) -> None:
    rows = [load_row(number, sector=0) for number in range(60)]
    rows += [load_row(100 + number, sector=8 * (1 + number)) for number in range(1000)]
    with load(tmp_path, rows) as requests:
        figure = build(Study(requests, Options()), "freq.bins")
    rules = [rule for rule in figure.layers if isinstance(rule, Rule)]
    assert len(rules) == 6 and any(rule.can_be_nameless for rule in rules)
    named = [figure.x.share(rule.at) for rule in rules if not rule.can_be_nameless]
    assert "1/2" in {rule.label for rule in rules if not rule.can_be_nameless}
    assert all(right - left >= 0.05 for left, right in pairwise(named))


def test_the_longest_requests_have_a_complete_bin(tmp_path: Path) -> None:
    with load(tmp_path, [load_row(sectors=256)]) as requests:
        figure = build(Study(requests, Options()), "rqsize.bins")
    (line,) = (layer for layer in figure.layers if isinstance(layer, Steps))
    assert line.y[-1] == 0 and line.y[-2] == 1 and figure.x.high == line.edges[-1]


def test_titles_of_diagrams_of_a_load_are_unique(tmp_path: Path) -> None:
    rows = [load_row(n * S, op="write" if n % 3 else "read") for n in range(60)]
    with load(tmp_path, rows) as requests:
        study = Study(requests, Options())
        names = ("overview.thrp", "overview.thrs", "thrp.setpoint", "thrs.setpoint", "position.setpoint")
        titles = [build(study, name).title for name in names]
    assert len(set(titles)) == len(titles)


def test_averages_of_working_sets_say_that_they_differ_in_time(tmp_path: Path) -> None:
    with load(tmp_path, [load_row(n * S, sector=8 * n) for n in range(300)]) as requests:
        late, early = (
            [note.text for note in build(Study(requests, Options(windows_s=windows)), "ws_lin").notes]
            for windows in ((60.0, math.inf), (1.0, math.inf))
        )
    assert late == ["A line starts when its δ has passed (δ = ∞: at once): averages cover different times"]
    assert early == []
