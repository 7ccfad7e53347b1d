"""Writes the diagrams of a study as picture files."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from iosonar.figures.model import Empty, Figure
from iosonar.figures.numbers import write_numbers
from iosonar.figures.palette import Theme
from iosonar.figures.size import Size
from iosonar.progress import step
from iosonar.report.output_options import DiagramFiles, OutputOptions
from iosonar.report.outputs import write_whole
from iosonar.report.provenance import write_claimed
from iosonar.report.render_pool import Draw, RenderPool

MAX_PENDING = 8
"""The most figures that wait to be drawn."""


Build = Callable[[], Figure | Empty]


@dataclass(frozen=True)
class PictureSet:
    """A set of pictures: the common start of their names, and their size in pixels."""

    stem: str
    size: Size


def write_figures(pictures: PictureSet, builds: Mapping[str, Build], options: OutputOptions) -> Iterator[DiagramFiles]:
    """Builds one figure while earlier ones are drawn. Yields the result of each."""
    with RenderPool(len(builds), f".{options.format}") as pool:
        pending: deque[tuple[Future[None] | None, DiagramFiles]] = deque()
        for number, (name, build) in enumerate(builds.items(), 1):
            step(name, number, len(builds))
            pending.append(_submit(pictures, name, build, options, pool))
            while pending and (len(pending) > MAX_PENDING or _is_done(pending[0][0])):
                yield _wait(*pending.popleft())
        while pending:
            yield _wait(*pending.popleft())


def _submit(
    pictures: PictureSet, name: str, build: Build, options: OutputOptions, pool: RenderPool
) -> tuple[Future[None] | None, DiagramFiles]:
    figure = build()
    if isinstance(figure, Empty):
        return None, DiagramFiles(name, (), figure.reason)
    path = options.directory / f"{pictures.stem}.{figure.rank}.{figure.name}.{options.format}"
    theme = options.theme or Theme.LIGHT

    def work(draw: Draw) -> None:
        write_claimed(path, options, lambda unfinished: draw(figure, unfinished, pictures.size, theme))

    future = pool.submit(work)
    return future, DiagramFiles(name, (path, *write_data(pictures.stem, figure, options)))


def _is_done(future: Future[None] | None) -> bool:
    return future is None or future.done()


def _wait(future: Future[None] | None, done: DiagramFiles) -> DiagramFiles:
    if future is not None:
        future.result()
    return done


def write_data(stem: str, figure: Figure, options: OutputOptions) -> Iterator[Path]:
    """Writes the data of a figure if --data is given."""
    if options.data is not None:
        path = options.directory / f"{stem}.{figure.rank}.{figure.name}.{options.data}"
        write_whole(path, partial(write_numbers, figure, format_=options.data))
        yield path
