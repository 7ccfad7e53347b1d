"""Writes the report of calls, as a page or as pictures."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from iosonar.diagrams.calls import CATALOGUE, CallDiagram, CallStudy, Part
from iosonar.diagrams.calls.scaling import scaling_curve
from iosonar.errors import UsageError
from iosonar.figures.model import Empty, Figure
from iosonar.figures.size import Size
from iosonar.quantities.calls.scaling import job_times
from iosonar.report.calls_page import calls_page, scaling_page
from iosonar.report.claims import inputs_of, refuse_others, write_claimed
from iosonar.report.output_options import OutputOptions, ReportFormat, Written
from iosonar.report.pictures import Set, short, write_data, write_figures
from iosonar.table import SourceFile

if TYPE_CHECKING:
    import ibis.expr.types as ir


def chosen(only: Sequence[str]) -> list[CallDiagram]:
    """The diagrams of these names or families; all of them without names."""
    if not only:
        return list(CATALOGUE)
    known = {diagram.name for diagram in CATALOGUE} | {diagram.name.split(".")[0] for diagram in CATALOGUE}
    for name in only:
        if name not in known:
            near = difflib.get_close_matches(name, sorted(known), 1)
            hint = f"; did you mean {near[0]}?" if near else f": {', '.join(sorted(known))}"
            raise UsageError(f"no diagram of calls is named {name!r}{hint}")
    return [diagram for diagram in CATALOGUE if diagram.name in only or diagram.name.split(".")[0] in only]


def write_calls_report(
    study: CallStudy,
    diagrams: Sequence[CallDiagram],
    options: OutputOptions,
    suffix: str = "report",
    blocks: Sequence[SourceFile] = (),
) -> Iterator[Written]:
    """Yields the files of each diagram as they are written."""
    first = study.first.calls.file
    stem = short(first.output_stem if suffix == "report" else first.stem)
    options = replace(options, inputs=inputs_of([*(side.calls.file for side in study.sides), *blocks], options.folder))
    refuse_others(stem, options, suffix)
    if options.format is not ReportFormat.HTML:
        builds = {diagram.name: lambda diagram=diagram: diagram.build(study) for diagram in diagrams}
        yield from write_figures(Set(stem, study.options.size), builds, options)
        return
    from iosonar.report.page import write_page

    found: dict[Part, list[Figure | Empty]] = {}
    for diagram in diagrams:
        found.setdefault(diagram.part, []).append(diagram.build(study))
    page = calls_page(study, found)
    path = options.folder / f"{stem}.{suffix}.html"
    write_claimed(path, options, lambda unfinished: write_page(page, unfinished, options.theme))
    yield Written("page", (path,))
    for section in page.sections:
        for figure in section.figures:
            if paths := tuple(write_data(stem, figure, options)):
                yield Written(figure.name, paths)
    for empty in page.empty:
        yield Written(empty.name, (), empty.reason)


def write_scaling(file: SourceFile, table: ir.Table, size: Size, options: OutputOptions) -> Iterator[Written]:
    """Yields the files of a scaling curve; `table` has the rows of the file."""
    from iosonar.report.page import write_page

    times = job_times(table)
    figure = scaling_curve(times, file.name)

    stem = short(file.output_stem)
    options = replace(options, inputs=inputs_of([file], options.folder))
    refuse_others(stem, options)
    if isinstance(figure, Empty):
        yield Written(figure.name, (), figure.reason)
    elif options.format is not ReportFormat.HTML:
        yield from write_figures(Set(stem, size), {figure.name: lambda: figure}, options)
    else:
        path = options.folder / f"{stem}.report.html"
        page = scaling_page(file, figure, times)
        write_claimed(path, options, lambda unfinished: write_page(page, unfinished, options.theme))
        yield Written("page", (path,))
        if paths := tuple(write_data(stem, figure, options)):
            yield Written(figure.name, paths)
