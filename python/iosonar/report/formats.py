"""Writes a report in the format that is wanted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from iosonar.diagrams import Diagram, Study
from iosonar.report.pictures import prefix, write_data, write_pictures, write_whole
from iosonar.report.wanted import Done, ReportFormat, Wanted


def write_report(study: Study, diagrams: Sequence[Diagram], wanted: Wanted) -> Iterator[Done]:
    """Writes it, and says for each part what became of it."""
    if wanted.format is ReportFormat.HTML:
        return _write_page(study, diagrams, wanted)
    return write_pictures(study, diagrams, wanted)


def _write_page(study: Study, diagrams: Sequence[Diagram], wanted: Wanted) -> Iterator[Done]:
    from iosonar.report.page import write_page
    from iosonar.report.run_page import run_page

    page = run_page(study, diagrams)
    path = wanted.folder / f"{prefix(study)}.report.html"
    write_whole(path, lambda unfinished: write_page(page, unfinished, wanted.theme))
    yield Done("page", (path,))
    for section in page.sections:
        for figure in section.figures:
            if paths := tuple(write_data(study, figure, wanted)):
                yield Done(figure.name, paths)
    for empty in page.empty:
        yield Done(empty.name, (), empty.reason)
