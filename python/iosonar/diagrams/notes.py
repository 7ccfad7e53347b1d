"""What is said beside every diagram: fidelity first, then what the run's own footer warns of."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from iosonar import units
from iosonar.figures.model import Note, NoteKind, Severity
from iosonar.quantities.fidelity import WITHIN_US, Fidelity, fidelity
from iosonar.table import Kind, SourceFile

if TYPE_CHECKING:
    from iosonar.diagrams.study import Study

FAITHFUL = 0.95
"""A run is faithful if at least this share of its free requests went out within 50 µs of their time.

So runs judge themselves; it is applied to those that don't.
"""

ROUGHLY = 0.9
"""The same within 100 µs: enough for a warning only, in runs that don't judge themselves."""

WRAP_HIGH, WRAP_LOW = 2.0, 0.5
NO_TARGET = ("simulate", "null")
"""Engines that do without a target: the size that their runs state is none."""


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
    """How many times the load's extent is the target's, where known; None if there is no target that has a size."""
    if file.run.get("engine") in NO_TARGET or any(target.get("kind") == "none" for target in file.targets):
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
    """How faithful the replay was: by the statistics in the file's footer, else by its delays. None for a load."""
    if file.kind is not Kind.REPLAY:
        return None
    stated = stated_fidelity(_statistics(file))
    if stated is not None and stated_verdict(file):
        return stated
    table = study.requests.table
    measured = study.once(("fidelity", index), lambda: fidelity(table.filter(table.source == index)))
    # Earlier versions state the shares, but not of how many requests.
    return measured if stated is None else replace(stated, requests=measured.requests)


def grade_of(found: Fidelity) -> tuple[Severity, str]:
    """The verdict on the replay itself, and in words."""
    if found.faithful or (found.faithful is None and found.within_50_us >= FAITHFUL):
        return Severity.GOOD, "faithful"
    if found.faithful is None and found.within_100_us >= ROUGHLY:
        return Severity.WARNING, "roughly faithful"
    return Severity.BAD, "NOT faithful"


def doubt_of(study: Study) -> str:
    """Why the times of a study say nothing about the device; empty if they do."""
    if any(file.run.get("fake") for file in study.requests.files):
        return "the result is fake"
    missed = any(note.kind is NoteKind.FIDELITY and note.severity is Severity.BAD for note in common_notes(study))
    return "the replay was not faithful" if missed else ""


def _fidelity(study: Study, index: int, file: SourceFile) -> list[Note]:
    found = fidelity_of(study, index, file)
    if found is None:
        return []
    if file.option("asap"):
        return [
            Note(NoteKind.FIDELITY, "As fast as possible (--asap): the load's times do not apply", Severity.NEUTRAL)
        ]
    if not found.requests and found.faithful:
        return [Note(NoteKind.FIDELITY, "Replay faithful: only the device held requests back", Severity.GOOD)]
    if not found.requests:
        return [Note(NoteKind.FIDELITY, "Replay fidelity unknown: every request was held back", Severity.NEUTRAL)]
    severity, words = grade_of(found)
    text = (
        f"Replay {words}{', no verdict on the device' if severity is Severity.BAD else ''}: "
        f"{units.percent(found.within_10_us)} within 10 µs, {decisive(found)} (p99 {units.span(found.p99_s)})"
    )
    return [Note(NoteKind.FIDELITY, text, severity)]


def decisive(found: Fidelity) -> str:
    """The number that decides whether a replay was faithful, and what it takes if it was not."""
    needed = "" if found.within_50_us >= FAITHFUL else f", {FAITHFUL * 100:g} % needed"
    return f"{units.percent(found.within_50_us)} within 50 µs{needed}"


def stated_verdict(file: SourceFile) -> dict[str, Any]:
    """The run's own verdict on its fidelity, as docs/schemas/replay-statistics.json has it; empty if it has none."""
    return _statistics(file).get("verdict") or {}


def stated_fidelity(statistics: dict[str, Any]) -> Fidelity | None:
    """What a run says about itself: its verdict, else its delay, of requests not held back if it tells them apart."""
    if verdict := statistics.get("verdict"):
        # Without any request that was its own to time, nothing of the replayer's was late.
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
    # Runs of earlier versions don't say how many were within 50 µs: their delays do.
    if not within or not delay or not all(str(us) in within for us in WITHIN_US):
        return None
    in_10, in_50, in_100 = (float(within[str(us)]) / 100 for us in WITHIN_US)
    return Fidelity(int(statistics.get("requests", 1)), in_10, in_50, in_100, _p99_s(delay))


def _p99_s(quantiles: dict[str, Any]) -> float:
    """The 99th percentile of quantiles in µs; earlier versions stated some that exceed the maximum."""
    return min(float(quantiles.get("p99", 0)), float(quantiles.get("max", math.inf))) / 1e6


def _one_fidelity(notes: list[Note]) -> list[Note]:
    """Of several runs, the worst speaks for all."""
    order = (Severity.BAD, Severity.WARNING, Severity.NEUTRAL, Severity.GOOD)
    said = sorted(
        (note for note in notes if note.kind is NoteKind.FIDELITY), key=lambda note: order.index(note.severity)
    )
    return [*said[:1], *(note for note in notes if note.kind is not NoteKind.FIDELITY)]


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
    severity = Severity.WARNING if factor >= WRAP_HIGH or factor < WRAP_LOW else Severity.NEUTRAL
    return [Note(NoteKind.WRAP, f"wrap-around factor {units.number(factor)}", severity)]


def _warnings(file: SourceFile) -> list[Note]:
    counts = file.footer.get("counts", {})
    warnings = [str(text) for text in file.run.get("warnings", [])]
    if counts.get("lost_events"):
        warnings.append(f"The recorder lost {counts['lost_events']:,} events")
    if counts.get("bad_lines"):
        warnings.append(f"Skipped {counts['bad_lines']:,} lines of the source that could not be parsed")
    return [Note(NoteKind.WARNING, text, Severity.WARNING) for text in warnings]
