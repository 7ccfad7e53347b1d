"""Compares groups of runs: changes with confidence intervals, in sentences, numbers and diagrams."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from iosonar.diagrams.comparison import Side, changes, curves, delivered, over_time
from iosonar.diagrams.original import beside_original
from iosonar.diagrams.parts import shares_of
from iosonar.figures.model import Empty, Figure
from iosonar.progress import step
from iosonar.quantities.difference import MEAN
from iosonar.quantities.percentiles import name_of
from iosonar.report.compare_sentences import describe_side, sentences
from iosonar.report.compare_sides import SideComparison, compare_sides, steps_of
from iosonar.report.compared import Comparison, change_text, title_of
from iosonar.report.gate import Subject
from iosonar.report.gate_subjects import subject_of_requests
from iosonar.report.original import distance_table
from iosonar.report.output_options import DiagramFiles, OutputOptions
from iosonar.report.page import Banner, Page, Section, Summary, Table, Tile, with_conditions, write_page
from iosonar.report.provenance import inputs_of, refuse_others, write_claimed
from iosonar.report.settings import Setting, differing
from iosonar.table import Window


@dataclass(frozen=True)
class RunComparison(Comparison):
    """All sides, and the comparison of each with the first."""

    sides: tuple[Side, ...]
    against: tuple[SideComparison, ...]
    settings: tuple[Setting, ...] = ()
    """Settings that differ between the runs."""

    @property
    def figures(self) -> dict[str, Figure]:
        """The distributions of latency, and how they differ."""
        found = (curves(self.sides), changes({each.letter: each.differences for each in self.against}, self.sides))
        return {figure.name: figure for figure in found if figure}

    @property
    def window(self) -> Window | None:
        """The window of time that is compared; None for whole runs."""
        return self.sides[0].study.window

    def sentences(self) -> Iterator[Banner]:
        """The findings, after the window and doubts about the runs."""
        return sentences(self.sides, self.against, self.settings)

    def lines(self) -> Iterator[str]:
        """What was found, as sentences."""
        for side in self.sides:
            yield describe_side(side)
        for banner in self.sentences():
            yield ""
            yield f"{banner.head} {banner.text}"

    def as_json(self) -> dict[str, Any]:
        """What was found, for programs."""
        sides = [
            {"side": side.letter, "files": [file.path for file in side.study.files]}
            | ({"original": True} if side.is_original else {})
            for side in self.sides
        ]
        settings = [
            {"of": one.scope, "name": one.name, "values": {letter: list(found) for letter, found in one.values.items()}}
            for one in self.settings
        ]
        window = {"window": self.window.as_json()} if self.window else {}
        return {
            "sides": sides,
            **window,
            "settings": settings,
            "comparisons": [each.as_json() for each in self.against],
        }

    def subject(self, letter: str) -> Subject:
        """A side as what conditions are checked for."""
        study = next(side.study for side in self.sides if side.letter == letter)
        return subject_of_requests(study, letter)

    @property
    def summary(self) -> Summary:
        """What its page begins with."""
        return summary_of(self)

    def write(self, options: OutputOptions) -> Iterator[DiagramFiles]:
        """Writes the page."""
        stem, files = self.sides[0].study.stem, [file for side in self.sides for file in side.study.files]
        options = replace(options, inputs=inputs_of(files, options.directory))
        refuse_others(stem, options, "compare")
        path = options.directory / f"{stem}.compare.html"
        page = with_conditions(page_of(self), options.judged)
        write_claimed(path, options, lambda unfinished: write_page(page, unfinished, options.theme))
        yield DiagramFiles("page", (path,))


def compare(sides: Sequence[Side]) -> RunComparison:
    """Compares each side with the first."""
    # An original has no settings that a run has.
    settings = differing([side for side in sides if not side.is_original])
    return RunComparison(tuple(sides), compare_sides(sides, settings), settings)


def page_of(compared: RunComparison) -> Page:
    """The page of a comparison."""
    sides, first = compared.sides, compared.sides[0]
    step("the page", steps_of(sides), steps_of(sides))
    percentiles = [over_time(sides, share) for share in shares_of(first.study, (0.5, 0.99))]
    timed = (*(figure for figure in percentiles if figure), delivered(sides))
    sections = [
        Section("latency", "Latency", "All requests of all runs of each side.", tuple(compared.figures.values())),
        Section("time", "Over time", "These diagrams are linked: zoom one and the others follow.", timed),
    ]
    empty: tuple[Empty, ...] = ()
    if first.is_original:
        built = beside_original(sides)
        empty = tuple(each for each in built if isinstance(each, Empty))
        figures = tuple(each for each in built if isinstance(each, Figure))
        distances = [
            table for side in sides[1:] for table in distance_table(side.study, first.letter, side.letter, side.name)
        ]
        about = "What each request saw at its issue, computed in the same way on all sides; and request by request."
        sections.append(Section("original", "The original", about, figures, tuple(distances)))
    return Page(summary_of(compared), tuple(sections), empty)


def _lead(first: Side) -> str:
    text = f"Latency from issue to completion, compared with {first.letter}. A change above 0 is slower."
    of_original = f" {first.letter} is the original: there, latency is from the time of the request to its completion."
    return text + (of_original if first.is_original else "")


def summary_of(compared: RunComparison) -> Summary:
    """What the page begins with."""
    sides, first = compared.sides, compared.sides[0]
    tables = tuple(each.table for each in compared.against)
    if compared.settings:
        letters = tuple(side.letter for side in sides if not side.is_original)
        values = tuple((setting.name, *(setting.value(letter) for letter in letters)) for setting in compared.settings)
        tables = (Table("Differences between the runs", ("", *letters), values), *tables)
    shown = (*map(name_of, shares_of(first.study, (0.5, 0.99))), MEAN)
    tiles = tuple(
        Tile(
            f"{one.metric}, {each.side.letter} against {first.letter}",
            change_text(one.change),
            f"{change_text(one.low)} … {change_text(one.high)}",
        )
        for each in compared.against
        for one in each.differences
        if one.metric in shown
    )
    facts = tuple((side.letter, file.path) for side in sides for file in side.study.requests.files)
    return Summary(
        title=title_of([side.name for side in sides]),
        short="Comparison",
        lead=(_lead(first),),
        banners=tuple(compared.sentences()),
        tiles=tiles,
        tables=tables,
        facts=facts,
        whole="all runs",
        about="Files",
    )
