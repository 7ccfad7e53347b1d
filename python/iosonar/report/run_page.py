"""The page of a run or a load: first what happened, in words and numbers, then the diagrams."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import PurePath
from typing import Any

from iosonar import units
from iosonar.diagrams import Diagram, Group, Study
from iosonar.diagrams.notes import FAITHFUL, stated_verdict
from iosonar.diagrams.percentiles import steady
from iosonar.diagrams.study import DELAY, LATENCY, Measure
from iosonar.figures.model import Empty, Figure, Mood, NoteKind
from iosonar.report.page import Band, Front, Page, Section, Table, Tile
from iosonar.report.verdict import Grade, counted, verdict_of
from iosonar.table import SourceFile

SHARES = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999}
SECTOR_BYTES = 512

STORY = ("latency.realtime", "latency.flying", "overview.thrp", "delay.setpoint", "latency.bands")
"""One below the other, these tell what happened."""

SECTIONS = {
    "story": (
        "What happened, over time",
        "The same time in every diagram: zoom in one and all follow; the cursor stands at the same moment in each.",
    ),
    "latency": ("Latency", "How the storage answered: how often, and at what depth, size and place."),
    "delay": ("Delay", "How late requests went out, and what waited."),
    "throughput": ("Throughput", "What was demanded, and what was delivered."),
    "load": ("The load", "What the requests are like: where they go, how large they are, what they touch again."),
    "replayer": ("The replayer", "What the replayer noted of itself."),
}


def run_page(study: Study, diagrams: Sequence[Diagram]) -> Page:
    """Builds the diagrams, and says what they mean."""
    parts: dict[str, list[Figure]] = {part: [] for part in SECTIONS}
    empty = []
    for diagram in diagrams:
        figure = diagram.build(study)
        if isinstance(figure, Empty):
            empty.append(figure)
        else:
            parts[_part_of(diagram)].append(figure)
    parts["story"].sort(key=lambda figure: STORY.index(figure.name))
    sections = tuple(Section(part, *SECTIONS[part], tuple(figures)) for part, figures in parts.items() if figures)
    return Page(_front(study), sections, tuple(empty))


def _part_of(diagram: Diagram) -> str:
    if diagram.name in STORY:
        return "story"
    if diagram.group is Group.VERBOSE:
        return "replayer"
    stem = diagram.name.removeprefix("smooth.").split(".")[0]
    return {"latency": "latency", "delay": "delay", "overview": "throughput", "thrp": "throughput"}.get(
        stem, "throughput" if stem == "thrs" else "load"
    )


def _front(study: Study) -> Front:
    files = study.requests.files
    names = ", ".join(file.name for file in files[:4]) + (f" and {len(files) - 4} more" if len(files) > 4 else "")
    run = study.requests.is_run
    checks = tuple(_checks(study)) if run else ()
    own = [text for file in files if (text := stated_verdict(file).get("sentence"))]
    bands = [
        # A run that judges itself does so in a sentence, with its reasons.
        Band(note.mood, own[0]) if len(files) == len(own) == 1 else Band(note.mood, *_halves(note.text))
        for note in study.notes
        if note.kind is NoteKind.FIDELITY
    ]
    warnings = [
        Band(note.mood, note.text[:1].upper() + note.text[1:])
        for note in study.notes
        # The wrap-around factor is among the reasons of the verdict.
        if note.kind is NoteKind.WARNING and note.mood is not Mood.NEUTRAL
    ]
    if run:
        faithful = all(band.mood is not Mood.BAD for band in bands)
        bands.append(_grade(study, faithful=faithful, warned=bool(warnings)))
    bands += warnings
    return Front(
        title=names,
        short=files[0].name,
        lead=tuple(_lead(study)),
        bands=tuple(bands),
        tiles=tuple(_tiles(study)),
        tables=tuple(_values(study, measure) for measure in (LATENCY, DELAY) if study.distribution(measure)),
        checks=checks,
        facts=tuple(_facts(files)),
    )


def _halves(text: str) -> tuple[str, str]:
    """What follows the first colon, and what stands before it."""
    head, colon, rest = text.partition(": ")
    return (rest, f"{head}:") if colon else (text, "")


def _lead(study: Study) -> Iterator[str]:
    """What was replayed where, and how long it took."""
    span, files = study.span, study.requests.files
    demand = (span.last_intended_s or 0.0) - (span.first_intended_s or 0.0)
    if not study.requests.is_run:
        yield f"A load of {span.requests:,} requests over {units.seconds(demand, 4)}. Nothing was replayed."
        return
    took = (span.last_completed_s or 0.0) - (span.first_intended_s or 0.0)
    loads = {PurePath(str(load)).name for file in files if (load := file.run.get("load"))}
    targets = {str(path) for file in files for target in file.targets if (path := target.get("path"))}
    what = f" of {', '.join(sorted(loads))}" if loads else ""
    where = f" on {', '.join(sorted(targets))}" if targets else ""
    speedups = {speed for file in files if (speed := file.run.get("options", {}).get("speedup"))} - {1}
    speed = f", {units.number(float(next(iter(speedups))))} times as fast as recorded" if len(speedups) == 1 else ""
    yield (
        f"{span.requests:,} requests{what} were replayed{where}{speed}: "
        f"{units.seconds(demand, 4)} of load took {units.seconds(took, 4)}."
    )
    values = study.pooled(LATENCY)
    if values.count:
        yield (
            f"Half of the requests were answered within {units.seconds(values.quantile(0.5) / 1e9)}, 99 % within "
            f"{units.seconds(values.quantile(0.99) / 1e9)}; the slowest took {units.seconds(values.maximum / 1e9)}."
        )


def _grade(study: Study, *, faithful: bool, warned: bool) -> Band:
    verdict = verdict_of(study)
    mood = {Grade.GOOD: Mood.GOOD, Grade.WARNING: Mood.WARNING, Grade.BAD: Mood.BAD}[verdict["grade"]]
    if mood is Mood.GOOD:
        but = ", but there is something to know about it" if warned else ""
        return Band(mood, f"no failure, and nothing beyond its limits{but}.", "Run good:")
    words = "; ".join(verdict["reasons"])
    head = "Run worth a second look:" if mood is Mood.WARNING else "Run bad:" if faithful else "Run invalid:"
    return Band(mood, f"{words}.", head)


def _tiles(study: Study) -> Iterator[Tile]:
    span = study.span
    demand = (span.last_intended_s or 0.0) - (span.first_intended_s or 0.0)
    yield Tile("Requests", f"{span.requests:,}", _mix(study))
    column = "completed_ns" if study.requests.is_run else "intended_ns"
    done = study.throughput(column)
    if done.windows:
        duration = done.end_s - float(done.edges_s[0])
        total = sum(int(counts.sum()) for counts in done.requests.values())
        data = sum(int(counts.sum()) for counts in done.sectors.values()) * SECTOR_BYTES
        if duration > 0:
            asked = f"{units.count(span.requests / demand)} demanded" if demand > 0 and study.requests.is_run else ""
            yield Tile("Throughput", f"{units.count(total / duration)} IO/s", asked)
            yield Tile("Data", f"{units.binary_bytes(data / duration)}/s", f"{units.binary_bytes(data)} in all")
    values = study.pooled(LATENCY)
    if values.count:
        for share, more in ((0.5, "half are faster"), (0.99, "1 in 100 is slower"), (0.999, "1 in 1000 is slower")):
            yield Tile(f"Latency p{units.number(share * 100, 4)}", units.seconds(values.quantile(share) / 1e9), more)
        worst = study.verdict(LATENCY)
        yield Tile("Latency, worst", units.seconds(worst.maximum_s), f"limit {units.seconds(worst.limit_s)}")
    delays = study.pooled(DELAY)
    if delays.count and study.requests.is_run:
        late = f"worst {units.seconds(delays.maximum / 1e9)}"
        yield Tile("Delay p99", units.seconds(delays.quantile(0.99) / 1e9), late)


def _mix(study: Study) -> str:
    asked = study.throughput("intended_ns").requests
    total = max(sum(int(counts.sum()) for counts in asked.values()), 1)
    shares = [(series.title, int(counts.sum()) / total) for series, counts in sorted(asked.items())]
    return ", ".join(f"{units.percent(share)} {title.lower()}" for title, share in shares[:2])


def _values(study: Study, measure: Measure) -> Table:
    found = study.distribution(measure)
    named = [(series.title, values) for series, values in sorted(found.items())]
    if len(named) > 1:
        named.append(("All", study.pooled(measure)))
    rows = tuple(
        (
            title,
            f"{values.count:,}",
            units.seconds(values.mean / 1e9),
            *(units.seconds(values.quantile(share) / 1e9) for share in SHARES.values()),
            units.seconds(values.maximum / 1e9),
        )
        for title, values in named
    )
    return Table(measure.name.capitalize(), ("", "requests", "avg", *SHARES, "max"), rows)


def _checks(study: Study) -> Iterator[Band]:
    """Each single verdict in a sentence, the worst first."""
    verdict = verdict_of(study)
    moods = {Grade.GOOD: Mood.GOOD, Grade.WARNING: Mood.WARNING, Grade.BAD: Mood.BAD}
    said = [
        Band(moods[part["grade"]], text)
        for name, part in verdict.items()
        if isinstance(part, dict) and part["grade"] and (text := _sentence(name, part))
    ]
    yield from sorted(said, key=lambda band: [Mood.BAD, Mood.WARNING, Mood.GOOD].index(band.mood))
    if study.distribution(LATENCY):
        note = steady(study)[1]
        yield Band(Mood.GOOD if note.mood is Mood.NEUTRAL else note.mood, note.text)


def _sentence(name: str, part: dict[str, Any]) -> str:
    number = part.get("requests")
    match name:
        case "fidelity" if "p99_s" in part:
            return (
                f"Replayed in time: of the {number:,} requests that were free to go, "
                f"{units.percent(part['within_50_us'])} went within 50 µs of the deadline"
                f"{'' if part['within_50_us'] >= FAITHFUL else f' where {units.percent(FAITHFUL)} are needed'}, "
                f"99 % within {units.seconds(part['p99_s'])}"
            )
        case "complete":
            return "The result is complete" if part["complete"] else "The result was cut short"
        case "real":
            return "" if part["real"] else "The result is not real"
        case "bad_latency" | "bad_delay":
            plural = (LATENCY if name == "bad_latency" else DELAY).plural
            most = f"the worst is {units.seconds(part['max_s'])}"
            count = f"{part['beyond']:,}" if part["beyond"] else "No"
            if part["beyond"] == 1:
                plural = (LATENCY if name == "bad_latency" else DELAY).name
            return f"{count} {plural} beyond {units.seconds(part['limit_s'])}; {most}"
        case "errors":
            return counted(number or 0, "failed") if number else "No request failed"
        case "dropped":
            return counted(number or 0, "dropped") if number else "No request was dropped"
        case "skipped":
            return counted(number or 0, "left out") if number else ""
        case "zero_reads" if number is not None:
            return f"{number:,} read{'' if number == 1 else 's'} returned nothing but zeros"
        case "wrap_around" if part["factor"] is not None:
            return f"The load reaches over {units.number(part['factor'])} times the target's size"
        case _:
            return ""


def _typed(value: object) -> str:
    """An option's value as it is typed; one that was given several times in a row."""
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def _facts(files: Sequence[SourceFile]) -> Iterator[tuple[str, str]]:
    for file in files[:8]:
        yield "File", str(file.given)
        run = file.run
        machine = run.get("machine", {})
        if run.get("load"):
            yield "Load", str(run["load"])
        for target in file.targets:
            size = f", {units.binary_bytes(target['sectors'] * SECTOR_BYTES)}" if target.get("sectors") else ""
            scheduler = f", scheduler {target['scheduler']}" if target.get("scheduler") else ""
            yield "Target", f"{target.get('path', '')} ({target.get('kind', 'device')}{size}{scheduler})"
        for key, name in (("hostname", "Machine"), ("kernel", "Kernel"), ("processor", "Processor")):
            if machine.get(key):
                yield name, str(machine[key])
        if run.get("started_unix_ns"):
            started = datetime.fromtimestamp(run["started_unix_ns"] / 1e9, UTC)
            yield "Started", f"{started:%Y-%m-%d %H:%M:%S} UTC"
        options = {name: value for name, value in run.get("options", {}).items() if value not in (None, False, [], "")}
        if options:
            yield "Options", ", ".join(f"{name.replace('_', '-')} {_typed(value)}" for name, value in options.items())
