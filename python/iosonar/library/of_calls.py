"""What the library does with traces of calls to files, and their runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from iosonar.diagrams.calls import CATALOGUE
from iosonar.errors import UsageError, UserError
from iosonar.findings.diagnosis import Diagnosis
from iosonar.findings.registry import diagnose_calls
from iosonar.findings.thresholds import Limits
from iosonar.library.call_windows import in_window, window_of
from iosonar.library.family import REFUSED, Family, OpenOptions, Side
from iosonar.report.calls_page import calls_page
from iosonar.report.compare_calls import ComparisonOfCalls, compare_calls
from iosonar.report.gate_subjects import subject_of_calls
from iosonar.study.base import Options
from iosonar.study.calls import MAX_SIDES, CallStudy
from iosonar.study.of_calls import judgement_of_calls, summary_of_calls
from iosonar.table import Calls, SourceFile, calls_of
from iosonar.table.blocks import blocks_beside
from iosonar.table.engine import EngineOptions
from iosonar.table.files import refuse_copies

if TYPE_CHECKING:
    import ibis.expr.types as ir


def _check(files: Sequence[SourceFile], opening: OpenOptions) -> None:
    refuse_copies(files)
    if opening.blocks is not None and (len(files) > 1 or files[0].kind.is_run):
        raise UsageError("--blocks needs one trace of calls")


def _study(files: Sequence[SourceFile], opening: OpenOptions, stack: ExitStack) -> CallStudy:
    """The original, if there is one, and its runs, side by side. Raises UsageError if there are too many."""
    if len([file for file in files if not file.kind.is_run]) > 1:
        raise UsageError("several traces of calls: name one trace, and runs of it")
    if len(files) > MAX_SIDES:
        raise UsageError(f"at most {MAX_SIDES} files of calls can be compared, not {len(files)}")
    # The original is the first.
    in_order, spill = sorted(files, key=lambda file: file.kind.is_run), opening.spill
    tables = [
        stack.enter_context(calls_of(file, spill.with_name(f"{spill.name}-{number}"), opening.resources))
        for number, file in enumerate(in_order)
    ]
    blocks = blocks_beside(tables[0], opening.blocks) if opening.blocks else None
    tables = in_window(tables, opening.options)
    return CallStudy(tables, opening.options, blocks.within(tables[0].window) if blocks else None)


def _table(study: CallStudy) -> ir.Table:
    if study.is_single:
        return study.first.calls.table
    raise UserError("several files of calls have no common table: open them one by one")


def _compare(sides: Sequence[Side], options: Options, resources: EngineOptions, stack: ExitStack) -> ComparisonOfCalls:
    groups = [side.files for side in sides]

    def within(tables: Sequence[Sequence[Calls]]) -> list[list[Calls]]:
        found = iter(in_window([calls for group in tables for calls in group], options))
        return [[next(found) for _ in group] for group in tables]

    return compare_calls(groups, sides[0].spill, resources, stack, options.percentiles, within)


def _diagnose(study: CallStudy, overrides: Mapping[str, Limits]) -> Diagnosis:
    if not study.is_single:
        raise UsageError("several files of calls: diagnose them one by one")
    return diagnose_calls(study, overrides)


FAMILY = Family[CallStudy](
    noun="calls",
    title="calls to files",
    study=_study,
    table=_table,
    diagrams=CATALOGUE,
    page=calls_page,
    check=_check,
    summary=lambda study: summary_of_calls(study.first),
    judgement=lambda study: judgement_of_calls(study.sides[-1]),
    subject=lambda study: subject_of_calls(study.sides[-1]),
    diagnose=_diagnose,
    refused=tuple(name for name in REFUSED if name != "fail-if"),
    compare=_compare,
    window_of=window_of,
)
