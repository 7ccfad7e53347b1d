"""The page of a run or a load: a summary in sentences and numbers, then the diagrams."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import PurePath
from typing import Any

from iosonar import units
from iosonar.diagrams import Diagram, Group, Study
from iosonar.diagrams.devices import slow_devices
from iosonar.diagrams.notes import FAITHFUL, common_notes, doubt_of, stated_verdict
from iosonar.diagrams.parts import beyond_limit, look
from iosonar.diagrams.percentiles import steady
from iosonar.diagrams.study import DELAY, LATENCY, Measure
from iosonar.figures.model import Empty, Figure, NoteKind, Severity
from iosonar.quantities.distribution import Distribution, enough_for, pooled
from iosonar.quantities.outcomes import outcomes
from iosonar.quantities.series import Series
from iosonar.quantities.work import Work, demand, work
from iosonar.report.page import Banner, Page, Section, Summary, Table, Tile
from iosonar.report.typed import command_line
from iosonar.report.verdict import Grade, counted, verdict_of
from iosonar.table import SourceFile, Stream, program_name, programs_of
from iosonar.text import plain

SHARES = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999}
SECTOR_BYTES = 512

FINE = "no request failed, and all latencies and delays are within their limits"

ZERO_READS = "returned only zeros"
"""In a run's own warning of reads of areas that were never written."""

WRAPS = re.compile(r"\bwrap(ped)? around")
"""In a run's own warnings of a load that is larger than its target."""

MAX_DEVICE_ROWS = 40
"""Rows in the table of devices."""

MAX_TITLE = 60
"""Characters of several names in a title."""

STORY = (
    "position.setpoint",
    "latency.realtime",
    "position.realtime",
    "latency.flying",
    "overview.thrp",
    "delay.setpoint",
    "latency.bands",
)
"""The diagrams that show what happened over time, in their order on the page."""

SECTIONS = {
    "devices": (
        "Devices",
        "Each device by itself, the slowest first. `iosonar report --device NAME` shows one of them; `--each-device` "
        "draws a series for each in every diagram.",
    ),
    "story": (
        "What happened over time",
        "All diagrams over time are linked: zoom one and the others follow; the cursor marks the same moment in all.",
    ),
    "streams": (
        "Streams",
        "Each stream of the program by itself. Requests of open streams come at times of their own; those of closed "
        "streams wait until earlier ones have completed.",
    ),
    "latency": (
        "Latency",
        "How fast the storage completed requests, and how latency depends on queue depth, request size and position.",
    ),
    "delay": (
        "Delay",
        "How late requests were issued. Delay is issue time minus scheduled time; papers call it issue error. A "
        "request is held back while the queue depth is full or a request that it overlaps is in flight: the device "
        "causes that delay, not the replayer.",
    ),
    "throughput": ("Throughput", "What the load demanded, and what the storage delivered."),
    "load": ("The load", "Where requests go, how large they are, and which data they access repeatedly."),
    "replayer": ("The replayer", "What the replayer recorded about itself."),
}

SAME_FOR_LOADS = {"overview.thrp": "thrp.setpoint", "overview.thrs": "thrs.setpoint"}
"""A load has no completions, so its overviews equal other diagrams."""

LOAD_SECTIONS = {
    "story": ("The load over time", SECTIONS["story"][1]),
    "throughput": ("Throughput", "What the load demands."),
}


def run_page(study: Study, diagrams: Sequence[Diagram]) -> Page:
    """Builds the diagrams and the summary."""
    parts: dict[str, list[Figure]] = {part: [] for part in SECTIONS}
    empty = []
    names = {diagram.name for diagram in diagrams}
    story = STORY if study.requests.is_run else (*STORY, SAME_FOR_LOADS["overview.thrp"])
    for diagram in diagrams:
        if not study.requests.is_run and SAME_FOR_LOADS.get(diagram.name) in names:
            continue
        figure = diagram.build(study)
        if isinstance(figure, Empty):
            empty.append(figure)
        else:
            parts[_part_of(diagram, story)].append(figure)
    parts["story"].sort(key=lambda figure: story.index(figure.name))
    words = SECTIONS if study.requests.is_run else SECTIONS | LOAD_SECTIONS
    tables = {"streams": tuple(_streams(study))}
    sections = tuple(
        Section(part, *words[part], tuple(figures), tables.get(part, ()))
        for part, figures in parts.items()
        if figures or tables.get(part)
    )
    return Page(_summary(study), sections, tuple(empty))


def _part_of(diagram: Diagram, story: Sequence[str]) -> str:
    if diagram.name in story:
        return "story"
    if diagram.group is Group.DEVICES:
        return "devices"
    if diagram.group is Group.STREAMS:
        return "streams"
    if diagram.group is Group.VERBOSE:
        return "replayer"
    stem = diagram.name.removeprefix("smooth.").split(".")[0]
    return {"latency": "latency", "delay": "delay", "overview": "throughput", "thrp": "throughput"}.get(
        stem, "throughput" if stem == "thrs" else "load"
    )


def _summary(study: Study) -> Summary:
    files = study.requests.files
    run = study.requests.is_run
    checks, inconclusive = _checks(study) if run else ((), ())
    doubt = doubt_of(study) if run else ""
    wraps = any(note.kind is NoteKind.WRAP and note.severity is Severity.WARNING for note in common_notes(study))
    noted = [
        Banner(note.severity, _sentence(note.text))
        for note in common_notes(study)
        # The wrap-around factor is among the reasons of the verdict.
        if note.kind is NoteKind.WARNING and note.severity is not Severity.NEUTRAL
        # So are reads of zeros, and a load that wraps around.
        if not (run and (ZERO_READS in note.text or (wraps and WRAPS.search(note.text))))
    ]
    # What makes a result fake comes before what the replayer did.
    fakes = [banner for banner in noted if banner.severity is Severity.BAD]
    warnings = [banner for banner in noted if banner not in fakes]
    banners = [*fakes, *_fidelity(study, is_fake=bool(fakes))]
    if run and (grade := _grade(study, warned=bool(warnings))):
        banners.append(grade)
    several = run and len(study.devices) > 1
    if several:
        banners += [Banner(Severity.WARNING, f"{text}.", "Slow device:") for text in slow_devices(study)]
    banners += warnings
    return Summary(
        title=_title([file.name for file in files]),
        short=files[0].name,
        lead=tuple(_lead(study)),
        banners=tuple(banners),
        tiles=tuple(_tiles(study)),
        tables=tuple(
            _values(study, measure)
            for measure in ((LATENCY, DELAY) if study.has_delays else (LATENCY,))
            if study.distribution(measure)
        )
        + ((_devices(study),) if several else ()),
        checks=checks,
        inconclusive=inconclusive,
        doubt=doubt,
        facts=tuple(_facts(files)),
        whole="whole run" if run else "whole load",
        about=f"{'Program' if programs_of(files) else 'Load'}, target, machine and options" if run else "Files",
    )


def _fidelity(study: Study, *, is_fake: bool) -> Iterator[Banner]:
    """Whether the replay was faithful, and what to try if it was not."""
    files = study.requests.files
    own = [text for file in files if (text := stated_verdict(file).get("sentence"))]
    for note in common_notes(study):
        if note.kind is not NoteKind.FIDELITY:
            continue
        # A run with its own verdict has a sentence with the reasons; of a fake one, it is no verdict.
        has_own = len(files) == len(own) == 1 and not is_fake
        yield Banner(note.severity, own[0]) if has_own else Banner(note.severity, *_halves(note.text))
    if len(files) == 1 and (remedies := stated_verdict(files[0]).get("remedies")):
        steps = tuple(f"{step['try']} (costs: {step['costs']})" for step in remedies)
        yield Banner(Severity.NEUTRAL, "", "What to try, in this order:", steps)


def _and(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _title(names: Sequence[str]) -> str:
    """As many names as fit."""
    shown = next((n for n in range(min(len(names), 4), 1, -1) if sum(map(len, names[:n])) <= MAX_TITLE), 1)
    more = f" and {len(names) - shown} more" if len(names) > shown else ""
    return f"{', '.join(names[:shown])}{more}"


def _sentence(text: str) -> str:
    """A note as a sentence."""
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', '!', '?')) else '.'}"


def _halves(text: str) -> tuple[str, str]:
    """The text after the first colon, and the head before it."""
    head, colon, rest = text.partition(": ")
    return (rest, f"{head}:") if colon else (text, "")


def _lead(study: Study) -> Iterator[str]:
    """The load, the target, and the duration of the run."""
    span, files = study.span, study.requests.files
    demand = (span.last_scheduled_s or 0.0) - (span.first_scheduled_s or 0.0)
    if not study.requests.is_run:
        yield f"A load of {units.requests(span.requests)} over {units.span(demand)}."
        yield from _quantiles(study, "When recorded, half of them")
        return
    took = (span.last_completed_s or 0.0) - (span.first_scheduled_s or 0.0)
    loads = {PurePath(str(load)).name for file in files if (load := file.run.get("load"))}
    targets = {
        str(path)
        for file in files
        for target in file.targets
        if (path := target.get("path")) and target.get("kind") != "none"
    }
    what = f" of {', '.join(sorted(loads))}" if loads else ""
    where = f" on {', '.join(sorted(targets))}" if targets else ""
    were = "was" if span.requests == 1 else "were"
    if programs := programs_of(files):
        by = f"{'the program' if len(programs) == 1 else 'the programs'} {_and(programs)}"
        beside = f", beside{what.removeprefix(' of')}," if loads else ""
        yield f"{units.requests(span.requests)} of {by}{beside} {were} issued{where}, in {units.span(took)}."
        yield from _quantiles(study, "Half of the requests")
        yield from _causes(study)
        return
    speedups = {speed for file in files if (speed := file.option("speedup"))} - {1}
    speed = f", {units.number(float(next(iter(speedups))))} times as fast as recorded" if len(speedups) == 1 else ""
    replayed = f"{units.requests(span.requests)}{what} {were} replayed{where}"
    if study.has_demand:
        yield f"{replayed}{speed}: {units.span(demand)} of load took {units.span(took)}."
    else:
        how = " in a closed loop" if study.has_delays else " as fast as possible"
        yield f"{replayed}{how}, in {units.span(took)}."
    yield from _quantiles(study, "Half of the requests")


def _causes(study: Study) -> Iterator[str]:
    """How soon requests were issued after the completion that they waited for."""
    delays = pooled([values.delay for values in study.causes.values()])
    own = [values for values in study.causes.values() if values.not_held_back]
    total = sum(values.not_held_back for values in own)
    if not total:
        return
    in_10, in_50 = (
        sum(share * values.not_held_back for share, values in zip(shares, own, strict=True)) / total
        for shares in ([values.within_10_us for values in own], [values.within_50_us for values in own])
    )
    those = "" if delays.count == total else f"of the {total:,} that were not held back, "
    waited = "request" if delays.count == 1 else "requests"
    yield (
        f"{delays.count:,} {waited} waited for the completion of another one: {those}{units.percent(in_10)} were "
        f"issued within 10 µs of it, {units.percent(in_50)} within 50 µs."
    )


def _quantiles(study: Study, half: str) -> Iterator[str]:
    values = study.pooled(LATENCY)
    if values.count > 1:
        most = units.span(values.maximum / 1e9)
        known = [
            f"{who} within {units.span(values.quantile(share) / 1e9)}"
            for share, who in ((0.5, f"{half} completed"), (0.99, "99 %"))
            if enough_for(share, values.count)
        ]
        yield f"{', '.join(known)}; the slowest took {most}." if known else f"The slowest took {most}."


def _grade(study: Study, *, warned: bool) -> Banner | None:
    """The verdict on the run and its reasons; None if the only reason is that it was not faithful."""
    verdict = verdict_of(study)
    severity = {Grade.GOOD: Severity.GOOD, Grade.WARNING: Severity.WARNING, Grade.BAD: Severity.BAD}[verdict["grade"]]
    if severity is Severity.GOOD:
        return _unsteady(study) or Banner(
            severity, f"{FINE}{', but read the warnings' if warned else ''}.", "Good run:"
        )
    missed = verdict["fidelity"]["grade"] in (Grade.BAD, None)
    # The banner above has the reason.
    reasons = verdict["reasons"][1:] if missed else verdict["reasons"]
    # A note below says that the result is fake.
    reasons = [reason for reason in reasons if verdict["real"]["real"] or not reason.startswith("fake result: ")]
    if not reasons:
        return None
    also = "; also:" if missed or not verdict["real"]["real"] else ":"
    head = f"No verdict on the device{also}" if doubt_of(study) else "Bad run:"
    return Banner(severity, _sentence("; ".join(reasons)), "Warning:" if severity is Severity.WARNING else head)


def _unsteady(study: Study) -> Banner | None:
    """A banner if latency was not steady, which does not affect the grade, but qualifies a good one."""
    if not study.distribution(LATENCY):
        return None
    since, note = steady(study)
    if note.severity is not Severity.WARNING:
        return None
    what, why = (
        ("short", f"{note.text[:1].lower()}{note.text[1:]}")
        if since is not None
        else ("not steady", _halves(note.text)[0])
    )
    return Banner(note.severity, f"{why}. {_sentence(FINE)}", f"Run without errors, but {what}:")


def _tiles(study: Study) -> Iterator[Tile]:
    span, run = study.span, study.requests.is_run
    demand = (span.last_scheduled_s or 0.0) - (span.first_scheduled_s or 0.0)
    yield Tile("Requests", f"{span.requests:,}", _mix(study))
    if found := _work(study):
        asked = (
            f"{units.count(span.requests / demand)} IO/s demanded" if demand > 0 and run and study.has_demand else ""
        )
        yield Tile("Throughput" if run else "Rate", f"{units.count(found.requests / found.seconds)} IO/s", asked)
        data = f"{units.transferred(found.data)} in total"
        yield Tile("Data", f"{units.transferred(found.data / found.seconds)}/s", data)
    values = study.pooled(LATENCY)
    if values.count:
        of, half = "Latency" if run else "Recorded latency", 0.5
        for share, more in ((0.5, "half are faster"), (0.99, "1 in 100 is slower"), (0.999, "1 in 1,000 is slower")):
            few = "" if enough_for(share, values.count) else "too few requests"
            few_or_more = few or f"{more}{_mostly(study, values.quantile(share)) if share > half else ''}"
            yield Tile(f"{of} p{units.number(share * 100, 4)}", units.span(values.percentile(share) / 1e9), few_or_more)
        worst = study.verdict(LATENCY)
        yield Tile(f"{of}, max", units.span(worst.maximum_s), f"limit {units.span(worst.limit_s)}" if run else "")
    delays = study.pooled(DELAY)
    if delays.count and study.has_delays:
        late = f"max {units.span(delays.maximum / 1e9)}"
        yield Tile("Delay p99", units.span(delays.percentile(0.99) / 1e9), late)


def _mostly(study: Study, limit_ns: float) -> str:
    """Whether most of the latencies above a limit are neither of reads nor of writes."""
    if study.options.each_device:
        return ""
    above = {series: each.above(limit_ns) for series, each in study.distribution(LATENCY).items()}
    others = above.get(Series.OTHER, 0)
    return f", mostly {Series.OTHER.title.lower()}" if len(above) > 1 and 2 * others > sum(above.values()) else ""


def _work(study: Study) -> Work | None:
    """Requests and bytes of the run, counted as the replay counts them; of a load, its demand."""
    requests, run = study.requests, study.requests.is_run
    found = study.once("work", lambda: work(requests.table) if run else demand(requests.table))
    return found if found.seconds > 0 else None


def _mix(study: Study) -> str:
    """The shares of reads, writes and others, whatever their outcome."""
    by_op = study.once("outcomes", lambda: outcomes(study.requests.table)).by_op
    return _shares(sum(by_op.values()), by_op.get("read", 0), by_op.get("write", 0))


def _shares(requests: int, reads: int, writes: int) -> str:
    """The shares of reads, writes and others: 70 % reads, 30 % writes."""
    total = max(requests, 1)
    kinds = (("reads", reads), ("writes", writes), ("others", requests - reads - writes))
    return ", ".join(f"{units.percent(number / total)} {name}" for name, number in kinds if number)


def _values(study: Study, measure: Measure) -> Table:
    found = study.distribution(measure)
    named = [(look(study, series)[1], values) for series, values in sorted(found.items())]
    if len(named) > 1:
        named.append(("All", study.pooled(measure)))
    rows = tuple(
        (
            title,
            f"{values.count:,}",
            units.span(values.mean / 1e9),
            *(units.span(values.percentile(share) / 1e9) for share in SHARES.values()),
            units.span(values.maximum / 1e9),
        )
        for title, values in named
    )
    return Table(measure.name.capitalize(), ("", "requests", "avg", *SHARES, "max"), rows)


def _devices(study: Study) -> Table:
    rows = tuple(
        (
            each.device.name,
            f"{each.latency.count:,}",
            units.span(each.latency.mean / 1e9),
            *(units.span(each.latency.percentile(share) / 1e9) for share in SHARES.values()),
            units.span(each.latency.maximum / 1e9),
        )
        for each in study.devices[:MAX_DEVICE_ROWS]
    )
    more = len(study.devices) - len(rows)
    rest = f", without {units.counted(more, 'faster one')}" if more else ""
    return Table(f"Latency of each device, the slowest first{rest}", ("", "requests", "avg", *SHARES, "max"), rows)


def _streams(study: Study) -> Iterator[Table]:
    """The streams of programs, and how soon their requests were issued after those that they waited for."""
    if not study.streams:
        return
    seconds = found.seconds if (found := _work(study)) else 0.0
    rows = tuple(
        (
            each.stream.name,
            _kind(each.stream),
            f"{each.stream.instances:,}" if each.stream.instances else "",
            f"{each.values.requests:,}",
            f"{units.count(each.values.requests / seconds)} IO/s" if seconds else "",
            _shares(each.values.requests, each.values.reads, each.values.writes),
            f"{units.transferred(each.values.data / seconds)}/s" if seconds else "",
            *_spans(each.values.latency, (0.5, 0.99)),
            *_spans(each.values.delay, (0.5, 0.99)),
        )
        for each in study.streams
    )
    names = ("latency p50", "latency p99", "delay p50", "delay p99")
    yield Table("Requests of each stream", ("", "kind", "instances", "requests", "rate", "mix", "data", *names), rows)
    caused = tuple(
        (
            each.stream.name,
            f"{values.delay.count:,}",
            *(
                units.percent(share) if values.not_held_back else ""
                for share in (values.within_10_us, values.within_50_us)
            ),
            *_spans(values.delay, (0.5, 0.99, 1.0)),
        )
        for number, each in enumerate(study.streams)
        if (values := study.causes.get(number))
    )
    if caused:
        columns = ("", "requests", "within 10 µs", "within 50 µs", "p50", "p99", "max")
        yield Table("From the completion of a request to the issue of the one that waits for it", columns, caused)


def _kind(stream: Stream) -> str:
    return "" if stream.open is None else "open" if stream.open else "closed"


def _spans(values: Distribution, shares: Sequence[float]) -> tuple[str, ...]:
    return tuple(units.span(values.percentile(share) / 1e9) if values.count else "" for share in shares)


TIME_CHECKS = ("bad_latency", "bad_delay")
"""Checks of times, which say nothing about the device if the replay was not faithful."""

FAKE_CHECKS = (*TIME_CHECKS, "fidelity")
"""Checks that say nothing about a device if the result is fake."""


def _checks(study: Study) -> tuple[tuple[Banner, ...], tuple[Banner, ...]]:
    """All checks as sentences, the worst first; separately those that an unfaithful replay makes inconclusive."""
    verdict, not_judged = verdict_of(study), bool(doubt_of(study))
    doubtful = TIME_CHECKS if verdict["real"]["real"] else FAKE_CHECKS
    severities = {Grade.GOOD: Severity.GOOD, Grade.WARNING: Severity.WARNING, Grade.BAD: Severity.BAD}
    conclusive: list[Banner] = []
    inconclusive: list[Banner] = []
    # What the replayer did comes first, or last if it is no verdict.
    is_fake = not verdict["real"]["real"]
    for name, part in sorted(verdict.items(), key=lambda each: is_fake and each[0] == "fidelity"):
        if name == "bad_delay" and not study.has_delays:
            continue
        if name == "fidelity" and isinstance(part, dict) and not part["grade"]:
            inconclusive.append(Banner(Severity.NEUTRAL, "It is not known whether the replay was faithful"))
        elif isinstance(part, dict) and part["grade"] and (text := _check(name, part)):
            if name == "fidelity" and len(study.requests.files) > 1:
                text = f"The least faithful run: {text}"
            doubt = not_judged and name in doubtful
            (inconclusive if doubt else conclusive).append(
                Banner(Severity.NEUTRAL if doubt else severities[part["grade"]], text)
            )
    if study.distribution(LATENCY):
        note = steady(study)[1]
        severity = Severity.GOOD if note.severity is Severity.NEUTRAL else note.severity
        (inconclusive if not_judged else conclusive).append(
            Banner(Severity.NEUTRAL if not_judged else severity, note.text)
        )
    order = [Severity.BAD, Severity.WARNING, Severity.GOOD, Severity.NEUTRAL]
    return tuple(sorted(conclusive, key=lambda banner: order.index(banner.severity))), tuple(inconclusive)


def _check(name: str, part: dict[str, Any]) -> str:
    number = part.get("requests")
    match name:
        case "fidelity" if "p99_s" in part:
            needed = "" if part["within_50_us"] >= FAITHFUL else f"; {FAITHFUL * 100:g} % are needed"
            text = (
                f"{units.percent(part['within_50_us'])} of {_those(number)} {'was' if number == 1 else 'were'} issued "
                f"within 50 µs of {'its' if number == 1 else 'their'} scheduled time{needed}"
            )
            return text if part["p99_s"] is None else f"{text}. 99 % were issued within {units.span(part['p99_s'])}"
        case "complete":
            return "The run is complete" if part["complete"] else "The run was cut short"
        case "real":
            return "" if part["real"] else "The result is fake"
        case "bad_latency" | "bad_delay":
            measure = LATENCY if name == "bad_latency" else DELAY
            return (
                f"{beyond_limit(part['beyond'], part['limit_s'], measure)}; the maximum is {units.span(part['max_s'])}"
            )
        case "errors":
            return counted(number or 0, "failed") if number else "No request failed"
        case "dropped":
            return counted(number or 0, "dropped") if number else "No request was dropped"
        case "skipped":
            return counted(number or 0, "skipped") if number else ""
        case "zero_reads" if number is not None:
            return f"{units.counted(number, 'read')} returned only zeros" if number else "No read returned only zeros"
        case "wrap_around" if part["factor"] is not None:
            factor = part["factor"]
            if factor <= 1:
                return f"The load spans {units.percent(factor)} of the target"
            return f"The load spans {units.number(factor)} times the target's size and wraps around"
        case _:
            return ""


def _those(number: int | None) -> str:
    return (
        "the one request that was not held back" if number == 1 else f"the {number:,} requests that were not held back"
    )


def _parameters(file: SourceFile) -> Iterator[str]:
    """The parameters of the run's program that the options set, its scale, and its seed."""
    for each in file.option("set") or ():
        yield plain(str(each))
    for name in ("scale", "seed"):
        if (value := file.option(name)) is not None:
            yield f"{name} {value}"


def _facts(files: Sequence[SourceFile]) -> Iterator[tuple[str, str]]:
    for file in files[:8]:
        yield "File", file.path
        run = file.run
        machine = run.get("machine", {})
        if run.get("load"):
            yield "Load", str(run["load"])
        if name := program_name(file):
            about = str((run.get("program") or {}).get("about") or "")
            yield "Program", f"{name}: {about}" if about else name
            if parameters := ", ".join(_parameters(file)):
                yield "Parameters", parameters
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
        if options := command_line(run):
            yield "Options", options
