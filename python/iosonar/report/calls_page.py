"""The page of a trace of calls or of runs: a summary in sentences and numbers, then the diagrams."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from iosonar import units
from iosonar.diagrams.calls import CallDiagram, CallSide, CallStudy
from iosonar.diagrams.calls.parts import by_strace, short_path
from iosonar.figures.model import Severity
from iosonar.quantities.calls.access import count_patterns
from iosonar.quantities.calls.by_file import largest_files
from iosonar.quantities.calls.mismatches import outcomes_of_calls
from iosonar.quantities.calls.response import by_call
from iosonar.quantities.distribution import enough_for
from iosonar.report.calls_options import other_traces, replay_options
from iosonar.report.page import Banner, Page, Summary, Table, Tile
from iosonar.report.run_page import machine_facts
from iosonar.report.sections import page_of, times_row
from iosonar.study.judgement import judgement_of_calls

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
        "Delay is issue time minus scheduled time. Only calls that were not held back judge the replay.",
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


def calls_page(study: CallStudy, diagrams: Sequence[CallDiagram]) -> Page:
    """Builds the diagrams and the summary."""
    return page_of(study, diagrams, _header(study), SECTIONS, lambda diagram: str(diagram.group.value), _tables(study))


def _header(study: CallStudy) -> Summary:
    first = study.first
    single = study.is_single
    files = [side.calls.file for side in study.sides]
    title = first.calls.file.name if single else f"{first.calls.file.name} and its replay"
    return Summary(
        title=title,
        short=first.calls.file.name if single else "Comparison",
        lead=tuple(_lead(study)),
        banners=(
            *(Banner(Severity.WARNING, text, "Different traces:") for text in other_traces(files)),
            *_slowed(study),
            *(banner for side in study.sides for banner in _banners(side, named=not single)),
        ),
        tiles=tuple(_tiles(first)) if single else (),
        tables=() if single else (_beside(study),),
        facts=tuple(_facts(study)),
        whole="all calls",
        about="Files, machine and options",
    )


def _slowed(study: CallStudy) -> Iterator[Banner]:
    """A warning about times that strace took."""
    if slowed := by_strace(study):
        text = f"{slowed}: its results can be compared with those of the replay, its times cannot."
        yield Banner(Severity.WARNING, text, "Times of strace:")


def _lead(study: CallStudy) -> Iterator[str]:
    for side in study.sides:
        extent, files = side.extent, side.files
        calls = units.counted(extent.calls, "call")
        threads = units.counted(extent.threads, "thread")
        verb = "replayed" if side.is_run else "recorded"
        yield (
            f"{side.name}: {calls} of {threads} on {units.counted(files.files, 'file')}, {verb} over "
            f"{units.span(side.seconds)}; {units.transferred(files.bytes_read)} read, "
            f"{units.transferred(files.bytes_written)} written."
        )
    if study.left_out:
        yield (
            f"{units.counted(study.left_out, 'call')} of {study.first.name} are left out here: the replay did not make "
            "them, for example because they are outside of its window, ignored, or not on files."
        )
    # strace makes a program take longer.
    if not study.is_single and study.first.seconds > 0 and not study.first.is_run and not by_strace(study):
        for side in study.runs:
            share = side.seconds / study.first.seconds - 1
            yield f"{side.name} took {units.span(side.seconds)}: {units.change(share)} against the original."


def _banners(side: CallSide, *, named: bool) -> Iterator[Banner]:
    name = f"{side.name}: " if named else ""
    for check in judgement_of_calls(side).checks:
        if check.sentence and check.grade:
            yield Banner(Severity(check.grade), f"{name}{check.sentence}", check.head)


def _tiles(side: CallSide) -> Iterator[Tile]:
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
    yield Tile("Read", units.transferred(files.bytes_read), _speed(files.bytes_read, side.seconds))
    yield Tile("Written", units.transferred(files.bytes_written), _speed(files.bytes_written, side.seconds))
    if values.count:
        half = "half are faster" if enough_for(0.5, values.count) else "too few calls"
        yield Tile("Response time p50", units.span(values.percentile(0.5) / 1e9), half)
        more = "1 in 100 is slower" if enough_for(0.99, values.count) else "too few calls"
        yield Tile("Response time p99", units.span(values.percentile(0.99) / 1e9), more)
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


def _beside(study: CallStudy) -> Table:
    """The key numbers of all sides."""
    names = [side.name for side in study.sides]
    rows: list[tuple[str, ...]] = []

    def add(title: str, texts: Sequence[str]) -> None:
        rows.append((title, *texts))

    add("calls", [f"{side.extent.calls:,}" for side in study.sides])
    add("duration", [units.span(side.seconds) for side in study.sides])
    add("calls per second, median", [units.count(side.load(study.window_s).median) for side in study.sides])
    add("calls per second, maximum", [units.count(side.load(study.window_s).maximum) for side in study.sides])
    for share in (0.5, 0.9, 0.99):
        texts = [units.span(side.pooled_response.percentile(share) / 1e9) for side in study.sides]
        add(f"response time p{share * 100:g}", texts)
    add("time in calls", [units.span(side.pooled_response.total / 1e9) for side in study.sides])
    add("mismatches", [f"{side.extent.mismatches:,}" if side.is_run else "–" for side in study.sides])
    for share in (0.5, 0.99):
        texts = [
            units.span(side.delays.not_held_back.percentile(share) / 1e9) if side.keeps_times else "–"
            for side in study.sides
        ]
        add(f"delay p{share * 100:g}", texts)
    return Table("Side by side", ("", *names), tuple(rows))


def _tables(study: CallStudy) -> dict[str, tuple[Table, ...]]:
    if not study.is_single:
        runs = [_outcomes(side, f"Outcomes of {side.name}") for side in study.runs]
        return {"fidelity": tuple(table for table in runs if table.rows)}
    side = study.first
    found = {
        "mix": (_mix(side), _threads(side)),
        "files": (_patterns(side), _files(side)),
        "response": (_responses(side),),
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


def _responses(side: CallSide) -> Table:
    names = [each.of for each in side.mix[:LISTED_CALLS]]
    found = by_call(side.table, names) if names else {}
    shares = (0.5, 0.9, 0.99, 0.999)
    rows = tuple(times_row(name, found[name], shares) for name in names if name in found)
    return Table("Response time by call", ("call", "calls", "avg", "p50", "p90", "p99", "p99.9", "max"), rows)


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


def _facts(study: CallStudy) -> Iterator[tuple[str, str]]:
    for side in study.sides:
        file = side.calls.file
        yield "File", file.path
        if file.footer.command:
            yield "Command", " ".join(file.footer.command)
        if file.footer.recorder:
            yield "Recorder", file.footer.recorder
        if trace := file.run.trace or file.option("trace"):
            yield "Trace", str(trace)
        if root := file.run.root:
            yield "Root", f"{root.path}{f' ({root.mount.file_system})' if root.mount.file_system else ''}"
        yield from machine_facts(file.run.machine)
        if options := replay_options(file.run.options):
            yield "Options", options
        yield from (("Warning", warning) for warning in file.footer.warnings[:5])
