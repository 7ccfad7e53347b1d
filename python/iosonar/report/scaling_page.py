"""The page of an experiment with several instances."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from iosonar import units
from iosonar.diagrams import Diagram
from iosonar.report.page import Page, Summary, Table
from iosonar.report.sections import page_of
from iosonar.study.scaling import ScaleStudy

SECTIONS = {"scale": ("Scaling", "Each instance does the same work on files of its own.")}
WHAT = ("program", "replay")


def scaling_page(study: ScaleStudy, diagrams: Sequence[Diagram[ScaleStudy]]) -> Page:
    """Builds the curve and the table."""
    mean, name = {(each.what, each.instances): each.mean for each in study.times}, study.file.name
    rows = tuple(
        (
            str(number),
            *(units.span(mean[key]) if (key := (what, number)) in mean else "–" for what in WHAT),
            _ratio(mean, number),
        )
        for number in sorted({each.instances for each in study.times})
    )
    table = Table("Mean time of an instance", ("instances", *WHAT, "replay against program"), rows)
    summary = Summary(title=name, short=name, tables=(table,), facts=(("File", study.file.path),), about="Files")
    return page_of(study, diagrams, summary, SECTIONS, lambda diagram: "scale", {})


def _ratio(mean: Mapping[tuple[str, int], float], number: int) -> str:
    program, replay = (mean.get((what, number)) for what in WHAT)
    return units.change(replay / program - 1) if program and replay is not None else "–"
