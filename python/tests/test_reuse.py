from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from factory import load_row, write_load
from hypothesis import given, settings
from hypothesis import strategies as st
from test_sonar import build

from iosonar.diagrams import Options, Study
from iosonar.diagrams.caching import answer
from iosonar.figures.model import Line, Role, Steps
from iosonar.quantities import reuse as module
from iosonar.quantities.reuse import reuse, stack_distances
from iosonar.table import open_requests


def lru_distances(pages: list[int]) -> list[float]:
    """Reuse distances by an LRU stack."""
    stack: list[int] = []
    found = []
    for page in pages:
        found.append(float(stack.index(page)) if page in stack else math.inf)
        if page in stack:
            stack.remove(page)
        stack.insert(0, page)
    return found


@settings(max_examples=200)
@given(st.lists(st.integers(0, 12), max_size=60))
def test_distances_equal_those_of_an_lru_stack(pages: list[int]) -> None:
    assert stack_distances(np.array(pages, np.int64)).tolist() == lru_distances(pages)


def test_every_page_of_a_request_is_accessed(tmp_path: Path) -> None:
    rows = [load_row(0, sector=0, sectors=16), load_row(1, sector=12, sectors=8), load_row(2, sector=4, sectors=1)]
    with open_requests([write_load(tmp_path / "a.load.parquet", rows)]) as requests:
        found = reuse(requests.table)
    assert found is not None
    # Pages 0 1 | 1 2 | 0
    assert (found.accesses, found.rate) == (5, 1.0)
    assert found.distance.tolist() == [math.inf, math.inf, 0, math.inf, 2]
    missed, error = found.miss_ratio(np.array([1.0, 2.0, 3.0]))
    assert missed.tolist() == pytest.approx([0.8, 0.8, 0.6])
    assert error.tolist() == [0, 0, 0]
    # A cache holds whole pages: 2.9 are 2.
    assert found.miss_ratio(np.array([1.5, 2.9, 3.1]))[0].tolist() == missed.tolist()


def test_a_sample_gives_nearly_the_same_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = np.random.default_rng(3)
    pages = np.minimum(chance.zipf(1.3, 60_000), 20_000) * 37 % 20_011
    rows = [load_row(number, sector=8 * int(page)) for number, page in enumerate(pages)]
    with open_requests([write_load(tmp_path / "a.load.parquet", rows)]) as requests:
        whole = reuse(requests.table)
        monkeypatch.setattr(module, "SAMPLED_ACCESSES", 20_000)
        sample = reuse(requests.table)
    assert whole is not None and sample is not None
    assert sample.rate < 0.2 and len(sample.distance) < 60_000
    sizes = np.array([10.0, 100.0, 1000.0, 5000.0])
    exact, none = whole.miss_ratio(sizes)
    guess, error = sample.miss_ratio(sizes)
    assert none.tolist() == [0] * 4
    assert (error > 0).all()
    assert (abs(guess - exact) < 4 * error + 0.02).all()


def test_the_diagrams_of_reuse_show_its_distances(tmp_path: Path) -> None:
    # 1024 pages, twice in the same order: each is accessed again after 1023 others.
    rows = [load_row(number, sector=8 * (number % 1024)) for number in range(2048)]
    with open_requests([write_load(tmp_path / "a.load.parquet", rows)]) as requests:
        study = Study(requests, Options())
        histogram, curve = build(study, "reuse.bins"), build(study, "miss.ratio")
        found = reuse(requests.table)
    (bars,) = (layer for layer in histogram.layers if isinstance(layer, Steps))
    assert np.nansum(bars.y) == 1024
    assert bars.edges[np.nanargmax(bars.y)] <= 1023 * 4096 < bars.edges[np.nanargmax(bars.y) + 1]
    line = next(layer for layer in curve.layers if isinstance(layer, Line) and layer.role is Role.ALL)
    assert line.y[line.x < 1023 * 4096].tolist() == pytest.approx([100.0] * int((line.x < 1023 * 4096).sum()))
    assert line.y[-1] == pytest.approx(50.0)
    assert found is not None
    assert answer(found).startswith("Miss ratio of an LRU cache: 100 % with 1 MiB")


def test_without_accesses_the_diagrams_are_empty(tmp_path: Path) -> None:
    with open_requests([write_load(tmp_path / "a.load.parquet", [load_row(op="flush", sectors=0)])]) as requests:
        assert reuse(requests.table) is None
