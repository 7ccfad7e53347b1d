"""Writes the diagrams of a study as picture files."""

from __future__ import annotations

import hashlib
import os
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path

from iosonar.diagrams import Diagram, Study
from iosonar.figures.model import Empty, Figure
from iosonar.figures.numbers import write_numbers
from iosonar.figures.palette import Theme
from iosonar.report.output_options import OutputOptions, Written
from iosonar.report.outputs import write_whole
from iosonar.report.render_pool import Draw, RenderPool

LONGEST_STEM = 180
"""Bytes."""

AHEAD = 8
"""Figures that may wait to be drawn."""


def write_pictures(study: Study, diagrams: Sequence[Diagram], options: OutputOptions) -> Iterator[Written]:
    """Builds one diagram while earlier ones are drawn. Yields the result of each."""
    with RenderPool(len(diagrams)) as pool:
        begun: deque[tuple[Future[None] | None, Written]] = deque()
        for diagram in diagrams:
            begun.append(_begun(study, diagram, options, pool))
            while begun and (len(begun) > AHEAD or _is_done(begun[0][0])):
                yield _finished(*begun.popleft())
        while begun:
            yield _finished(*begun.popleft())


def _begun(
    study: Study, diagram: Diagram, options: OutputOptions, pool: RenderPool
) -> tuple[Future[None] | None, Written]:
    figure = diagram.build(study)
    if isinstance(figure, Empty):
        return None, Written(diagram.name, (), figure.reason)
    path = options.folder / f"{prefix(study)}.{figure.rank}.{figure.name}.{options.format}"
    theme = options.theme or Theme.LIGHT

    def work(draw: Draw) -> None:
        write_whole(path, lambda unfinished: draw(figure, unfinished, study.options.size, theme))

    future = pool.submit(work)
    return future, Written(diagram.name, (path, *write_data(study, figure, options)))


def _is_done(future: Future[None] | None) -> bool:
    return future is None or future.done()


def _finished(future: Future[None] | None, done: Written) -> Written:
    if future is not None:
        future.result()
    return done


def write_data(study: Study, figure: Figure, options: OutputOptions) -> Iterator[Path]:
    """Writes the numbers behind a figure if --data asks for them."""
    if options.data is not None:
        path = options.folder / f"{prefix(study)}.{figure.rank}.{figure.name}.{options.data}"
        write_whole(path, partial(write_numbers, figure, format_=options.data))
        yield path


def prefix(study: Study) -> str:
    """What all files of a report begin with: the name of the first file, and how many more there are."""
    files = study.requests.files
    stem = short(files[0].stem)
    return stem if len(files) == 1 else f"{stem}+{len(files) - 1}"


def short(stem: str) -> str:
    """The same, or what makes a name of a file with an ending behind it: names have at most 255 bytes."""
    name = os.fsencode(stem)
    if len(name) <= LONGEST_STEM:
        return stem
    # Cut within a letter, what is left of that is dropped.
    head = name[:LONGEST_STEM].decode(errors="ignore")
    return f"{head}~{hashlib.sha256(name).hexdigest()[:8]}"
