"""Writes the diagrams of a study as picture files."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path

from iosonar.diagrams import Diagram, Study
from iosonar.errors import UserError
from iosonar.figures.model import Empty, Figure
from iosonar.figures.numbers import write_numbers
from iosonar.figures.palette import Theme
from iosonar.report.drawers import Draw, Drawers
from iosonar.report.wanted import Done, Wanted

AHEAD = 8
"""Figures that may wait to be drawn."""


def write_pictures(study: Study, diagrams: Sequence[Diagram], wanted: Wanted) -> Iterator[Done]:
    """Builds one diagram after the other, while those before are drawn; says for each what became of it."""
    with Drawers(len(diagrams)) as drawers:
        begun: deque[tuple[Future[None] | None, Done]] = deque()
        for diagram in diagrams:
            begun.append(_begun(study, diagram, wanted, drawers))
            while begun and (len(begun) > AHEAD or _is_done(begun[0][0])):
                yield _finished(*begun.popleft())
        while begun:
            yield _finished(*begun.popleft())


def _begun(study: Study, diagram: Diagram, wanted: Wanted, drawers: Drawers) -> tuple[Future[None] | None, Done]:
    figure = diagram.build(study)
    if isinstance(figure, Empty):
        return None, Done(diagram.name, (), figure.reason)
    path = wanted.folder / f"{prefix(study)}.{figure.rank}.{figure.name}.{wanted.format}"
    theme = wanted.theme or Theme.LIGHT

    def work(draw: Draw) -> None:
        write_whole(path, lambda unfinished: draw(figure, unfinished, study.options.size, theme))

    future = drawers.submit(work)
    return future, Done(diagram.name, (path, *write_data(study, figure, wanted)))


def _is_done(future: Future[None] | None) -> bool:
    return future is None or future.done()


def _finished(future: Future[None] | None, done: Done) -> Done:
    if future is not None:
        future.result()
    return done


def write_data(study: Study, figure: Figure, wanted: Wanted) -> Iterator[Path]:
    """Writes the numbers behind a figure, if they are wanted."""
    if wanted.data is not None:
        path = wanted.folder / f"{prefix(study)}.{figure.rank}.{figure.name}.{wanted.data}"
        write_whole(path, partial(write_numbers, figure, format_=wanted.data))
        yield path


def prefix(study: Study) -> str:
    """What all files of a report begin with: the name of the first file, and how many more there are."""
    names = [file.name for file in study.requests.files]
    return names[0] if len(names) == 1 else f"{names[0]}+{len(names) - 1}"


def make_folder(folder: Path) -> None:
    """Makes the folder, if it is missing."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"can't write to {folder}: {error.strerror}") from error


def write_whole(path: Path, write: Callable[[Path], None]) -> None:
    """Under its final name a file is whole or not there."""
    unfinished = path.with_name(f".{path.stem}.unfinished{path.suffix}")
    try:
        write(unfinished)
        unfinished.rename(path)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        raise UserError(f"can't write {path}: {error.strerror or error}") from error
