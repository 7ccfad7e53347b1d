"""Builds pages: draws the diagrams of a study, and puts each into its section."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any, TypeVar

from iosonar import units
from iosonar.diagrams import Diagram
from iosonar.figures.for_page import described
from iosonar.figures.model import Empty, Figure, emptied
from iosonar.progress import step
from iosonar.quantities.distribution import Distribution
from iosonar.quantities.percentiles import IN_TABLES, name_of
from iosonar.report.page import Page, Section, Summary, Table
from iosonar.study.base import BaseStudy

S = TypeVar("S", bound=BaseStudy)

SHOWN = "The diagram that shows the first finding. “Show it” at a finding leads to its part of a diagram."


def times_row(title: str, values: Distribution, shares: Iterable[float]) -> tuple[str, ...]:
    """A row of a table of times: the number of values, their mean, these percentiles, and the maximum."""
    spans = (values.mean, *(values.percentile(share) for share in shares), values.maximum)
    return (title, f"{values.count:,}", *(units.span(each / 1e9) for each in spans))


def slower(share: float) -> str:
    """How many are above a percentile: 1 in 100 is slower."""
    if share == 0.5:
        return "half are faster"
    one_in = round(1 / (1 - share), 6)
    return f"1 in {units.count(one_in)} is slower" if one_in.is_integer() else f"{units.percent(1 - share)} are slower"


def times_table(
    title: str, noun: str, named: Iterable[tuple[str, Distribution]], shares: Sequence[float], first: str = ""
) -> Table:
    """A table of times with a row for each distribution; `shares` are the percentiles, empty for the usual ones."""
    shown = shares or IN_TABLES
    rows = tuple(times_row(label, values, shown) for label, values in named)
    return Table(title, (first, noun, "avg", *map(name_of, shown), "max"), rows)


def page_of(
    study: S,
    diagrams: Sequence[Diagram[S]],
    summary: Summary,
    words: Mapping[str, tuple[str, str]],
    section_of: Callable[[Diagram[S]], str],
    tables: Mapping[str, tuple[Table, ...]],
    story: Sequence[str] = (),
) -> Page:
    """The page. `words` has the sections in their order, each with its title and what it is about.

    Diagrams that `story` names are in that order in their section.
    """
    figures: dict[str, list[Figure]] = {section: [] for section in words}
    empty = []
    packed: dict[str, Future[dict[str, Any]]] = {}
    # While one diagram is computed, the one before is packed.
    with ThreadPoolExecutor(1, "pack") as packing:
        for number, diagram in enumerate(diagrams, 1):
            step(diagram.name, number, len(diagrams))
            figure = diagram.build(study)
            if isinstance(figure, Empty):
                empty.append(figure)
            else:
                packed[figure.name] = packing.submit(described, figure)
                # Kept until the end, the cells of all clouds take much memory.
                figure = replace(figure, layers=tuple(map(emptied, figure.layers)))
                figures[section_of(diagram)].append(figure)
    place = {name: number for number, name in enumerate(story)}
    for found in figures.values():
        found.sort(key=lambda figure: place.get(figure.name, len(place)))
    first = _first_shown(summary, figures)
    sections = tuple(
        Section(name, *words[name], tuple(found), tables.get(name, ()))
        for name, found in figures.items()
        if found or tables.get(name)
    )
    known = {name: each.result() for name, each in packed.items()}
    return Page(_linked(summary, [*first, *sections]), (*first, *sections), tuple(empty), known)


def _first_shown(summary: Summary, figures: Mapping[str, list[Figure]]) -> list[Section]:
    """A section with the diagram that shows the first finding, which is taken from its own; none without findings."""
    for finding in summary.findings[:1]:
        for found in figures.values():
            for figure in found:
                if figure.name == finding.figure:
                    found.remove(figure)
                    return [Section("first", f"Where {finding.head.partition(' ')[0]} shows", SHOWN, (figure,))]
    return []


def _linked(summary: Summary, sections: Iterable[Section]) -> Summary:
    """The summary with links only to diagrams that are on the page."""
    drawn = {figure.name for section in sections for figure in section.figures}
    kept = tuple(each if each.figure in drawn else replace(each, figure="") for each in summary.findings)
    return replace(summary, findings=kept)
