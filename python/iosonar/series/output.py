"""Writes what a series found into its directory: tables for programs, a page and pictures for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from iosonar.figures.model import Figure, NoteKind
from iosonar.figures.palette import Theme
from iosonar.figures.size import Size
from iosonar.report.outputs import write_whole
from iosonar.report.page import Banner, Page, Section, Summary, Table, write_page
from iosonar.series.plan import Directory

if TYPE_CHECKING:
    import pyarrow as pa

Cell = str | int | float | bool | None
Rows = Sequence[Mapping[str, Cell]]


def write_tables(directory: Directory, rows: Rows) -> Iterator[Path]:
    """The rows as CSV and as Parquet."""
    import pyarrow as pa

    table = pa.Table.from_pylist([dict(row) for row in rows])
    for suffix, write in (("csv", _write_csv), ("parquet", _write_parquet)):
        path = directory.path / f"{directory.stem}.points.{suffix}"
        write_whole(path, partial(write, table))
        yield path


def _write_csv(table: pa.Table, path: Path) -> None:
    import pyarrow.csv

    with path.open("wb") as file:
        pyarrow.csv.write_csv(table, file)


def _write_parquet(table: pa.Table, path: Path) -> None:
    import pyarrow.parquet

    with path.open("wb") as file:
        pyarrow.parquet.write_table(table, file, compression="zstd")


def write_figures(directory: Directory, figures: Sequence[Figure], theme: Theme | None) -> Iterator[Path]:
    """Each figure as a PNG."""
    for figure in figures:
        path = directory.path / f"{directory.stem}.{figure.rank}.{figure.name}.png"
        write_whole(path, partial(_draw, figure, theme or Theme.LIGHT))
        yield path


def _draw(figure: Figure, theme: Theme, path: Path) -> None:
    from iosonar.figures.drawing import draw

    draw(figure, path, Size(), theme)


def write_series_page(
    directory: Directory, about: str, lead: Sequence[str], figures: Sequence[Figure], table: Table, theme: Theme | None
) -> Path:
    """The page with all figures and the table."""
    notes = [note for note in figures[0].notes if note.kind in (NoteKind.FIDELITY, NoteKind.WARNING)]
    summary = Summary(
        title=directory.stem,
        short=directory.stem,
        # A banner says so.
        lead=tuple(
            line
            for line in lead
            if not line.startswith("FAKE RESULT") and line.removesuffix(".") not in [note.text for note in notes]
        ),
        banners=tuple(Banner(note.severity, note.text) for note in notes),
    )
    page = Page(
        summary, (Section("curves", "Curves", about, tuple(figures)), Section("points", "Points", "", (), (table,)))
    )
    path = directory.path / f"{directory.stem}.report.html"
    write_whole(path, lambda unfinished: write_page(page, unfinished, theme))
    return path
