"""The notes of every diagram: fidelity first, then warnings of the run's footer."""

from __future__ import annotations

import math

from iosonar import units
from iosonar.figures.model import Note, NoteKind, Severity
from iosonar.study.base import cached
from iosonar.study.grades import Grade
from iosonar.study.requests import Study
from iosonar.study.runs import RunJudgement, is_extreme, runs_of, wrap_factor
from iosonar.table import SourceFile


@cached
def common_notes(study: Study) -> tuple[Note, ...]:
    """The notes of all files of a study, the most important kinds first."""
    runs = runs_of(study)
    notes = [note for run in runs for note in (*_fidelity(run), *stamps(run.file), *_wrap(run.file), *_warnings(run))]
    if len(runs) > 1:
        notes = _one_fidelity(notes)
    if study.origin_ns:
        text = f"Time zero of the diagrams is {study.origin_ns // 1_000_000_000:,} s in the file"
        notes.append(Note(NoteKind.INFO, text))
    return tuple(dict.fromkeys(notes))


def _fidelity(run: RunJudgement) -> list[Note]:
    found = run.fidelity
    if found is None:
        return []
    if run.file.fake:
        text = "No verdict: the result is fake"
        if found.requests and run.keeps_times:
            text = f"{text}. The replayer itself: {run.decisive}"
        return [Note(NoteKind.FIDELITY, text)]
    if not run.keeps_times:
        return [Note(NoteKind.FIDELITY, "As fast as possible (--asap): the load's times do not apply")]
    if run.unknown:
        text = f"Replay verdict not known, no verdict on the device: {run.unknown}"
        return [Note(NoteKind.FIDELITY, text, Severity.WARNING)]
    if not found.requests and found.faithful:
        when = " in this window" if run.is_part else ""
        text = f"Replay faithful{when}: only the device held requests back"
        return [Note(NoteKind.FIDELITY, text, Severity.GOOD)]
    if run.file.footer.counts.requests == 0:
        # The check of completeness says so.
        return []
    if run.grade is None:
        return [Note(NoteKind.FIDELITY, "Replay fidelity unknown: every request was held back")]
    near = "" if math.isnan(found.p99_s) else f", 99 % within {units.span(found.p99_s)}"
    when = " in this window" if run.is_part else ""
    text = (
        f"Replay {run.words}{when}{', no verdict on the device' if run.grade is Grade.BAD else ''}: "
        f"{units.percent(found.within_10_us)} within 10 µs, {run.decisive}{near}"
    )
    return [Note(NoteKind.FIDELITY, text, Severity(run.grade))]


def _one_fidelity(notes: list[Note]) -> list[Note]:
    """Keeps only the worst fidelity of several runs."""
    order = (Severity.BAD, Severity.WARNING, Severity.NEUTRAL, Severity.GOOD)
    fidelities = sorted(
        (note for note in notes if note.kind is NoteKind.FIDELITY), key=lambda note: order.index(note.severity)
    )
    return [*fidelities[:1], *(note for note in notes if note.kind is not NoteKind.FIDELITY)]


def stamps(file: SourceFile) -> list[Note]:
    """What must not be overlooked: a result that is fake or damaged."""
    stamps = []
    if file.fake:
        stamps.append(Note(NoteKind.STAMP, "FAKE RESULT", Severity.BAD))
        stamps.append(Note(NoteKind.WARNING, f"Fake: {file.fake}", Severity.BAD))
    if file.unreadable_rows or not file.complete:
        stamps.append(Note(NoteKind.STAMP, "DAMAGED" if file.unreadable_rows else "CUT SHORT", Severity.WARNING))
    return stamps


def _wrap(file: SourceFile) -> list[Note]:
    factor = wrap_factor(file)
    if factor is None:
        return []
    severity = Severity.WARNING if is_extreme(factor) else Severity.NEUTRAL
    if factor <= 1:
        return [Note(NoteKind.WRAP, f"load spans {units.percent(factor)} of the target", severity)]
    return [Note(NoteKind.WRAP, f"wrap-around factor {units.number(factor)}", severity)]


def _warnings(run: RunJudgement) -> list[Note]:
    file = run.file
    counts, warnings = file.footer.counts, list(file.run.warnings)
    if counts.lost_events:
        warnings.append(f"The recorder lost {counts.lost_events:,} events")
    if (bad := counts.bad_lines - file.unreadable_rows) > 0:
        warnings.append(f"Skipped {bad:,} lines of the source that could not be parsed")
    if file.unreadable_rows:
        warnings.append(f"Damaged: {units.counted(file.unreadable_rows, 'row')} unreadable, left out")
    of = "Of the whole run: " if run.is_part else ""
    return [Note(NoteKind.WARNING, f"{of}{text}", Severity.WARNING) for text in warnings]
