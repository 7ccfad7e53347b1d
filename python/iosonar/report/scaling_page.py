"""The page of an experiment with several instances."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

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
    numbers = sorted({each.instances for each in study.times})
    known = [what for what in WHAT if any((what, number) in mean for number in numbers)]
    both = len(known) == len(WHAT)
    rows = tuple(
        (
            str(number),
            *(units.span(mean[key]) if (key := (what, number)) in mean else "–" for what in known),
            *([_ratio(mean, number)] if both else []),
        )
        for number in numbers
    )
    columns = ("instances", *known, *(["replay against program"] if both else []))
    summary = Summary(
        title=name,
        short=name,
        lead=tuple(_lead(mean, what, numbers) for what in known),
        tables=(Table("Mean time of an instance", columns, rows), *_traffic(study)),
        facts=(("File", study.file.path),),
        about="Files",
    )
    return page_of(study, diagrams, summary, SECTIONS, lambda diagram: "scale", {})


def _traffic(study: ScaleStudy) -> Iterator[Table]:
    """The bytes of each host, and those for each of its instances."""
    rows = tuple(
        (
            str(each.instances),
            *([each.host, str(each.own), units.span(each.mean_s)] if each.host else []),
            units.transferred(each.received),
            units.transferred(each.sent),
            units.transferred(each.received / each.own),
            units.transferred(each.sent / each.own),
        )
        for each in study.traffic
    )
    if rows:
        hosts = ("host", "on it", "mean time") if study.traffic[0].host else ()
        columns = ("instances", *hosts, "received", "sent", "received by each", "sent by each")
        yield Table("Bytes on the network, by all programs of the host", columns, rows)


def _lead(mean: Mapping[tuple[str, int], float], what: str, numbers: Sequence[int]) -> str:
    """How the time grows with the number of instances."""
    known = [number for number in numbers if (what, number) in mean]
    ends = dict.fromkeys((known[0], known[-1]))
    times = [f"{units.span(mean[what, number])} with {units.counted(number, 'instance')}" for number in ends]
    return f"An instance of the {what} took {' and '.join(times)}."


def _ratio(mean: Mapping[tuple[str, int], float], number: int) -> str:
    program, replay = (mean.get((what, number)) for what in WHAT)
    return units.change(replay / program - 1) if program and replay is not None else "–"
