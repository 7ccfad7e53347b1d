"""The notes of every diagram: fidelity first, then warnings of the run's footer."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from iosonar import units
from iosonar.figures.model import Note, NoteKind, Severity
from iosonar.quantities.fidelity import WITHIN_US, Fidelity, fidelity
from iosonar.table import Kind, SourceFile, is_of_program_alone, is_unexplained
from iosonar.thresholds import is_unfilled

if TYPE_CHECKING:
    from iosonar.diagrams.study import Study

FAITHFUL = units.FAITHFUL
"""A run is faithful if at least this share of its requests not held back went out within 50 µs of their time.

Runs have their own verdict by the same rule; this one is for runs without a verdict.
"""

ROUGHLY = 0.9
"""The same share within 100 µs causes only a warning, for runs without a verdict of their own."""

NOT_KNOWN = (Severity.WARNING, "verdict not known")
"""The grade of a run whose result does not say whether it was faithful."""

WRAP_HIGH = 2.0
NO_TARGET = ("simulate", "null")
"""Engines without a target: the size in the footers of their runs is none."""


def common_notes(study: Study) -> tuple[Note, ...]:
    """The notes of all files of a study, the most important kinds first."""
    return study.once("notes", lambda: _common_notes(study))


def _common_notes(study: Study) -> tuple[Note, ...]:
    files = study.requests.files
    notes = [
        note
        for index, file in enumerate(files)
        for note in (*_fidelity(study, index, file), *_stamps(file), *_wrap(file), *_warnings(file))
    ]
    if len(files) > 1:
        notes = _one_fidelity(notes)
    if study.origin_ns:
        text = f"Time zero of the diagrams is {study.origin_ns // 1_000_000_000:,} s in the file"
        notes.append(Note(NoteKind.INFO, text))
    return tuple(dict.fromkeys(notes))


def wrap_factor(file: SourceFile) -> float | None:
    """The extent of the load divided by the target's size; None if it is unknown, or there is no target with a size.

    It is also None for a program without a load: it divides the target among its devices.
    """
    if (
        is_of_program_alone(file)
        or file.run.get("engine") in NO_TARGET
        or any(target.get("kind") == "none" for target in file.targets)
    ):
        return None
    stated = _statistics(file).get("wrap_factor")
    if stated is not None:
        return float(stated)
    sectors = file.run.get("target", {}).get("sectors")
    extent = file.footer.get("span", {}).get("max_end_sector")
    return extent / sectors if sectors and extent else None


def _statistics(file: SourceFile) -> dict[str, Any]:
    return file.run.get("statistics") or {}


def fidelity_of(study: Study, index: int, file: SourceFile) -> Fidelity | None:
    """The fidelity of the replay: from the statistics in the footer, else from the delays. None for a load."""
    if file.kind is not Kind.REPLAY:
        return None
    stated = stated_fidelity(_statistics(file))
    if stated is not None and stated_verdict(file):
        return stated
    table = study.requests.table
    measured = study.once(("fidelity", index), lambda: fidelity(table.filter(table.source == index)))
    if stated is None and (why := _unknown(study, index, file)):
        return replace(measured, unknown=why)
    # Footers of earlier versions have the shares, but not the number of requests.
    return measured if stated is None else replace(stated, requests=measured.requests)


def _unknown(study: Study, index: int, file: SourceFile) -> str:
    """Why the rows of a run without a verdict of its own do not show its fidelity; empty if they do."""
    if not file.complete:
        return "the result was cut short"
    table = study.requests.table
    own = table.filter((table.source == index) & is_unexplained(table))
    unexplained = study.once(("unexplained", index), lambda: own.count().to_pyarrow().as_py())
    return "the result does not say what delayed its requests, the device or the replayer" if unexplained else ""


def not_known(name: str, found: Fidelity) -> str:
    """The sentence about a run whose fidelity is unknown."""
    return f"the verdict on the replay of {name} is not known: {found.unknown}"


def grade_of(found: Fidelity) -> tuple[Severity, str]:
    """The verdict on the replay, as severity and in words."""
    if found.unknown:
        return NOT_KNOWN
    if found.faithful or (found.faithful is None and found.within_50_us >= FAITHFUL):
        return Severity.GOOD, "faithful"
    if found.faithful is None and found.within_100_us >= ROUGHLY:
        return Severity.WARNING, "roughly faithful"
    return Severity.BAD, "NOT faithful"


def doubt_of(study: Study) -> str:
    """Why the times of a study say nothing about the device; empty if they do."""
    if any(file.run.get("fake") for file in study.requests.files):
        return "the result is fake"
    is_unfaithful = any(
        note.kind is NoteKind.FIDELITY and note.severity is Severity.BAD for note in common_notes(study)
    )
    if is_unfaithful:
        return "the replay was not faithful"
    if any(_unknowns(study)):
        return "it is not known whether the replay was faithful"
    return "reads returned only zeros" if unfilled(study) else ""


def _unknowns(study: Study) -> Iterator[str]:
    """The reasons why the fidelity of some files is unknown."""
    for index, file in enumerate(study.requests.files):
        found = fidelity_of(study, index, file)
        if found is not None and found.unknown and not file.option("asap"):
            yield found.unknown


def zero_reads_of(study: Study, index: int, file: SourceFile) -> tuple[int, int] | None:
    """Reads that returned only zeros, and all reads; None if the run did not count them, or did not read at all."""
    counted = _statistics(file).get("zero_reads")
    if counted is None or file.run.get("fake"):
        return None
    table = study.requests.table
    own = table.filter((table.source == index) & (table["op"] == "read"))
    reads = study.once(("reads", index), lambda: int(own.count().to_pyarrow().as_py()))
    return (int(counted), reads) if reads else None


def unfilled(study: Study) -> tuple[str, ...]:
    """A sentence for each run of which too many reads returned only zeros."""
    found = ((file, zero_reads_of(study, index, file)) for index, file in enumerate(study.requests.files))
    return tuple(
        f"{zero:,} of {units.counted(reads, 'read')} of {file.name} returned only zeros"
        for file, counts in found
        if counts is not None
        for zero, reads in [counts]
        if is_unfilled(zero, reads)
    )


def _fidelity(study: Study, index: int, file: SourceFile) -> list[Note]:
    found = fidelity_of(study, index, file)
    if found is None:
        return []
    if file.run.get("fake"):
        text = "No verdict: the result is fake"
        if found.requests and not file.option("asap"):
            text = f"{text}. The replayer itself: {decisive(found)}"
        return [Note(NoteKind.FIDELITY, text, Severity.NEUTRAL)]
    if file.option("asap"):
        return [
            Note(NoteKind.FIDELITY, "As fast as possible (--asap): the load's times do not apply", Severity.NEUTRAL)
        ]
    if found.unknown:
        text = f"Replay verdict not known, no verdict on the device: {found.unknown}"
        return [Note(NoteKind.FIDELITY, text, Severity.WARNING)]
    if not found.requests and found.faithful:
        return [Note(NoteKind.FIDELITY, "Replay faithful: only the device held requests back", Severity.GOOD)]
    if not found.requests:
        return [Note(NoteKind.FIDELITY, "Replay fidelity unknown: every request was held back", Severity.NEUTRAL)]
    severity, words = grade_of(found)
    near = "" if math.isnan(found.p99_s) else f"; delay p99 {units.span(found.p99_s)}"
    text = (
        f"Replay {words}{', no verdict on the device' if severity is Severity.BAD else ''}: "
        f"{units.percent(found.within_10_us)} within 10 µs, {decisive(found)}{near}"
    )
    return [Note(NoteKind.FIDELITY, text, severity)]


def decisive(found: Fidelity) -> str:
    """The share that decides whether a replay was faithful, and the required share if it was not."""
    needed = "" if found.within_50_us >= FAITHFUL else f", {FAITHFUL * 100:g} % needed"
    return f"{units.percent(found.within_50_us)} within 50 µs{needed}"


def is_by_strace(file: SourceFile) -> bool:
    """Whether strace took the times of a trace of calls, or of the trace of a run: it slows each call down."""
    source = file.footer.get("source")
    text = isinstance(source, dict) and source.get("format") == "strace"
    return text or file.footer.get("recorder") == "strace"


def stated_verdict(file: SourceFile) -> dict[str, Any]:
    """The run's own verdict on its fidelity, see docs/schemas/replay-statistics.json; empty if it has none."""
    return _statistics(file).get("verdict") or {}


def lost_changes(file: SourceFile) -> str:
    """Calls of the trace that change files and that the run did not repeat, in words; empty if there are none."""
    lost = _statistics(file).get("changes_not_replayed") or {}
    named = ", ".join(f"{name} {units.count(number)}" for name, number in sorted(lost.items()))
    calls = sum(lost.values())
    return f"{units.counted(calls, 'call')} that {'changes' if calls == 1 else 'change'} files: {named}" if lost else ""


def stated_fidelity(statistics: dict[str, Any]) -> Fidelity | None:
    """The fidelity in a run's footer: its verdict, else its delays, if possible of requests not held back."""
    if verdict := statistics.get("verdict"):
        # Without a request that was not held back, the replayer delayed none.
        within, delay = (verdict["own"].get(name) or {} for name in ("within_pct", "delay_us"))
        in_10, in_50, in_100 = (float(within.get(str(us), 100)) / 100 for us in WITHIN_US)
        return Fidelity(
            int(verdict["own"]["requests"]),
            in_10,
            in_50,
            in_100,
            _p99_s(delay),
            bool(verdict["faithful"]),
        )
    within = statistics.get("within_not_held_back_pct") or statistics.get("within_pct")
    delay = statistics.get("delay_not_held_back_us") or statistics.get("delay_us")
    # Runs of earlier versions lack the share within 50 µs; their delays show it.
    if not within or not delay or not all(str(us) in within for us in WITHIN_US):
        return None
    in_10, in_50, in_100 = (float(within[str(us)]) / 100 for us in WITHIN_US)
    return Fidelity(int(statistics.get("requests", 1)), in_10, in_50, in_100, _p99_s(delay))


def _p99_s(quantiles: dict[str, Any]) -> float:
    """The 99th percentile from quantiles in µs, NaN if unknown; earlier versions wrote some that exceed the maximum."""
    p99 = quantiles.get("p99")
    return math.nan if p99 is None else min(float(p99), float(quantiles.get("max", math.inf))) / 1e6


def _one_fidelity(notes: list[Note]) -> list[Note]:
    """Keeps only the worst fidelity of several runs."""
    order = (Severity.BAD, Severity.WARNING, Severity.NEUTRAL, Severity.GOOD)
    fidelities = sorted(
        (note for note in notes if note.kind is NoteKind.FIDELITY), key=lambda note: order.index(note.severity)
    )
    return [*fidelities[:1], *(note for note in notes if note.kind is not NoteKind.FIDELITY)]


def _stamps(file: SourceFile) -> list[Note]:
    stamps = []
    if file.run.get("fake"):
        stamps.append(Note(NoteKind.STAMP, "FAKE RESULT", Severity.BAD))
        stamps.append(
            Note(NoteKind.WARNING, f"Fake: {str(file.run['fake']).removeprefix('FAKE RESULT: ')}", Severity.BAD)
        )
    if not file.complete:
        stamps.append(Note(NoteKind.STAMP, "CUT SHORT", Severity.WARNING))
    return stamps


def _wrap(file: SourceFile) -> list[Note]:
    factor = wrap_factor(file)
    if factor is None:
        return []
    severity = Severity.WARNING if factor >= WRAP_HIGH else Severity.NEUTRAL
    return [Note(NoteKind.WRAP, f"wrap-around factor {units.number(factor)}", severity)]


def _warnings(file: SourceFile) -> list[Note]:
    counts = file.footer.get("counts", {})
    warnings = [str(text) for text in file.run.get("warnings", [])]
    if counts.get("lost_events"):
        warnings.append(f"The recorder lost {counts['lost_events']:,} events")
    if counts.get("bad_lines"):
        warnings.append(f"Skipped {counts['bad_lines']:,} lines of the source that could not be parsed")
    return [Note(NoteKind.WARNING, text, Severity.WARNING) for text in warnings]
