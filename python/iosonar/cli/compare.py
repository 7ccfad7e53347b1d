"""`iosonar compare`: differences between runs, and whether they are significant."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer

from iosonar.cli.parser import Command
from iosonar.cli.run import VERDICT, aligned, guarded, print_error, print_lines, print_skipped_rows, start
from iosonar.errors import UsageError
from iosonar.figures.palette import Theme

VERSUS = "vs"
UNDECIDED = 4
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
  iosonar compare tar.calls.parquet tar.calls-run.parquet
      calls to files: the original and its replays side by side
  iosonar compare old-*.calls-run.parquet vs new-*.calls-run.parquet --fail-if 'p99 > +10%' --json
      three or more replays of calls per side

Without vs, each file is a side. A difference is claimed only with at least three runs per side.

A condition holds if the whole 95 % interval of the change is beyond its limit, and is undecided if the limit is in the
interval. Its outcome is printed to stderr, with the number of runs that would decide it.

Exit codes: 0 done, 1 failed, 2 the command line was wrong, 3 a condition of --fail-if holds, 4 no condition holds, but
one is undecided: the limit is in the interval, too few runs or requests, a replay that was not faithful or may not have
been, or, for throughput, different loads.
"""

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command(cls=Command, epilog=EXAMPLES)
def compare(
    runs: Annotated[list[str], typer.Argument(metavar="A... [vs B...]...", help="Runs; `vs` starts the next side.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Output directory; created if missing.")] = Path(),
    fail_if: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CONDITION", help="Such as 'p99 > +10%'; also p50, p90, p99.9, mean, throughput. May be repeated."
        ),
    ] = None,
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
    from iosonar.cli.calls import compare_calls, grouped
    from iosonar.diagrams import Options, Study
    from iosonar.diagrams.calls import CallOptions
    from iosonar.diagrams.comparison import ROLES, Side
    from iosonar.figures.size import PAGE
    from iosonar.report import compare as comparing
    from iosonar.report.claims import inputs_of, refuse_others, write_claimed
    from iosonar.report.condition import Compared, Condition, Outcome
    from iosonar.report.condition import judge as judge_side
    from iosonar.report.output_options import OutputOptions, ReportFormat
    from iosonar.report.outputs import make_folder
    from iosonar.report.page import write_page
    from iosonar.report.pictures import prefix
    from iosonar.table import open_files, open_requests
    from iosonar.table.engine import EngineOptions
    from iosonar.table.input_checks import refuse_copies
    from iosonar.table.validation import is_of_calls

    def work() -> None:
        conditions = [Condition.parse(text) for text in fail_if or []]
        groups = sides_of(runs)
        make_folder(out)
        output = OutputOptions(out, ReportFormat.HTML, theme, overwrite=overwrite)
        with ExitStack() as stack:
            if is_of_calls(groups[0][0]):
                files, spill = stack.enter_context(open_files([path for group in groups for path in group]))
                sides_of_calls = grouped(files, [len(group) for group in groups])
                found = compare_calls(
                    sides_of_calls, spill, EngineOptions(memory), CallOptions(size=PAGE), output, json_
                )
                judge({each.side.letter: each for each in found}, conditions)
                return
            if len(groups) > len(ROLES):
                raise UsageError(
                    f"at most {len(ROLES)} sides can be compared, not {len(groups)}; group runs into sides with `vs`"
                )
            sides = []
            for letter, group in zip("ABCDE", groups, strict=False):
                requests = stack.enter_context(open_requests(group, EngineOptions(memory)))
                print_skipped_rows(requests.files)
                # Parts of one run are not independent, so they do not count as several runs.
                refuse_copies(requests.files, parts=False)
                sides.append(Side(letter, Study(requests, Options(size=PAGE), origin_ns=0)))
            refuse_copies(file for side in sides for file in side.study.requests.files)
            stem, shown = prefix(sides[0].study), [file for side in sides for file in side.study.requests.files]
            path, output = out / f"{stem}.compare.html", replace(output, inputs=inputs_of(shown, out))
            refuse_others(stem, output, "compare")
            compared = comparing.compare(sides)
            write_claimed(path, output, lambda unfinished: write_page(comparing.page_of(compared), unfinished, theme))
            if json_:
                print_lines(as_json(compared))
            else:
                print_lines(*text_of(compared))
                print_lines(path)
            judge({each.side.letter: each for each in compared.against}, conditions)

    def as_json(compared: comparing.Comparison) -> str:
        sides = [{"side": s.letter, "files": [f.path for f in s.study.requests.files]} for s in compared.sides]
        against = [
            {
                "side": each.side.letter,
                "against": compared.sides[0].letter,
                "pairing": each.pairing,
                "same_load": each.same_load,
                "unfaithful": list(each.unfaithful),
                "unknown": list(each.unknown),
                "fakes": list(each.fakes),
                "unfilled": list(each.unfilled),
                "settings": [one.name for one in each.settings],
                "pairs": asdict(each.pairs) if each.pairs else None,
                "differences": [asdict(one) for one in each.differences],
                "throughput": asdict(each.throughput) if each.throughput else None,
            }
            for each in compared.against
        ]
        settings = [
            {"of": one.scope, "name": one.name, "values": {letter: list(found) for letter, found in one.values.items()}}
            for one in compared.settings
        ]
        return json.dumps({"sides": sides, "settings": settings, "comparisons": against}, indent=2)

    def text_of(compared: comparing.Comparison) -> Iterator[str]:
        for side in compared.sides:
            yield comparing.describe_side(side)
        for banner in comparing.sentences(compared):
            yield ""
            yield f"{banner.head} {banner.text}"
        for each in compared.against:
            yield ""
            yield from aligned([comparing.columns(each, compared.sides[0]), *comparing.rows(each)])
        yield ""

    def judge(against: Mapping[str, Compared], conditions: Sequence[Condition]) -> None:
        outcomes = set()
        for condition in conditions:
            for letter, each in against.items():
                found = judge_side(condition, each)
                outcomes.add(found.outcome)
                print_error(found.sentence(condition, letter))
        if Outcome.HOLDS in outcomes:
            sys.exit(VERDICT)
        if Outcome.UNDECIDED in outcomes:
            sys.exit(UNDECIDED)

    guarded("compare", work)


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
