"""The part of a study of requests that is in a window of time, also without the warm-up of runs.

The end of a warm-up is that of `study/steady.py`, by MSER.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace

from iosonar import units
from iosonar.errors import UsageError, UserError
from iosonar.library.family import OpenOptions
from iosonar.library.warm_up import after_warm_up
from iosonar.study.base import Options
from iosonar.study.requests import LATENCY, Study
from iosonar.study.window import due_words, window_words
from iosonar.table import Requests, SourceFile, Window, requests_of


def in_window(requests: Requests, options: Options) -> Study:
    """The study of the requests in the window of the options. Raises UserError if there is none."""
    study = part_of(Study(requests, options), options.window)
    return part_of(study, without_warm_up([study], options.window)) if options.skip_warm_up else study


def part_of(study: Study, window: Window | None, origin_ns: int | None = None) -> Study:
    """The part of a study in a window, which replaces the study's own. Raises UserError if there is no request."""
    if window is None:
        return study
    found = Study(study.requests.within(window), study.options, origin_ns)
    if found.is_part and not found.span.requests:
        whole = Study(replace(study.requests, table=study.requests.whole_table, window=None), study.options, 0).span
        first, last = (units.span((at or 0) / 1e9) for at in (whole.first_scheduled_ns, whole.last_scheduled_ns))
        what = due_words(study.files)
        raise UserError(
            f"no request of {study.files[0].path} is {what} {window_words(window)}: all are {what} from {first} to "
            f"{last}"
        )
    return found


def window_of(files: Sequence[SourceFile], opening: OpenOptions, stack: ExitStack) -> Window:
    """The window of the options, without the longest warm-up of any of these runs."""
    options, studies = opening.options, []
    for number, file in enumerate(file for file in files if file.kind.is_run):
        own = opening.spill.with_name(f"{opening.spill.name}-{number}")
        requests = stack.enter_context(requests_of((file,), own, opening.resources))
        studies.append(part_of(Study(requests, options, origin_ns=0), options.window, origin_ns=0))
    if not studies:
        raise UsageError("--skip-warm-up needs a run")
    return without_warm_up(studies, options.window)


def without_warm_up(studies: Sequence[Study], window: Window | None) -> Window:
    """The window from the end of the longest warm-up of these studies, each of which is of `window`.

    It leaves nothing out if the end of any of these warm-ups is unknown.
    """
    if any(not study.requests.is_run for study in studies):
        raise UsageError("--skip-warm-up needs runs: a load has no warm-up; use --from")
    named = [(study.files[0].name, study if study.distribution(LATENCY) else None) for study in studies]
    return after_warm_up(named, window, studies[0].origin_ns, "request")
