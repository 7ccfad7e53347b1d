"""`iosonar compare`: differences between runs, and whether they are significant."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from iosonar.cli.gate_options import FailIf, Junit, Markdown, Percentiles, SkipUndecided, end_by
from iosonar.cli.parser import Command
from iosonar.cli.run import (
    guarded,
    print_lines,
    print_not_drawn_in_one_line,
    print_skipped_rows,
    start,
)
from iosonar.cli.times import From, SkipWarmUp, To
from iosonar.errors import UsageError
from iosonar.figures.palette import Theme
from iosonar.text import aligned

if TYPE_CHECKING:
    from iosonar.report.gate import Condition
    from iosonar.report.output_options import OutputOptions

VERSUS = "vs"
EXAMPLES = """
\b
Examples:
  iosonar compare old.replay.parquet new.replay.parquet
      one run against another: numbers without a claim
  iosonar compare old-*.parquet vs new-*.parquet
      three or more runs per side: differences and their confidence
  iosonar compare a*.parquet vs b*.parquet vs c*.parquet
      b and c against a
  iosonar compare old-*.parquet vs new-*.parquet --fail-if 'p99 > +10%'
      for CI
  iosonar compare old-*.parquet vs new-*.parquet --skip-warm-up --percentiles 50,95,99.9
  iosonar compare production.load.parquet first.replay.parquet
      a load with latencies is the original of its replays
  iosonar compare tar.calls.parquet tar.calls-run.parquet
      calls to files: the original and its replays side by side
  iosonar compare old-*.calls-run.parquet vs new-*.calls-run.parquet --fail-if 'p99 > +10%' --json
      three or more replays of calls per side

Without vs, each file is a side. A difference is claimed only with at least three runs per side.

A signed percentage, as in 'p99 > +10%', is a limit of the change: the condition holds if the whole 95 % interval is
beyond the limit, and is undecided if the limit is in the interval. Its outcome is printed to stderr, with the number of
runs that would decide it. Changes are of percentiles, mean and throughput. Other limits ('p99 > 10ms', 'errors > 0')
are checked on every side but the first, with the metrics of `iosonar report`.

Exit codes: 0 done, 1 failed, 2 the command line was wrong, 3 a condition of --fail-if holds, 4 no condition holds, but
one is undecided: the limit is in the interval, too few runs or requests, failed requests, a replay that was not
faithful or may not have been, or, for throughput, different loads.
"""

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command(cls=Command, epilog=EXAMPLES)
def compare(
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="A... [vs B...]...",
            help="Runs, also s3://BUCKET/KEY, and their original; `vs` starts the next side.",
        ),
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Output directory; created if missing.")] = Path(),
    fail_if: FailIf = None,
    junit: Junit = None,
    skip_undecided: SkipUndecided = False,
    markdown: Markdown = None,
    from_: From = None,
    to: To = None,
    skip_warm_up: SkipWarmUp = False,
    percentiles: Percentiles = "",
    json_: Annotated[bool, typer.Option("--json", help="Print the numbers as JSON.")] = False,
    theme: Annotated[Theme | None, typer.Option(help="Light or dark background; default: the browser's.")] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a page of other runs that has its name.")
    ] = False,
    memory: Annotated[
        str,
        typer.Option(
            metavar="SIZE", help="Memory limit for each side: 2G, or bytes; what exceeds it spills to TMPDIR."
        ),
    ] = "2GiB",
) -> None:
    """Compare runs, with confidence intervals and overlaid diagrams."""
    from iosonar.report.gate import Condition, GateScope
    from iosonar.report.gate_files import refuse_unwritable
    from iosonar.report.output_options import OutputOptions

    def work() -> None:
        refuse_unwritable(junit, markdown)
        conditions = [Condition.parse(text, GateScope.SIDES) for text in fail_if or []]
        compare_groups(
            sides_of(runs),
            conditions,
            OutputOptions(out, theme=theme, overwrite=overwrite),
            json_=json_,
            gate_files=(junit, markdown),
            skip_undecided=skip_undecided,
            window=(from_, to, skip_warm_up),
            percentiles=percentiles,
            memory=memory,
        )

    guarded("compare", work)


def compare_groups(
    groups: Sequence[Sequence[Path]],
    conditions: Sequence[Condition],
    options: OutputOptions,
    *,
    json_: bool,
    gate_files: tuple[Path | None, Path | None],
    skip_undecided: bool = False,
    window: tuple[float | None, float | None, bool] = (None, None, False),
    percentiles: str = "",
    memory: str = "2GiB",
) -> None:
    """Compares sides, prints what is found and writes the page; ends the program by the conditions."""
    from iosonar.library.comparison import compare as compare_sides
    from iosonar.report.outputs import output_directory
    from iosonar.report.percentiles import compared_percentiles

    from_, to, skip_warm_up = window
    with (
        output_directory(options.directory),
        compare_sides(
            *groups,
            from_s=from_,
            to_s=to,
            skip_warm_up=skip_warm_up,
            percentiles=compared_percentiles(percentiles, conditions),
            memory=memory,
        ) as compared,
    ):
        for run in compared.runs:
            print_skipped_rows(run.files)
        judged = tuple(one for condition in conditions for one in compared.judge(condition))
        written = list(compared.write(replace(options, judged=judged)))
        if json_:
            outcomes = [
                {"condition": one.text, "side": one.of, "outcome": one.outcome.value, "why": one.why} for one in judged
            ]
            print_lines(json.dumps(compared.found.as_json() | {"conditions": outcomes}, indent=2))
        else:
            print_lines(*compared.found.lines(), "")
            for each in compared.against:
                print_lines(*aligned([each.columns, *each.rows]), "")
            print_lines(*(path for done in written for path in done.paths))
        print_not_drawn_in_one_line(written)
        compared.write_gate_files(judged, *gate_files, skip_undecided=skip_undecided)
        end_by(judged)


def sides_of(words: Sequence[str]) -> list[list[Path]]:
    """The sides: groups of files separated by `vs`, or single files without it."""
    groups: list[list[Path]] = [[]]
    for word in words:
        if word == VERSUS:
            groups.append([])
        else:
            groups[-1].append(Path(word))
    if len(groups) == 1:
        groups = [[path] for path in groups[0]]
    if len(groups) < 2 or not all(groups):
        raise UsageError("compare needs two sides: `iosonar compare A B`, or `iosonar compare A1 A2 vs B1 B2`")
    return groups


def main() -> int:
    """Entry point of `iosonar-compare`."""
    return start(app, "compare")
