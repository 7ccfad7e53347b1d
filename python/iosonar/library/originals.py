"""Finds the original of a run: the load that the user names, else the one that the run names."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from iosonar.errors import UsageError, UserError
from iosonar.library.family import OpenOptions
from iosonar.study.original import Original, original_of
from iosonar.study.requests import LATENCY, Study
from iosonar.table import SourceFile, open_files
from iosonar.table.original import load_of, refuse_without_latencies

NONE = "none"
"""In place of a path: no original, also if the run names one."""


def find_original(study: Study, opening: OpenOptions, stack: ExitStack) -> None:
    """Sets how the study finds its original. Raises UserError if the file that the user names is none."""
    named = opening.original
    if named is None:
        study.find_original = lambda run: _named_by(run, stack)
    elif str(named) != NONE:
        if not study.requests.is_run:
            raise UsageError("--original needs a run")
        study.find_original = partial(_always, _original_of(study, _opened(named, stack)))


def original_among(sides: Sequence[Sequence[SourceFile]]) -> SourceFile | None:
    """The side of a comparison that is an original; None if all are runs. Raises UserError for other loads."""
    loads = [files for files in sides if any(not file.kind.is_run for file in files)]
    for files in loads:
        for file in files:
            if not file.kind.is_run:
                refuse_without_latencies(file)
    if not loads:
        return None
    first = loads[0][0]
    if len(loads) > 1 or len(loads[0]) > 1 or len(sides) < 2:
        raise UserError(
            f"{first.path} is an original, a side of its own: compare it with runs of it, and other loads separately"
        )
    return first


def beside_original(runs: Sequence[Study], file: SourceFile) -> list[Study]:
    """The original, with the requests that the first side issued, and the runs, each with its own original."""
    found = [_original_of(run, file) for run in runs]
    for run, original in zip(runs, found, strict=True):
        run.find_original = partial(_always, original)
    return [found[0].study, *runs]


def _named_by(run: Study, stack: ExitStack) -> Original | None:
    """The load that the runs name, if it is a table with latencies that has their requests row by row."""
    loads = {load_of(file) for file in run.files if file.kind.is_run}
    path = loads.pop() if len(loads) == 1 else None
    if path is None:
        return None
    try:
        found = _original_of(run, _opened(path, stack))
    except UserError:
        # It has no latencies, or is not the load any more.
        return None
    return found if found.is_by_row else None


def _always(found: Original, run: Study) -> Original:
    return found


def _original_of(run: Study, file: SourceFile) -> Original:
    """The original of a run. Raises UserError if the file is none."""
    refuse_without_latencies(file)
    found = original_of(run, file)
    if not found.study.pooled(LATENCY).count:
        raise UserError(f"{file.path} has no latencies of requests that the run issued")
    return found


def _opened(path: Path, stack: ExitStack) -> SourceFile:
    (file,), _ = stack.enter_context(open_files([path]))
    return file
