"""Options that report and compare share, those of gates also with campaign, and how gates end."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from iosonar.cli.run import print_error
from iosonar.text import shown

if TYPE_CHECKING:
    from iosonar.report.gate import Judged

FailIf = Annotated[
    list[str] | None,
    typer.Option(
        "--fail-if",
        "--fail-on",
        metavar="CONDITION",
        help="Exit with 3 if this holds: 'p99 > 10ms', 'verdict = bad'. May be repeated.",
    ),
]


def _own_file(path: Path | None) -> Path | None:
    """Refuses a file that iosonar did not write, before the work begins."""
    from iosonar.report.gate_files import may_be_replaced

    if path is not None and not may_be_replaced(path):
        raise typer.BadParameter(f"{shown(path)} exists, and iosonar did not write it; name another file, or remove it")
    return path


Junit = Annotated[
    Path | None, typer.Option("--junit", metavar="FILE", callback=_own_file, help="Write JUnit XML, for CI.")
]
SkipUndecided = Annotated[
    bool,
    typer.Option("--skip-undecided", help="Mark undecided conditions in the --junit file as skipped, not as errors."),
]
Markdown = Annotated[
    Path | None,
    typer.Option("--markdown", metavar="FILE", callback=_own_file, help="Write a summary in Markdown, for CI."),
]

Percentiles = Annotated[
    str,
    typer.Option("--percentiles", metavar="P,…", help="The percentiles to show, such as 50,95,99.9; at most five."),
]


def end_by(judged: Sequence[Judged]) -> None:
    """Prints the outcome of each condition; ends the program with their exit code if it is not 0."""
    from iosonar.report.gate import exit_code

    for each in judged:
        print_error(each.sentence)
    if code := exit_code(each.outcome for each in judged):
        sys.exit(code)
