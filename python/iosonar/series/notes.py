"""Notes on the figures of a series: fidelity, and results that say nothing about a device."""

from __future__ import annotations

import math
from collections.abc import Sequence

from iosonar import units
from iosonar.figures.model import Note, NoteKind, Severity
from iosonar.series.result import Result
from iosonar.thresholds import MIN_BEYOND


def fidelity_notes(results: Sequence[Result]) -> tuple[Note, ...]:
    """How many points were not faithful, if any."""
    wrong = sum(not each.faithful for each in results)
    if not wrong:
        return ()
    text = f"{units.counted(wrong, 'point')} of {len(results)} not faithful: times show the replayer, not the device"
    return (Note(NoteKind.FIDELITY, text, Severity.BAD),)


def unfilled_notes(results: Sequence[Result]) -> tuple[Note, ...]:
    """How many points read a target that was never filled, if any."""
    zeros = sum(each.unfilled for each in results)
    if not zeros:
        return ()
    text = (
        f"{units.counted(zeros, 'point')} of {len(results)} read a target that was never filled: reads returned only "
        "zeros, faster than data; fill it first (iosonar device wipe)"
    )
    return (Note(NoteKind.WARNING, text, Severity.BAD),)


def too_few_notes(results: Sequence[Result]) -> tuple[Note, ...]:
    """How many points have too few requests for a 99th percentile, if any."""
    few = sum(math.isnan(each.latency_p99_s) for each in results)
    if not few:
        return ()
    text = f"No p99 at {few} of {units.counted(len(results), 'point')}: it needs {round(100 * MIN_BEYOND):,} requests"
    return (Note(NoteKind.INFO, text),)


def fake_notes(results: Sequence[Result]) -> tuple[Note, ...]:
    """The stamp of simulated and other fake results."""
    fakes = fakes_of(results)
    if not fakes:
        return ()
    return (
        Note(NoteKind.STAMP, "FAKE RESULT", Severity.BAD),
        Note(NoteKind.WARNING, f"Fake: {'; '.join(fakes[:2])}", Severity.BAD),
    )


def fakes_of(results: Sequence[Result]) -> list[str]:
    """Why results are fake, each reason once."""
    return list(dict.fromkeys(each.fake for each in results if each.fake))
