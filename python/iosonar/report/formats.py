"""Writes a report as a page or as pictures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from iosonar.diagrams import Diagram, Study
from iosonar.report.claims import inputs_of, refuse_others, write_claimed
from iosonar.report.output_options import OutputOptions, ReportFormat, Written
from iosonar.report.pictures import prefix, write_data, write_pictures


def write_report(study: Study, diagrams: Sequence[Diagram], options: OutputOptions) -> Iterator[Written]:
    """Yields the files of each diagram as they are written."""
    options = replace(options, inputs=inputs_of(study.requests.files, options.folder))
    refuse_others(prefix(study), options)
    if options.format is ReportFormat.HTML:
        return _write_page(study, diagrams, options)
    return write_pictures(study, diagrams, options)


def _write_page(study: Study, diagrams: Sequence[Diagram], options: OutputOptions) -> Iterator[Written]:
    from iosonar.report.page import write_page
    from iosonar.report.run_page import run_page

    page = run_page(study, diagrams)
    path = options.folder / f"{prefix(study)}.report.html"
    write_claimed(path, options, lambda unfinished: write_page(page, unfinished, options.theme))
    yield Written("page", (path,))
    for section in page.sections:
        for figure in section.figures:
            if paths := tuple(write_data(prefix(study), figure, options)):
                yield Written(figure.name, paths)
    for empty in page.empty:
        yield Written(empty.name, (), empty.reason)
