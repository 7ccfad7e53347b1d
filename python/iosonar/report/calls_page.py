"""The page of a trace of calls or of runs: a summary in sentences and numbers, then the diagrams."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from iosonar import units
from iosonar.diagrams.calls import CallDiagram, CallSide, CallStudy
from iosonar.diagrams.calls.parts import short_path, unreal_times
from iosonar.figures.model import Severity
from iosonar.quantities.calls.access import count_patterns
from iosonar.quantities.calls.by_file import largest_files
from iosonar.quantities.calls.mismatches import outcomes_of_calls
from iosonar.quantities.calls.response import by_call
from iosonar.quantities.distribution import enough_for
from iosonar.quantities.percentiles import name_of
from iosonar.report.call_answers import call_answers
from iosonar.report.calls_options import other_traces, replay_options
from iosonar.report.compared import title_of
from iosonar.report.page import Banner, Page, Summary, Table, Tile
from iosonar.report.run_tables import machine_facts
from iosonar.report.sections import page_of, slower, times_table
from iosonar.report.side_by_side import side_by_side
from iosonar.study.calls import PLACEHOLDERS
from iosonar.study.grades import Grade
from iosonar.study.of_calls import judgement_of_calls
from iosonar.study.window import due_words, window_words
from iosonar.table import SourceFile
from iosonar.text import listed

SECTIONS = {
    "time": (
        "Over time",
        "All diagrams over time are linked: zoom one and the others follow; the cursor marks the same moment in all.",
    ),
    "files": (
        "Files",
        "Where in the largest files calls read and wrote, and how the bytes are spread over files. `docs/files.md` "
        "defines the names of the patterns.",
    ),
    "blocks": (
        "Block devices",
        "A request belongs to the call that its process was making. The kernel writes most data back later, in threads "
        "of its own: those requests belong to no call.",
    ),
    "response": ("Response times", "From the start of a call to its end."),
    "mix": ("Mix", "Which calls, and which threads made them."),
    "order": ("Order", "The time between calls, and how many calls wait for another."),
    "fidelity": (
        "Fidelity of the replay",
        "Delay is issue time minus scheduled time. The replay is judged only by calls that were not held back.",
    ),
}

LISTED_CALLS, LISTED_FILES, LISTED_THREADS, LISTED_OUTCOMES = 25, 25, 12, 40

WAITS = ("wait4", "waitid")
"""Calls whose time is that of another process."""

KINDS = {
    "failed": "the replay failed, the original did not",
    "succeeded": "the original failed, the replay did not",
    "other_errno": "both failed, with another errno",
    "fewer": "fewer bytes than in the original",
    "more": "more bytes than in the original",
    "other_result": "another result",
    "bookkeeping": "left out: bookkeeping of descriptors and processes",
    "not_a_file": "left out: not a file",
    "ignored": "left out: ignored by a pattern",
    "kernel_file": "left out: below /proc, /sys or /dev",
    "mapped": "left out: mapped memory",
    "special_file": "left out: a device node, socket or FIFO",
    "unfinished": "left out: did not return in the original",
    "not_replayable": "left out: cannot be replayed",
    "changes_files": "left out: changes files, and cannot be replayed",
    "not_reached": "left out: the replay ended before",
    "same": "as in the original",
}
"""Outcomes in words."""


@dataclass(frozen=True)
class ShownComparison:
    """What the page of a comparison shows beside its diagrams: its sides by letter and names, and what was found."""

    names: tuple[str, ...]
    described: tuple[str, ...]
    """A sentence about each side, without the full stop."""
    banners: tuple[Banner, ...]
    tables: tuple[Table, ...]


def calls_page(study: CallStudy, diagrams: Sequence[CallDiagram], compared: ShownComparison | None = None) -> Page:
    """Builds the diagrams and the summary."""
    header = _header(study, compared)
    return page_of(study, diagrams, header, SECTIONS, lambda diagram: str(diagram.group.value), _tables(study))


def _header(study: CallStudy, compared: ShownComparison | None) -> Summary:
    first = study.first
    single = study.is_single
    files = [side.calls.file for side in study.sides]
    names = [file.name for file in files]
    found = compared.banners if compared else (*_different(files), *_slowed(study))
    beside = () if single else (side_by_side(study, compared.names if compared else ()),)
    return Summary(
        title=(title_of(compared.names) if compared else ", ".join(names))
        + (f", {window_words(study.window)}" if study.is_part else ""),
        short=names[0] if single else "Comparison",
        lead=tuple(_lead(study, compared)),
        banners=(*_window(study), *found, *_judgements(study)),
        answers=() if compared else call_answers(study),
        tiles=tuple(_tiles(first, study.options.percentiles)) if single else (),
        tables=(*(compared.tables if compared else ()), *beside),
        facts=tuple(_facts(study, compared)),
        whole="this window" if study.is_part else "all calls",
        about="Files, machine and options",
    )


def window_sentence(study: CallStudy) -> str:
    """Which calls it is about, if not all; empty without a window."""
    if study.window is None:
        return ""
    if not study.is_part:
        return study.window.about
    due = due_words([side.calls.file for side in study.runs or study.sides])
    about = f" {study.window.about}" if study.window.about else ""
    return f"Only calls {due} {window_words(study.window)}.{about}"


def _window(study: CallStudy) -> Iterator[Banner]:
    if text := window_sentence(study):
        yield Banner(Severity.NEUTRAL, text, "Window:" if study.is_part else "All calls:")


def _different(files: Sequence[SourceFile]) -> Iterator[Banner]:
    """A warning about files of different traces."""
    yield from (Banner(Severity.WARNING, text, "Different traces:") for text in other_traces(files))


def _slowed(study: CallStudy) -> Iterator[Banner]:
    """A warning about times that strace took, or that are generated."""
    is_generated = study.first.calls.file.is_generated
    if is_generated and not study.runs:
        yield Banner(Severity.WARNING, f"the trace {PLACEHOLDERS}. Replay it for times of the storage.", "Generated:")
    if unreal := unreal_times(study):
        text = f"{unreal}: its results can be compared with those of the replay, its times cannot."
        yield Banner(Severity.WARNING, text, "Generated:" if is_generated else "Times of strace:")


def _lead(study: CallStudy, compared: ShownComparison | None) -> Iterator[str]:
    for place, (side, *more) in enumerate(study.groups):
        if compared and more:
            yield f"{compared.described[place]}."
            continue
        extent, files = side.extent, side.files
        calls = units.counted(extent.calls, "call")
        threads = units.counted(extent.threads, "thread")
        verb = "replayed" if side.is_run else "generated" if side.calls.file.is_generated else "recorded"
        yield (
            f"{side.name}: {calls} of {threads} on {units.counted(files.files, 'file')}, {verb} over "
            f"{units.span(side.seconds)}; {units.transferred(side.bytes_read)} read, "
            f"{units.transferred(side.bytes_written)} written."
        )
    if compared and any(more for _, *more in study.groups):
        yield f"Numbers are of all runs, diagrams of the first of each side: {listed([*map(_name, study.sides)])}."
    if study.left_out and not compared:
        yield (
            f"{units.counted(study.left_out, 'call')} of {study.first.name} are left out here: the replay did not make "
            "them, for example because they are outside of its window, ignored, or not on files."
        )
    # strace makes a program take longer.
    if not study.is_single and study.first.seconds > 0 and not study.first.is_run and not unreal_times(study):
        for side in (side for side, *more in study.groups[1:] if not more):
            share = side.seconds / study.first.seconds - 1
            yield f"{side.name} took {units.span(side.seconds)}: {units.change(share)} against the original."


def _name(side: CallSide) -> str:
    return side.calls.file.name


def _judgements(study: CallStudy) -> Iterator[Banner]:
    """What the checks say, in one banner for all runs; of repetitions, only what is not good."""
    sentences: dict[tuple[Severity, str], list[str]] = {}
    repeated = any(more for _, *more in study.groups)
    for side in (side for group in study.groups for side in group):
        name = "" if study.is_single else f"{side.name}: "
        for check in judgement_of_calls(side).checks:
            if check.sentence and check.grade and not (repeated and check.grade is Grade.GOOD):
                sentences.setdefault((Severity(check.grade), check.head), []).append(f"{name}{check.sentence}")
    yield from (Banner(severity, " ".join(found), head) for (severity, head), found in sentences.items())


def _tiles(side: CallSide, shares: Sequence[float]) -> Iterator[Tile]:
    extent, files, values = side.extent, side.files, side.pooled_response
    failed = f"{units.percent(extent.failed / extent.calls)} failed" if extent.calls else ""
    yield Tile("Calls", f"{extent.calls:,}", failed)
    if side.seconds > 0:
        yield Tile("Rate", f"{units.count(extent.calls / side.seconds)} calls/s", f"over {units.span(side.seconds)}")
    yield Tile(
        "Files",
        f"{files.files:,}",
        f"{units.count(len(files.read_by_rank))} read, {units.count(len(files.written_by_rank))} written",
    )
    yield Tile("Read", units.transferred(side.bytes_read), _speed(side.bytes_read, side.seconds))
    yield Tile("Written", units.transferred(side.bytes_written), _speed(side.bytes_written, side.seconds))
    if values.count and (side.is_run or not side.calls.file.is_generated):
        for share in shares or (0.5, 0.99):
            more = slower(share) if enough_for(share, values.count) else "too few calls"
            yield Tile(f"Response time {name_of(share)}", units.span(values.percentile(share) / 1e9), more)
        waits = sum(each.seconds for each in side.mix if each.of in WAITS)
        total = values.total / 1e9 - waits
        yield Tile(
            "Time in calls",
            units.span(total),
            _of_threads(total, side) + (", without waits for processes" if waits else ""),
        )
    if side.keeps_times and side.delays.not_held_back.count:
        errors = side.delays.not_held_back
        yield Tile(
            "Delay p50",
            units.span(errors.percentile(0.5) / 1e9),
            f"its p99 {units.span(errors.percentile(0.99) / 1e9)}",
        )


def _speed(bytes_: int, seconds: float) -> str:
    return f"{units.transferred(bytes_ / seconds)}/s" if seconds > 0 else ""


def _of_threads(total: float, side: CallSide) -> str:
    return f"{units.percent(total / side.seconds)} of the duration" if side.seconds > 0 else ""


def _tables(study: CallStudy) -> dict[str, tuple[Table, ...]]:
    if not study.is_single:
        every = (side for group in study.groups for side in group if side.is_run)
        runs = [_outcomes(side, f"Outcomes of {side.name}") for side in every]
        return {"fidelity": tuple(table for table in runs if table.rows)}
    side = study.first
    found = {
        "mix": (_mix(side), _threads(side)),
        "files": (_patterns(side), _files(side)),
        "response": ()
        if side.calls.file.is_generated and not side.is_run
        else (_responses(side, study.options.percentiles),),
        "blocks": (_requests(study),),
        "fidelity": (_outcomes(side, "Outcomes"),) if side.is_run else (),
    }
    return {part: kept for part, tables in found.items() if (kept := tuple(table for table in tables if table.rows))}


def _mix(side: CallSide) -> Table:
    rows = tuple(
        (
            each.of,
            f"{each.calls:,}",
            units.percent(each.share),
            units.span(each.seconds),
            units.percent(each.time_share),
            f"{each.failed:,}",
            units.transferred(each.bytes) if each.bytes else "",
        )
        for each in side.mix[:LISTED_CALLS]
    )
    columns = ("call", "calls", "share", "time in calls", "share", "failed", "bytes moved")
    return Table(_titled("Mix of calls", len(side.mix), len(rows)), columns, rows)


def _threads(side: CallSide) -> Table:
    rows = tuple(
        (str(each.of), f"{each.calls:,}", units.percent(each.share), units.span(each.seconds))
        for each in side.threads[:LISTED_THREADS]
    )
    return Table(_titled("Threads", len(side.threads), len(rows)), ("thread", "calls", "share", "time in calls"), rows)


def _responses(side: CallSide, shares: Sequence[float]) -> Table:
    names = [each.of for each in side.mix[:LISTED_CALLS]]
    found = by_call(side.table, names) if names else {}
    named = [(name, found[name]) for name in names if name in found]
    return times_table("Response time by call", "calls", named, shares, "call")


def _patterns(side: CallSide) -> Table:
    rows = tuple(
        (pattern.value, f"{operation}s", f"{files:,}", units.transferred(moved))
        for pattern, operation, files, moved in count_patterns(side.patterns)
    )
    return Table("Access patterns", ("pattern", "of", "files", "bytes"), rows)


def _files(side: CallSide) -> Table:
    patterns: dict[str, list[str]] = {}
    for each in side.accesses:
        patterns.setdefault(each.path, []).append(f"{each.operation}s {each.pattern.value}")
    rows = tuple(
        (
            short_path(each.path),
            f"{each.calls:,}",
            units.transferred(each.bytes_read) if each.reads else "",
            units.transferred(each.bytes_written) if each.writes else "",
            units.binary_bytes(each.mean_size) if each.bytes else "",
            units.span(each.seconds),
            f"{units.transferred(each.speed)}/s" if each.speed else "",
            "; ".join(patterns.get(each.path, [])),
        )
        for each in largest_files(side.table, LISTED_FILES)
    )
    columns = ("path", "calls", "read", "written", "mean size", "time in calls", "speed", "pattern")
    return Table(_titled("Files with the most bytes", side.files.files, len(rows)), columns, rows)


def _requests(study: CallStudy) -> Table:
    rows = tuple(
        (
            short_path(each.name) if each.is_file else f"no call: {each.name}",
            f"{each.requests:,}",
            units.transferred(each.called_read) if each.called_read else "",
            units.transferred(each.requested_read) if each.requested_read else "",
            f"{units.number(each.read_amplification)} ×" if each.read_amplification is not None else "",
            units.transferred(each.called_written) if each.called_written else "",
            units.transferred(each.requested_written) if each.requested_written else "",
            f"{units.number(each.write_amplification)} ×" if each.write_amplification is not None else "",
        )
        for each in study.requests_of_files[:LISTED_FILES]
    )
    columns = ("file", "requests", "calls read", "requests read", "ratio", "calls wrote", "requests wrote", "ratio")
    return Table(_titled("Requests by file", len(study.requests_of_files), len(rows)), columns, rows)


def _outcomes(side: CallSide, title: str) -> Table:
    found = outcomes_of_calls(side.every)
    different = sorted(
        (each for each in found if each.outcome != "same"), key=lambda each: (not each.is_mismatch, -each.calls)
    )
    rows = tuple(
        (KINDS.get(each.outcome, each.outcome), each.call, f"{each.calls:,}") for each in different[:LISTED_OUTCOMES]
    )
    return Table(title, ("outcome", "call", "calls"), rows)


def _titled(title: str, all_: int, shown: int) -> str:
    return title if shown == all_ else f"{title}: {shown} of {all_:,}"


def _facts(study: CallStudy, compared: ShownComparison | None) -> Iterator[tuple[str, str]]:
    letters = [name.partition(" ")[0] for name in compared.names] if compared else [""] * len(study.groups)
    for letter, side in ((letter, side) for letter, group in zip(letters, study.groups, strict=True) for side in group):
        file = side.calls.file
        yield f"File of {letter}" if letter else "File", file.path
        if file.footer.command:
            yield "Command", " ".join(file.footer.command)
        if file.is_generated and not side.is_run:
            yield "Generated", file.footer.source.preamble
        elif file.footer.recorder:
            yield "Recorder", file.footer.recorder
        if trace := file.run.trace or file.option("trace"):
            yield "Trace", str(trace)
        if root := file.run.root:
            yield "Root", f"{root.path}{f' ({root.mount.file_system})' if root.mount.file_system else ''}"
        yield from machine_facts(file.run.machine, file.run.statistics.usage)
        if options := replay_options(file.run.options):
            yield "Options", options
        yield from (("Warning", warning) for warning in file.footer.warnings[:5])
