"""Writes the diagrams of a study as picture files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path

from iosonar.diagrams import Diagram, Study
from iosonar.errors import UserError
from iosonar.figures.model import Empty, Figure
from iosonar.figures.numbers import write_numbers
from iosonar.figures.palette import Theme
from iosonar.report.wanted import Done, Wanted

AHEAD = 3
"""Figures that are built before they are drawn."""


def write_pictures(study: Study, diagrams: Sequence[Diagram], wanted: Wanted) -> Iterator[Done]:
    """Builds and draws one diagram after the other, and says for each what became of it."""
    from iosonar.figures.with_matplotlib import draw

    for diagram, figure in _built(study, diagrams):
        if isinstance(figure, Empty):
            yield Done(diagram.name, (), figure.reason)
        else:
            stem = f"{prefix(study)}.{figure.rank}.{figure.name}"
            paths = [wanted.folder / f"{stem}.{wanted.format}"]
            write_whole(paths[0], partial(draw, figure, size=study.options.size, theme=wanted.theme or Theme.LIGHT))
            yield Done(diagram.name, (*paths, *write_data(study, figure, wanted)))


def write_data(study: Study, figure: Figure, wanted: Wanted) -> Iterator[Path]:
    """Writes the numbers behind a figure, if they are wanted."""
    if wanted.data is not None:
        path = wanted.folder / f"{prefix(study)}.{figure.rank}.{figure.name}.{wanted.data}"
        write_whole(path, partial(write_numbers, figure, format_=wanted.data))
        yield path


def _built(study: Study, diagrams: Sequence[Diagram]) -> Iterator[tuple[Diagram, Figure | Empty]]:
    """Builds one figure ahead, so that the engine computes while the one before is drawn."""
    with ThreadPoolExecutor(1, "build") as builder:
        ahead: list[tuple[Diagram, Future[Figure | Empty]]] = []
        for diagram in diagrams:
            ahead.append((diagram, builder.submit(diagram.build, study)))
            if len(ahead) > AHEAD:
                ready, future = ahead.pop(0)
                yield ready, future.result()
        for ready, future in ahead:
            yield ready, future.result()


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
