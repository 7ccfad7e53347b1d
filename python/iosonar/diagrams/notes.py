"""What is said beside every diagram: fidelity first, then what the run's own footer warns of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from iosonar import units
from iosonar.figures.model import Mood, Note, NoteKind
from iosonar.table import Kind, SourceFile

if TYPE_CHECKING:
    from iosonar.diagrams.study import Study

FAITHFUL_PCT = 99.0
"""A run is called faithful if at least this share of its free requests went out within 100 µs of their time."""

ROUGHLY_PCT = 90.0
WRAP_HIGH, WRAP_LOW = 2.0, 0.5


def common_notes(study: Study) -> tuple[Note, ...]:
    """The notes of all files of a study, the most important kinds first."""
    files = study.requests.files
    notes = [note for file in files for note in (*_fidelity(file), *_stamps(file), *_wrap(file), *_warnings(file))]
    if len(files) > 1:
        notes = _one_fidelity(notes)
    return tuple(dict.fromkeys(notes))


def wrap_factor(file: SourceFile) -> float | None:
    """How many times the load's extent is the target's, where known."""
    stated = _statistics(file).get("wrap_factor")
    if stated is not None:
        return float(stated)
    sectors = file.run.get("target", {}).get("sectors")
    extent = file.footer.get("span", {}).get("max_end_sector")
    return extent / sectors if sectors and extent else None


def _statistics(file: SourceFile) -> dict[str, Any]:
    return file.run.get("statistics") or {}


def _fidelity(file: SourceFile) -> list[Note]:
    """The replay's own fidelity, of the statistics that it wrote into its footer."""
    if file.kind is not Kind.REPLAY:
        return []
    statistics = _statistics(file)
    within = statistics.get("within_pct_free") or statistics.get("within_pct")
    error = statistics.get("issue_error_us_free") or statistics.get("issue_error_us")
    if not within or not error:
        return [
            Note(NoteKind.FIDELITY, "Replay fidelity: unknown, the file has no statistics of its own", Mood.NEUTRAL)
        ]
    share = float(within["100"])
    grade, mood = (
        ("faithful", Mood.GOOD)
        if share >= FAITHFUL_PCT
        else ("roughly faithful", Mood.WARNING)
        if share >= ROUGHLY_PCT
        else ("NOT faithful, so no verdict on the device", Mood.BAD)
    )
    return [
        Note(
            NoteKind.FIDELITY,
            f"Replay {grade}: {units.percent(float(within['10']) / 100)} within 10 µs of their time, "
            f"{units.percent(share / 100)} within 100 µs (p99 {units.seconds(float(error['p99']) / 1e6)})",
            mood,
        )
    ]


def _one_fidelity(notes: list[Note]) -> list[Note]:
    """Of several runs, the worst speaks for all."""
    order = (Mood.BAD, Mood.WARNING, Mood.NEUTRAL, Mood.GOOD)
    said = sorted((note for note in notes if note.kind is NoteKind.FIDELITY), key=lambda note: order.index(note.mood))
    return [*said[:1], *(note for note in notes if note.kind is not NoteKind.FIDELITY)]


def _stamps(file: SourceFile) -> list[Note]:
    stamps = []
    if file.run.get("fake"):
        stamps.append(Note(NoteKind.STAMP, "FAKE RESULT", Mood.BAD))
        stamps.append(Note(NoteKind.WARNING, f"Fake: {file.run['fake']}", Mood.BAD))
    if not file.complete:
        stamps.append(Note(NoteKind.STAMP, "CUT SHORT", Mood.WARNING))
    return stamps


def _wrap(file: SourceFile) -> list[Note]:
    factor = wrap_factor(file)
    if factor is None:
        return []
    mood = Mood.WARNING if factor >= WRAP_HIGH or factor < WRAP_LOW else Mood.NEUTRAL
    return [Note(NoteKind.WRAP, f"wrap-around factor {units.number(factor)}", mood)]


def _warnings(file: SourceFile) -> list[Note]:
    counts = file.footer.get("counts", {})
    warnings = [str(text) for text in file.run.get("warnings", [])]
    if counts.get("lost_events"):
        warnings.append(f"The recorder lost {counts['lost_events']:,} events")
    if counts.get("bad_lines"):
        warnings.append(f"{counts['bad_lines']:,} lines of the source could not be understood")
    return [Note(NoteKind.WARNING, text, Mood.WARNING) for text in warnings]
