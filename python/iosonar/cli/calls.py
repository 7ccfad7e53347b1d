"""What `report` and `compare` do with calls to files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from iosonar.cli.run import aligned, print_error, print_lines
from iosonar.errors import UsageError

if TYPE_CHECKING:
    from iosonar.diagrams.calls import CallOptions
    from iosonar.figures.size import Size
    from iosonar.report.compare_calls import CallsComparison, CallsSide
    from iosonar.report.output_options import OutputOptions
    from iosonar.table import SourceFile
    from iosonar.table.engine import EngineOptions


def report_calls(
    files: Sequence[SourceFile],
    spill: Path,
    engine: EngineOptions,
    options: CallOptions,
    output: OutputOptions,
    only: Sequence[str],
    blocks: SourceFile | None = None,
    *,
    lists_files: bool = True,
) -> dict[str, list[str]]:
    """The report of a trace or a run of calls, or of several side by side; with a recording of block devices.

    With `lists_files`, the names of the files that it writes are printed. Returns what it did not draw, by reason.
    """
    from iosonar.diagrams.calls import CallStudy
    from iosonar.diagrams.calls.study import MAX_SIDES
    from iosonar.report.calls import chosen, write_calls_report
    from iosonar.table import OF_CALLS, Kind, calls_of
    from iosonar.table.blocks import blocks_beside
    from iosonar.table.input_checks import refuse_copies

    if other := next((file for file in files if file.kind not in OF_CALLS), None):
        words = f"{other.kind.words}, not a trace or run of calls"
        raise UsageError(f"{other.path} is {words}: make a separate report of it")
    refuse_copies(files)
    if len([file for file in files if file.kind is Kind.CALLS]) > 1:
        raise UsageError("several traces of calls: name one trace, and runs of it")
    if len(files) > MAX_SIDES:
        raise UsageError(f"at most {MAX_SIDES} files of calls can be compared, not {len(files)}")
    if blocks is not None and [file.kind for file in files] != [Kind.CALLS]:
        raise UsageError("--blocks needs one trace of calls")
    diagrams = chosen(only)
    with ExitStack() as stack:
        # The original is the first.
        in_order = sorted(files, key=lambda file: file.kind is not Kind.CALLS)
        tables = [
            stack.enter_context(calls_of(file, spill.with_name(f"{spill.name}-{number}"), engine))
            for number, file in enumerate(in_order)
        ]
        missing: dict[str, list[str]] = {}
        suffix = "report" if len(files) == 1 else "compare"
        study = CallStudy(tables, options, blocks_beside(tables[0], blocks) if blocks else None)
        for done in write_calls_report(study, diagrams, output, suffix, [blocks] if blocks else []):
            if lists_files:
                print_lines(*done.paths)
            if not done.paths:
                missing.setdefault(done.reason, []).append(done.name)
        return missing


def print_missing(missing: Mapping[str, Sequence[str]]) -> None:
    """Prints in one line what was not drawn; of many diagrams, only how many."""
    from iosonar.units import counted

    few = 3
    parts = [
        f"{', '.join(names) if len(names) <= few else counted(len(names), 'diagram')} ({reason})"
        for reason, names in missing.items()
    ]
    if parts:
        print_error(f"not drawn: {'; '.join(parts)}")


def grouped(files: Sequence[SourceFile], sizes: Sequence[int]) -> list[list[SourceFile]]:
    """The files in groups of these sizes; a trace of calls comes first, as the original."""
    from iosonar.table import Kind

    rest = iter(files)
    groups = [[next(rest) for _ in range(size)] for size in sizes]
    return sorted(groups, key=lambda group: group[0].kind is not Kind.CALLS)


def compare_calls(
    groups: Sequence[Sequence[SourceFile]],
    spill: Path,
    engine: EngineOptions,
    options: CallOptions,
    output: OutputOptions,
    as_json: bool,
) -> list[CallsComparison]:
    """Compares groups of a trace and runs of calls: draws the first file of each, and prints the numbers of all."""
    from iosonar.diagrams.calls.study import RUN_ROLES
    from iosonar.report import compare_calls as comparing
    from iosonar.report.compare import columns_of, rows_of
    from iosonar.table import OF_CALLS, Kind
    from iosonar.table.input_checks import refuse_copies

    files = [file for group in groups for file in group]
    if other := next((file for file in files if file.kind not in OF_CALLS), None):
        raise UsageError(f"{other.path} is {other.kind.words}, not of calls: make a separate report of it")
    refuse_copies(files)
    runs = [group for group in groups if group[0].kind is not Kind.CALLS]
    if len(runs) > len(RUN_ROLES):
        raise UsageError(f"at most {len(RUN_ROLES)} sides with runs of calls can be compared, not {len(runs)}; use vs")
    firsts = [group[0] for group in groups]
    missing = report_calls(firsts, spill, engine, options, output, (), lists_files=not as_json)
    sides, against = comparing.compare_calls(groups, spill.with_name(f"{spill.name}-numbers"), engine)
    if as_json:
        print_lines(_as_json(sides, against))
        print_missing(missing)
        return against
    print_lines(*(comparing.describe_side(side) for side in sides))
    for each in against:
        print_lines(*comparing.doubts(each), "")
        table = rows_of(each.differences, each.throughput, "calls/s")
        print_lines(*aligned([columns_of(each.first.letter, each.side.letter), *table]))
    print_missing(missing)
    return against


def _as_json(sides: Sequence[CallsSide], against: Sequence[CallsComparison]) -> str:
    from iosonar.report import compare_calls as comparing

    listed = [
        {"side": side.letter, "files": [file.path for file in side.files], "calls": side.calls}
        | {"mismatches": side.mismatches}
        for side in sides
    ]
    comparisons = [
        {
            "side": each.side.letter,
            "against": each.first.letter,
            "pairing": each.pairing,
            "same_load": each.same_load,
            "left_out": each.left_out,
            "unfaithful": list(each.unfaithful),
            "fakes": list(each.fakes),
            "incomparable": each.incomparable,
            "differences": [comparing.numbers(one) for one in each.differences],
            "throughput": comparing.numbers(each.throughput) if each.throughput else None,
        }
        for each in against
    ]
    return json.dumps({"sides": listed, "comparisons": comparisons}, indent=2)


def report_scale(
    files: Sequence[SourceFile], spill: Path, engine: EngineOptions, size: Size, output: OutputOptions
) -> None:
    """The scaling curve of an experiment with several instances."""
    from iosonar.report.calls import write_scaling
    from iosonar.table.engines import start

    if len(files) > 1:
        raise UsageError(f"{files[0].path} is {files[0].kind.words}: make a report of it alone")
    running = start(spill, engine)
    try:
        table = running.read(files[0].parquet, ["instances", "what", "instance", "seconds"])
        for done in write_scaling(files[0], table, size, output):
            print_lines(*done.paths)
            if not done.paths:
                print_error(f"{done.name} not drawn: {done.reason}")
    finally:
        running.close()
