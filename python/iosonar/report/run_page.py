"""The page of a run or a load: a summary in sentences and numbers, then the diagrams."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import PurePath

from iosonar import units
from iosonar.diagrams import Diagram, Group, Study
from iosonar.diagrams.notes import common_notes
from iosonar.figures.model import NoteKind, Severity
from iosonar.findings.registry import diagnose_requests
from iosonar.quantities.distribution import enough_for, pooled
from iosonar.quantities.percentiles import name_of
from iosonar.quantities.series import Series
from iosonar.report.answers import REPLAYER, answers
from iosonar.report.findings import shown_findings
from iosonar.report.original import distance_table
from iosonar.report.page import Banner, Page, Summary, Tile
from iosonar.report.run_tables import devices, facts, kinds_of, streams, values
from iosonar.report.sections import page_of, slower
from iosonar.report.selection import SONAR
from iosonar.report.slowest import slowest_table
from iosonar.study.check import Check
from iosonar.study.grades import Grade
from iosonar.study.judgement import Judgement
from iosonar.study.of_requests import judgement_of, summary_of
from iosonar.study.requests import DELAY, LATENCY
from iosonar.study.runs import runs_of
from iosonar.study.steady import steadiness
from iosonar.study.window import due_words, window_words
from iosonar.table import programs_of
from iosonar.text import listed

TILES = (0.5, 0.99, 0.999)
"""Percentiles of key numbers, if none are chosen."""

FINE = "no request failed, and all latencies and delays are within their limits"

ZERO_READS = "returned only zeros"
"""In a run's own warning of reads of areas that were never written."""

WRAPS = re.compile(r"\bwrap(ped)? around")
"""In a run's own warnings of a load that is larger than its target."""

FINDING_OF = {"zero_reads": "S12", "wrap_around": "S13", "dropped": "S22"}
"""The finding that says what a check of the verdict says."""

SHORT_RUN = "S14"
"""The finding that latency was not steady, or not for long."""

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
    "slowest": (
        "Slowest requests",
        "`iosonar report --slowest N` lists more of them.",
    ),
    "original": (
        "The original",
        "The requests of the load that the replay issued, as they were recorded: latency is from a request's time to "
        "its completion, and what requests saw at their issue is computed in the same way on both sides. Intervals "
        "cover variation over time, not between runs. An original has no verdict and no delays.",
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
        "How late requests were issued. Delay is issue time minus scheduled time. A request is held back "
        "while the queue depth is full or a request that it overlaps is in flight: the device causes that delay, "
        "not the replayer.",
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


def run_page(study: Study, diagrams: Sequence[Diagram[Study]]) -> Page:
    """Builds the diagrams and the summary."""
    names = {diagram.name for diagram in diagrams}
    run = study.requests.is_run
    story = STORY if run else tuple(dict.fromkeys((SONAR, *STORY, SAME_FOR_LOADS["overview.thrp"])))
    drawn = [diagram for diagram in diagrams if run or SAME_FOR_LOADS.get(diagram.name) not in names]
    words = SECTIONS if run else SECTIONS | LOAD_SECTIONS
    beside = any(diagram.group is Group.ORIGINAL for diagram in diagrams)
    slowest = slowest_table(study, study.options.slowest)
    tables = {
        "streams": tuple(streams(study)),
        "original": tuple(distance_table(study)) if beside else (),
        "slowest": (slowest,) if slowest else (),
    }
    return page_of(study, drawn, _header(study), words, lambda diagram: _part_of(diagram, story), tables, story)


def _part_of(diagram: Diagram[Study], story: Sequence[str]) -> str:
    if diagram.name in story:
        return "story"
    if diagram.group is Group.DEVICES:
        return "devices"
    if diagram.group is Group.STREAMS:
        return "streams"
    if diagram.group is Group.ORIGINAL:
        return "original"
    if diagram.group is Group.VERBOSE:
        return "replayer"
    stem = diagram.name.removeprefix("smooth.").split(".")[0]
    return {"latency": "latency", "delay": "delay", "overview": "throughput", "thrp": "throughput"}.get(
        stem, "throughput" if stem == "thrs" else "load"
    )


def _header(study: Study) -> Summary:
    files = study.requests.files
    run = study.requests.is_run
    judgement = judgement_of(study) if run else None
    wraps = judgement is not None and judgement["wrap_around"].grade is Grade.WARNING
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
    diagnosis = diagnose_requests(study)
    found = frozenset(finding.number for finding in diagnosis.findings)
    banners = [*_window(study), *fakes, *_fidelity(study, is_fake=bool(fakes), found=found)]
    if judgement and (grade := _grade(study, judgement, found, warned=bool(warnings))):
        banners.append(grade)
    several = run and len(study.devices) > 1
    banners += warnings
    return Summary(
        title=_title([file.name for file in files]) + (f", {window_words(study.window)}" if study.is_part else ""),
        short=files[0].name if len(files) == 1 else f"{files[0].name} and {len(files) - 1} more",
        lead=tuple(_lead(study)),
        banners=tuple(banners),
        answers=answers(study) if run else (),
        tiles=tuple(_tiles(study)),
        tables=tuple(
            values(study, measure)
            for measure in ((LATENCY, DELAY) if study.has_delays else (LATENCY,))
            if study.distribution(measure)
        )
        + ((devices(study),) if several else ()),
        checks=tuple(_banner(check) for check in judgement.conclusive) if judgement else (),
        inconclusive=tuple(_neutral(check) for check in judgement.inconclusive) if judgement else (),
        doubt=judgement.doubt if judgement else "",
        findings=shown_findings(diagnosis, files[0].kind.view),
        facts=tuple(facts(files)),
        whole="this window" if study.is_part else "whole run" if run else "whole load",
        about=f"{'Program' if programs_of(files) else 'Load'}, target, machine and options" if run else "Files",
    )


def _window(study: Study) -> Iterator[Banner]:
    """Which requests the page is about, if not all."""
    if study.window is None:
        return
    if not study.is_part:
        yield Banner(Severity.NEUTRAL, study.window.about, "All requests:")
        return
    what = "numbers, diagrams and the verdict" if study.requests.is_run else "numbers and diagrams"
    unfaithful = [
        run.file.name for run in runs_of(study) if (own := run.file.run.statistics.verdict) and not own.faithful
    ]
    text = (
        f"{study.span.requests:,} of {units.requests(study.rows)}, {due_words(study.files)} "
        f"{window_words(study.window)}. All {what} cover only this window."
    )
    more = f" The whole replay of {listed(unfaithful)} was not faithful." if unfaithful else ""
    about = f" {study.window.about}" if study.window.about else ""
    yield Banner(Severity.NEUTRAL, f"{text}{about}{more}", "Window:")


def _fidelity(study: Study, *, is_fake: bool, found: Collection[str]) -> Iterator[Banner]:
    """Whether the replay was faithful, and what to try if it was not."""
    runs = runs_of(study)
    own = [run.sentence for run in runs if run.sentence]
    for note in common_notes(study):
        if note.kind is not NoteKind.FIDELITY:
            continue
        # A run with its own verdict has a sentence with the reasons; of a fake one, it is no verdict.
        has_own = len(runs) == len(own) == 1 and not is_fake
        yield Banner(note.severity, own[0]) if has_own else Banner(note.severity, *_halves(note.text))
    # The finding has the same advice.
    if len(runs) == 1 and (remedies := runs[0].remedies) and REPLAYER not in found:
        steps = tuple(step.words for step in remedies)
        yield Banner(Severity.NEUTRAL, "", "What to try, in this order:", steps)


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
    loads = {PurePath(file.run.load).name for file in files if file.run.load}
    targets = {target.path for file in files for target in file.targets if target.path and target.is_real}
    what = f" of {', '.join(sorted(loads))}" if loads else ""
    where = f" on {', '.join(sorted(targets))}" if targets else ""
    were = "was" if span.requests == 1 else "were"
    if not span.requests:
        yield f"No request{what} was replayed{where}."
        return
    if programs := programs_of(files):
        by = f"{'the program' if len(programs) == 1 else 'the programs'} {listed(programs)}"
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


def _grade(study: Study, judgement: Judgement, found: Collection[str], *, warned: bool) -> Banner | None:
    """The verdict on the run and its reasons; None if banners above or findings say all of it."""
    severity, doubt = Severity(judgement.grade), judgement.doubt
    if judgement.grade is Grade.GOOD:
        if SHORT_RUN in found or judgement["slow_for_device"].sentence:
            # A finding says so, or an answer.
            return None
        return _unsteady(study) or Banner(
            severity, f"{FINE}{', but read the warnings' if warned else ''}.", "Good run:"
        )
    missed = judgement["fidelity"].grade in (Grade.BAD, None)
    # Banners above have these reasons, or findings.
    said = ["real"] + ["fidelity"] * missed + [name for name, number in FINDING_OF.items() if number in found]
    reasons = [reason for name, reason in judgement.reasons.items() if name not in said]
    if not reasons:
        return None
    # A banner above says that there is no verdict.
    doubtful = "Measured as well, without a verdict:" if missed or judgement.is_fake else "No verdict on the device:"
    head = doubtful if doubt else "Bad run:"
    return Banner(severity, _sentence("; ".join(reasons)), "Warning:" if severity is Severity.WARNING else head)


def _unsteady(study: Study) -> Banner | None:
    """A banner if latency was not steady, which does not affect the grade, but qualifies a good one."""
    if not study.distribution(LATENCY):
        return None
    found = steadiness(study)
    if found.grade is not Grade.WARNING:
        return None
    what, why = (
        ("short", f"{found.text[:1].lower()}{found.text[1:]}")
        if found.since_s is not None
        else ("not steady", _halves(found.text)[0])
    )
    return Banner(Severity.WARNING, f"{why}. {_sentence(FINE)}", f"Run without errors, but {what}:")


def _banner(check: Check) -> Banner:
    return Banner(Severity(check.grade or Severity.NEUTRAL), check.sentence)


def _neutral(check: Check) -> Banner:
    return Banner(Severity.NEUTRAL, check.sentence)


def _tiles(study: Study) -> Iterator[Tile]:
    run, found = study.requests.is_run, summary_of(study)
    counted = found.reads + found.writes + found.others
    yield Tile("Requests", f"{found.rows:,}", kinds_of(counted, found.reads, found.writes))
    if found.seconds > 0:
        asked = f"{units.count(found.demanded_per_s)} requests/s demanded" if run and found.demanded_s > 0 else ""
        yield Tile("Throughput" if run else "Rate", f"{units.count(found.rate_per_s)} requests/s", asked)
        yield Tile(
            "Data", f"{units.transferred(found.bytes_per_s)}/s", f"{units.transferred(found.bytes_moved)} in total"
        )
    if found.latency.count:
        of = "Latency" if run else "Recorded latency"
        for share in study.options.percentiles or TILES:
            value = study.pooled(LATENCY).percentile(share) / 1e9
            more = slower(share) + (_mostly(study, share) if share > 0.5 else "")
            yield Tile(f"{of} {name_of(share)}", units.span(value), "too few requests" if math.isnan(value) else more)
        worst = study.verdict(LATENCY)
        yield Tile(f"{of}, max", units.span(worst.maximum_s), f"limit {units.span(worst.limit_s)}" if run else "")
    if found.delay and found.delay.count:
        share = max(study.options.percentiles, default=0.99)
        value = study.pooled(DELAY).percentile(share) / 1e9
        # The verdict counts only those that were not held back.
        more = f"of all requests; max {units.span(found.delay.max_s)}"
        yield Tile(f"Delay {name_of(share)}", units.span(value), more)


def _mostly(study: Study, share: float) -> str:
    """Whether most of the latencies above a percentile are neither of reads nor of writes."""
    if study.options.each_device:
        return ""
    limit_ns = study.pooled(LATENCY).quantile(share)
    above = {series: each.above(limit_ns) for series, each in study.distribution(LATENCY).items()}
    others = above.get(Series.OTHER, 0)
    return f", mostly {Series.OTHER.title.lower()}" if len(above) > 1 and 2 * others > sum(above.values()) else ""
