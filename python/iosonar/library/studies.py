"""Which files can be studied together, and the study of them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from iosonar.diagrams import Options, Study
from iosonar.diagrams.calls import CallStudy
from iosonar.errors import UsageError
from iosonar.library.windows import in_window, part_of, without_warm_up
from iosonar.study.base import BaseStudy
from iosonar.study.calls import MAX_SIDES
from iosonar.study.scaling import ScaleStudy
from iosonar.table import OF_CALLS, OF_REQUESTS, Kind, SourceFile, Window, calls_of, only_device, requests_of
from iosonar.table.blocks import blocks_beside
from iosonar.table.engine import EngineOptions
from iosonar.table.engines import start
from iosonar.table.input_checks import refuse_copies, refuse_mixture

MAX_WINDOWS = 100_000
"""More windows could not be distinguished, and would make the page too large."""


def check_files(files: Sequence[SourceFile], options: Options, blocks: SourceFile | None) -> None:
    """Refuses files that cannot be studied together. Raises UsageError, or UserError for copies."""
    kinds = {file.kind for file in files}
    if (options.window or options.skip_warm_up) and not kinds <= set(OF_REQUESTS):
        raise UsageError("--from, --to and --skip-warm-up are for requests, not for calls to files")
    if Kind.SCALE in kinds:
        if len(files) > 1:
            raise UsageError(f"{files[0].path} is {files[0].kind.words}: make a report of it alone")
        return
    if kinds.isdisjoint(OF_CALLS):
        if blocks or options.graphs:
            raise UsageError("--blocks and --graph need a trace of calls")
        refuse_mixture(files)
        refuse_copies(files)
        return
    if other := next((file for file in files if file.kind not in OF_CALLS), None):
        words = f"{other.kind.words}, not a trace or run of calls"
        raise UsageError(f"{other.path} is {words}: make a separate report of it")
    refuse_copies(files)
    if blocks is not None and [file.kind for file in files] != [Kind.CALLS]:
        raise UsageError("--blocks needs one trace of calls")


def study_of(
    files: Sequence[SourceFile],
    spill: Path,
    options: Options,
    resources: EngineOptions,
    blocks: SourceFile | None,
    stack: ExitStack,
) -> BaseStudy:
    """The study of files that `check_files` accepts, open until the stack unwinds."""
    if files[0].kind is Kind.SCALE:
        engine = start(spill, resources)
        stack.callback(engine.close)
        table = engine.read(files[0].parquet, ["instances", "what", "instance", "seconds"])
        return ScaleStudy(table, files[0], options)
    if files[0].kind in OF_CALLS:
        if len([file for file in files if file.kind is Kind.CALLS]) > 1:
            raise UsageError("several traces of calls: name one trace, and runs of it")
        if len(files) > MAX_SIDES:
            raise UsageError(f"at most {MAX_SIDES} files of calls can be compared, not {len(files)}")
        # The original is the first.
        in_order = sorted(files, key=lambda file: file.kind is not Kind.CALLS)
        tables = [
            stack.enter_context(calls_of(file, spill.with_name(f"{spill.name}-{number}"), resources))
            for number, file in enumerate(in_order)
        ]
        return CallStudy(tables, options, blocks_beside(tables[0], blocks) if blocks else None)
    requests = stack.enter_context(requests_of(tuple(files), spill, resources))
    study = in_window(only_device(requests, options.device) if options.device else requests, options)
    _check_window(study)
    return study


def window_of(
    files: Sequence[SourceFile], spill: Path, options: Options, resources: EngineOptions, stack: ExitStack
) -> Window:
    """The window of the options, without the longest warm-up of any of these runs."""
    studies = []
    for number, file in enumerate(file for file in files if file.kind is Kind.REPLAY):
        own = spill.with_name(f"{spill.name}-{number}")
        requests = stack.enter_context(requests_of((file,), own, resources))
        studies.append(part_of(Study(requests, options, origin_ns=0), options.window, origin_ns=0))
    if not studies:
        raise UsageError("--skip-warm-up needs a run")
    return without_warm_up(studies, options.window)


def _check_window(study: Study) -> None:
    window = study.options.window_s
    if window is None:
        return
    length_s = study.last_s - study.first_s
    if window < 1e-9:
        raise UsageError(f"--window {window:g} is too short: the minimum is 1 ns")
    if length_s / window > MAX_WINDOWS:
        least = f"{length_s / MAX_WINDOWS:.2g}"
        raise UsageError(
            f"--window {window:g} is too short: at most {MAX_WINDOWS:,} windows fit, so use at least {least} s"
        )
