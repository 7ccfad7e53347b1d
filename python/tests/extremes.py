"""Tables at the limits of docs/schema.md, and checks that hold for every diagram of any table."""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from factory import MS, S, load_row, run_row, write_load, write_run

from iosonar.diagrams import CATALOGUE, Options, Study
from iosonar.figures.model import Axis, Cloud, Empty, Figure, Line, Rule, Scale, Steps
from iosonar.figures.ticks import ticks
from iosonar.table import open_requests

Rows = list[dict[str, Any]]

DAY = 86_400 * S
YEAR = 31_557_600 * S
LAST = 2**54 - 1
"""Sectors of the largest possible device, 8 EiB."""

LONGEST = 2**31
MAX_POINTS = 150_000
"""The most points of a line: the size of a figure must not grow with a number in the file."""


def run_of(times: list[int], **more: Any) -> Rows:
    """A run with requests at these times, over a GiB."""
    return [
        run_row(n, scheduled=at, sector=n * 7919 % 2**21, op=("read", "write")[n % 2], latency=MS + n, **more)
        for n, at in enumerate(times)
    ]


RUNS: dict[str, Rows] = {
    "empty": [],
    "one": run_of([0]),
    "one far from zero": run_of([57 * YEAR + 5]),
    "one instant": run_of([5 * S] * 50),
    "one nanosecond": run_of([0, 1] * 20, issued_ns=0, completed_ns=1),
    "nanoseconds": run_of(list(range(500))),
    "18 hours": run_of([n * 67 * S for n in range(1000)]),
    "a week": run_of([n * 605 * S for n in range(1000)]),
    "ten years, two requests": run_of([0, 10 * YEAR]),
    "a hundred years": run_of([n * YEAR // 5 for n in range(500)]),
    "before zero": run_of([-n * DAY for n in range(100, 0, -1)]),
    "far before zero": run_of([n * S - 90 * YEAR for n in range(100)]),
    "since 1970": run_of([1_700_000_000 * S + n * 1000 for n in range(300)]),
    "bursts with years between": run_of([year * 30 * YEAR + n * 100 for year in range(3) for n in range(300)]),
    "latencies of years": [run_row(n, scheduled=n, latency=100 * YEAR // (n + 1)) for n in range(50)],
    "issued before their time": [run_row(n, scheduled=n * S, delay=-5 * S * n) for n in range(50)],
    "issued years before their time": [run_row(n, scheduled=n * S, delay=-50 * YEAR) for n in range(50)],
    "delays of years": [run_row(n, scheduled=n * S, delay=n * YEAR) for n in range(50)],
    "nothing answered": [run_row(n, scheduled=n, latency=None, outcome="unfinished") for n in range(5)],
    "no latency at all": [run_row(n, scheduled=n * S, latency=0) for n in range(50)],
    "2^40": [run_row(n, scheduled=n * MS, sector=2**40 + n * 2**30) for n in range(100)],
    "2^53": [run_row(n, scheduled=n * MS, sector=2**53 + n, sectors=1) for n in range(100)],
    "the last sector": [
        run_row(n, scheduled=n * MS, sector=(LAST - 9) * (n % 2) + n % 2, sectors=8) for n in range(99)
    ],
    "long requests": [
        run_row(n, scheduled=n * MS, sector=n * 12345, sectors=LONGEST, bytes_done=LONGEST * 512) for n in range(300)
    ],
    "long and short requests": [
        run_row(n, scheduled=n * MS, sector=n * 12345 % 10_007 * 8, sectors=(8, 2**20)[n % 2]) for n in range(2000)
    ],
    "the longest request": [run_row(0, sector=0, sectors=LAST), run_row(1, scheduled=S, sector=LAST - 8)],
    "many devices": [run_row(n, scheduled=n * MS, device=n, sector=n * 2**40) for n in range(2000)],
    "the last device": [run_row(n, scheduled=n * MS, device=65535 * (n % 2), sector=LAST - 8) for n in range(50)],
    "deep": [run_row(n, scheduled=n * MS, in_flight=2**31 - 1 - n, waiting=2**31 - 1) for n in range(50)],
    "flushes alone": [run_row(n, scheduled=n * S, op="flush", sectors=0) for n in range(20)],
    "nothing issued": [
        run_row(n, issued_ns=None, completed_ns=None, in_flight=None, waiting=None, outcome="dropped") for n in range(9)
    ],
}

LOADS = ("empty", "one instant", "a week", "ten years, two requests", "far before zero", "the last sector")
"""Runs that are also drawn as loads."""


def load_of(rows: Rows) -> Rows:
    """The load of a run."""
    ordered = sorted(rows, key=lambda row: int(row["scheduled_ns"]))
    return [load_row(r["scheduled_ns"], sector=r["sector"], sectors=r["sectors"], op=r["op"]) for r in ordered]


def check(paths: list[Path], look: Callable[[Figure], object] = lambda figure: None) -> int:
    """Builds every diagram of some files; returns the number of those that are not empty."""
    seen = 0
    with open_requests(paths) as requests:
        study = Study(requests, Options())
        for diagram in CATALOGUE:
            try:
                figure = diagram.build(study)
                if isinstance(figure, Empty):
                    assert figure.reason
                    continue
                assert_sane(figure)
                look(figure)
            except Exception as error:
                error.add_note(f"{diagram.name} of {', '.join(path.name for path in paths)}")
                raise
            seen += 1
    return seen


def assert_sane(figure: Figure) -> None:
    """Asserts properties of any figure."""
    for axis in (figure.x, figure.y):
        assert np.isfinite([axis.low, axis.high]).all(), axis
        assert axis.low < axis.high, axis
        assert axis.scale is not Scale.LOG or axis.low > 0, axis
        assert 1 <= len(ticks(axis).at) <= 100, (axis, ticks(axis).at)
    for layer in figure.layers:
        match layer:
            case Steps():
                assert len(layer.edges) == len(layer.y) + 1 <= MAX_POINTS
                assert np.isfinite(layer.edges).all() and not np.isinf(layer.y).any()
                # A last window may have no width.
                assert (np.diff(layer.edges[:-1]) > 0).all() and layer.edges[-1] >= layer.edges[-2]
                assert_within(layer.y, figure.y)
            case Line():
                assert len(layer.x) == len(layer.y) <= MAX_POINTS
                assert np.isfinite(layer.x).all() and not np.isinf(layer.y).any()
                assert (np.diff(layer.x) >= 0).all()
                assert_within(layer.y, figure.y)
            case Cloud():
                for part in layer.parts:
                    assert ((part.columns >= 0) & (part.columns < layer.across)).all()
                    assert ((part.rows >= 0) & (part.rows < layer.up)).all()
                    assert (part.counts > 0).all()
            case Rule():
                assert np.isfinite(layer.at)
    texts = [figure.of, *(note.text for note in figure.notes), *(c for row in figure.legend.rows for c in row.cells)]
    assert not [text for text in texts if "nan" in text.split() or "inf" in text.split()], texts


def assert_within(y: np.ndarray[Any, Any], axis: Axis) -> None:
    """Asserts that values are on the axis, or below the end of a logarithmic one."""
    known = y[~np.isnan(y)]
    assert (known <= axis.high + abs(axis.high) * 1e-6).all(), (known.max(), axis)
    assert axis.scale is Scale.LOG or (known >= axis.low - abs(axis.low) * 1e-6).all(), (known.min(), axis)


def main(directory: Path, bytes_of_memory: int) -> None:
    """Checks all tables in a process with limited memory; prints its peak after each, in MiB."""
    from iosonar.figures.for_page import described

    resource.setrlimit(resource.RLIMIT_AS, (bytes_of_memory, bytes_of_memory))
    device = {"run": {"target": {"path": "/dev/x", "kind": "block", "sectors": LAST}}}
    for name, rows in RUNS.items():
        run = write_run(directory / f"{name}.replay.parquet", rows, **device)
        load = write_load(directory / f"{name}.load.parquet", load_of(rows), devices=[{"name": "", "sectors": LAST}])
        seen = [check([path], described) for path in ([run, load] if name in LOADS else [run])]
        print(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10:5} {seen} {name}", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
