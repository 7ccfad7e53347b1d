"""Writes a report as a page or as pictures, whatever the rows are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iosonar.diagrams import Diagram
from iosonar.figures.model import Empty, Figure
from iosonar.report.output_options import DiagramFiles, OutputOptions, ReportFormat
from iosonar.report.pictures import PictureSet, write_data, write_figures
from iosonar.report.provenance import inputs_of, refuse_others, write_claimed
from iosonar.study.base import BaseStudy

if TYPE_CHECKING:
    from iosonar.report.page import Page

    PageBuilder = Callable[[Any, Sequence[Diagram[Any]]], Page]


def write_report(
    study: BaseStudy, diagrams: Sequence[Diagram[Any]], options: OutputOptions, build: PageBuilder
) -> Iterator[DiagramFiles]:
    """Yields the files of each diagram as they are written; `build` makes the page."""
    stem = study.stem
    options = replace(options, inputs=inputs_of(study.inputs, options.directory))
    refuse_others(stem, options, study.page)
    if options.format is ReportFormat.HTML:
        return _write_page(study, diagrams, options, build)
    builds = {diagram.name: partial(diagram.build, study) for diagram in diagrams}
    return write_figures(PictureSet(stem, study.options.size), builds, options)


def _write_page(
    study: BaseStudy, diagrams: Sequence[Diagram[Any]], options: OutputOptions, build: PageBuilder
) -> Iterator[DiagramFiles]:
    from iosonar.report.page import with_conditions, write_page

    data: dict[str, tuple[Path, ...]] = {}

    def with_data(diagram: Diagram[Any], study: BaseStudy) -> Figure | Empty:
        """Builds a diagram, and writes its numbers, as the page drops them."""
        figure = diagram.build(study)
        if isinstance(figure, Figure):
            data[figure.name] = tuple(write_data(study.stem, figure, options))
        return figure

    drawn = [replace(diagram, builder=partial(with_data, diagram)) for diagram in diagrams]
    page = with_conditions(build(study, drawn), options.judged)
    path = options.directory / f"{study.stem}.{study.page}.html"
    write_claimed(path, options, lambda unfinished: write_page(page, unfinished, options.theme))
    yield DiagramFiles("page", (path,))
    for section in page.sections:
        for figure in section.figures:
            if paths := data[figure.name]:
                yield DiagramFiles(figure.name, paths)
    for empty in page.empty:
        yield DiagramFiles(empty.name, (), empty.reason)
