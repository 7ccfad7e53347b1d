#!/usr/bin/env python3
"""Measures how much processor time each diagram of a run takes, beside the arithmetic limit of its rows.

    bench/diagrams.py RUN [--memory 2GiB]

The limit is what a diagram of all requests cannot go below: to hand over three columns of each request, and to add one
to a ready cell for each. A diagram that shares what an earlier one computed takes less. Run it with the Python of the
virtual environment.
"""

import argparse
import time
from pathlib import Path

import numpy as np

from iosonar.library.run import open_run
from iosonar.quantities.batches import batches
from iosonar.report.selection import Selection
from iosonar.study.requests import Study

CELLS = 100_000
LEAST_S = 0.005
"""Less is not listed."""


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("run", type=Path), p.add_argument("--memory", default="2GiB")
    args = p.parse_args()
    with open_run(args.run, memory=args.memory) as run:
        study = run.study
        assert isinstance(study, Study)
        start = time.process_time()
        study.prepare()
        read = time.process_time() - start
        limit = min(limit_of(study) for _ in range(3))
        print(f"{study.rows:,} requests: read {read:.2f} s, limit {limit:.2f} s\n")
        print("| diagram | processor, s | times the limit |\n|---|---|---|")
        whole = 0.0
        for diagram in run.family.selected(study, Selection(static=True, dynamic=True)):
            start = time.process_time()
            diagram.build(study)
            took = time.process_time() - start
            whole += took
            if took >= LEAST_S:
                print(f"| {diagram.name} | {took:.2f} | {took / limit:.1f} |", flush=True)
        print(f"| all | {whole:.2f} | {whole / limit:.0f} |")


def limit_of(study: Study) -> float:
    """The processor seconds of the least work on each request."""
    start = time.process_time()
    counts = np.zeros(CELLS, np.int64)
    ready = np.random.default_rng(1).integers(0, CELLS, 1_000_000)
    rows = batches(study.table.select("series", "scheduled_ns", "sector"))
    assert rows is not None
    for series, *_ in rows:
        np.add.at(counts, ready[: len(series)], 1)
    return time.process_time() - start


if __name__ == "__main__":
    main()
