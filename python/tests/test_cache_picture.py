"""The pictures of `iosonar cache`."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from iosonar.cli.cache_picture import main
from iosonar.diagrams.cache_size import cache_size
from iosonar.diagrams.filling import filling
from iosonar.figures.model import Line, Rule

READS: dict[str, Any] = {
    "kind": "random",
    "entries": 100,
    "zipf": 0.9,
    "rate": 50.0,
    "curve": [
        {"reads": 50, "formula": 39.5, "simulation": 40},
        {"reads": 100, "formula": 63.4, "simulation": 62},
    ],
    "full": {"mean_reads": 518.7, "simulation_reads": None},
}
LOAD: dict[str, Any] = {
    "kind": "load",
    "load": "a.load.parquet",
    "block_bytes": 4096,
    "blocks": 256.0,
    "bytes": 1048576.0,
    "caches": [{"hit_ratio": 0.9, "bytes": 1048576.0}],
    "curve": [{"seconds": 1.0, "bytes": 4096.0}, {"seconds": 2.0, "bytes": 1048576.0}],
}
SIZE: dict[str, Any] = {
    "kind": "size",
    "load": "a.load.parquet",
    "op": "both",
    "block_bytes": 4096,
    "fill_bytes_per_s": 4096,
    "smallest": {"bytes": 12288.0, "fill_s": 3.0},
    "upper": None,
    "curve": [
        {"bytes": 4096.0, "fill_s": 1.0, "touched_bytes": 8192.0},
        {"bytes": 16384.0, "fill_s": 4.0, "touched_bytes": 12288.0},
    ],
}


def test_the_smallest_cache_is_where_the_lines_meet() -> None:
    figure = cache_size(SIZE)
    touched, filled = (layer for layer in figure.layers if isinstance(layer, Line))
    assert touched.x.tolist() == filled.x.tolist() == [1, 3, 4]
    assert (touched.y - filled.y).tolist() == [4096, 0, -4096]
    assert [layer.at for layer in figure.layers if isinstance(layer, Rule)] == [12288]


def test_the_smallest_lower_caches_are_in_a_note() -> None:
    upper = {"bytes": 8192.0, "serves": False, "inclusive_bytes": 12288.0, "exclusive_bytes": 4096.0}
    figure = cache_size({**SIZE, "upper": upper})
    assert figure.notes[1].text == "Below 8 KiB: 12 KiB if inclusive, 4 KiB if exclusive"
    assert "serves it alone" in cache_size({**SIZE, "upper": {**upper, "serves": True}}).notes[1].text


def test_the_curve_of_random_reads_has_formula_and_simulation() -> None:
    figure = filling(READS)
    formula, simulation = figure.layers
    assert formula.y.tolist() == [0, 39.5, 63.4]  # type: ignore[union-attr]
    assert simulation.y.tolist() == [0, 40, 62]  # type: ignore[union-attr]
    assert "0.9" in figure.of
    only_formula = {**READS, "curve": [{**point, "simulation": None} for point in READS["curve"]]}
    assert len(filling(only_formula).layers) == 1
    measured = {
        **READS,
        "curve": [{**point, "measured": n} for n, point in zip((41, None), READS["curve"], strict=True)],
    }
    assert [note.text for note in filling({**measured, "fake": "simulated"}).notes] == [
        "FAKE RESULT",
        "Fake: simulated",
    ]
    line = filling(measured).layers[2]
    assert line.label == "Measured" and line.y.tolist()[:2] == [0, 41]  # type: ignore[union-attr]


@pytest.mark.parametrize("found", [READS, LOAD, SIZE])
def test_a_picture_is_drawn_from_standard_input(
    found: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    picture = tmp_path / "x.png"
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(found)))
    monkeypatch.setattr("sys.argv", ["iosonar-cache-picture", str(picture)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(("text", "name"), [("{}", "x.png"), ("[]", "x.png"), (json.dumps(LOAD), "x.txt")])
def test_other_input_and_names_are_refused(
    text: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    monkeypatch.setattr("sys.argv", ["iosonar-cache-picture", str(tmp_path / name)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code in (1, 2)
    assert not (tmp_path / name).exists()
