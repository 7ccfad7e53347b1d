"""Writes the diagrams of a study as picture files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from iosonar.diagrams import Diagram, Study
from iosonar.errors import UserError
from iosonar.figures.model import Empty, Figure
from iosonar.figures.palette import Theme


class PictureFormat(StrEnum):
    """The types of pictures."""

    PNG = "png"
    SVG = "svg"


@dataclass(frozen=True)
class Done:
    """A diagram that was dealt with: the file that was written, or why there is none."""

    name: str
    path: Path | None
    reason: str = ""


def write_pictures(
    study: Study, diagrams: Sequence[Diagram], folder: Path, format_: PictureFormat, theme: Theme
) -> Iterator[Done]:
    """Builds and draws one diagram after the other, and says for each what became of it."""
    for diagram in diagrams:
        figure = diagram.build(study)
        if isinstance(figure, Empty):
            yield Done(diagram.name, None, figure.reason)
        else:
            path = folder / f"{prefix(study)}.{figure.rank}.{figure.name}.{format_}"
            _draw_whole(figure, path, study, theme)
            yield Done(diagram.name, path)


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


def _draw_whole(figure: Figure, path: Path, study: Study, theme: Theme) -> None:
    """Under its final name a picture is whole or not there."""
    from iosonar.figures.with_matplotlib import draw

    unfinished = path.with_name(f".{path.stem}.unfinished{path.suffix}")
    try:
        draw(figure, unfinished, study.options.size, theme)
        unfinished.rename(path)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        raise UserError(f"can't write {path}: {error.strerror or error}") from error
