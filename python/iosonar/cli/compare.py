"""`iosonar compare`: what differs between runs, and whether it is more than chance."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from iosonar.cli.run import VERDICT, guarded
from iosonar.errors import UsageError
from iosonar.figures.palette import Theme

VERSUS = "vs"
UNDECIDED = 4
EXAMPLES = """
Examples:

  iosonar compare old.replay.parquet new.replay.parquet        one run against another: numbers, but no claim

  iosonar compare old-*.parquet vs new-*.parquet               three runs a side or more: what differs, and how sure

  iosonar compare a*.parquet vs b*.parquet vs c*.parquet       b and c against a

  iosonar compare old-*.parquet vs new-*.parquet --fail-if 'p99 > +10%'        for CI

Without vs every file is a side of its own. To claim a difference takes at least three runs a side.

A condition holds if all of the change's 95 % interval is beyond its limit. What became of it is said on stderr.

Exit codes: 0 done, 1 failed, 2 the command line was wrong, 3 a condition of --fail-if holds, 4 none holds, but one
can't be decided: too few runs or requests, a replay that was not faithful, or for throughput different loads.
"""

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command(epilog=EXAMPLES)
def compare(
    runs: Annotated[list[str], typer.Argument(metavar="A... [vs B...]...", help="Runs; `vs` begins the next side.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where to write the page; made if it is missing.")] = Path(),
    fail_if: Annotated[
        list[str] | None,
        typer.Option(metavar="CONDITION", help="Such as 'p99 > +10%'; also p50, p90, p99.9, mean. May be repeated."),
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print the numbers as JSON instead of words.")] = False,
    theme: Annotated[
        Theme | None, typer.Option(help="Light or dark paper; default: as the system of the reader.")
    ] = None,
    memory: Annotated[
        str, typer.Option(metavar="SIZE", help="Memory to compute in, for each side; more is spilled to TMPDIR.")
    ] = "2GiB",
) -> None:
    """Holds runs against each other: overlays, differences of latency with their intervals, and plain words."""
    from iosonar.diagrams import Options, Study
    from iosonar.diagrams.comparison import ROLES, Side
    from iosonar.figures.size import PAGE
    from iosonar.report import compare as comparing
    from iosonar.report.condition import Condition, Outcome, judged
    from iosonar.report.page import write_page
    from iosonar.report.pictures import make_folder, prefix, write_whole
    from iosonar.table import open_requests
    from iosonar.table.engine import EngineOptions
    from iosonar.table.together import refuse_copies

    def work() -> None:
        conditions = [Condition.parse(text) for text in fail_if or []]
        groups = sides_of(runs)
        if len(groups) > len(ROLES):
            raise UsageError(f"at most {len(ROLES)} sides can be told apart, not {len(groups)}; `vs` makes groups")
        make_folder(out)
        with ExitStack() as stack:
            sides = []
            for letter, group in zip("ABCDE", groups, strict=False):
                requests = stack.enter_context(open_requests(group, EngineOptions(memory)))
                # Pieces of one run are not independent, and so not several runs.
                refuse_copies(requests.files, parts=False)
                sides.append(Side(letter, Study(requests, Options(size=PAGE))))
            refuse_copies(file for side in sides for file in side.study.requests.files)
            compared = comparing.compare(sides)
            path = out / f"{prefix(sides[0].study)}.compare.html"
            write_whole(path, lambda unfinished: write_page(comparing.page_of(compared), unfinished, theme))
            if json_:
                print(as_json(compared))
            else:
                print_words(compared)
                print(path)
            judge(compared, conditions)

    def as_json(compared: comparing.Comparison) -> str:
        sides = [{"side": s.letter, "files": [str(f.given) for f in s.study.requests.files]} for s in compared.sides]
        against = [
            {
                "side": each.side.letter,
                "against": compared.sides[0].letter,
                "pairing": each.pairing,
                "same_load": each.same_load,
                "unfaithful": list(each.unfaithful),
                "fakes": list(each.fakes),
                "pairs": asdict(each.pairs) if each.pairs else None,
                "differences": [asdict(one) for one in each.found],
                "throughput": asdict(each.throughput) if each.throughput else None,
            }
            for each in compared.against
        ]
        return json.dumps({"sides": sides, "comparisons": against}, indent=2)

    def print_words(compared: comparing.Comparison) -> None:
        for side in compared.sides:
            print(f"{side.name}: {side.runs} run{'s' * (side.runs > 1)}, {side.study.span.requests:,} requests")
        for band in comparing.sentences(compared):
            print(f"\n{band.head} {band.text}")
        for each in compared.against:
            table = [comparing.columns(each, compared.sides[0]), *comparing.rows(each)]
            widths = [max(len(row[place]) for row in table) for place in range(len(table[0]))]
            print()
            for row in table:
                print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
        print()

    def judge(compared: comparing.Comparison, conditions: Sequence[Condition]) -> None:
        outcomes = set()
        for condition in conditions:
            for each in compared.against:
                found = judged(condition, each)
                outcomes.add(found.outcome)
                print(f"{condition.text}: {found.outcome.value} for {each.side.letter}: {found.why}", file=sys.stderr)
        if Outcome.HOLDS in outcomes:
            sys.exit(VERDICT)
        if Outcome.UNDECIDED in outcomes:
            sys.exit(UNDECIDED)

    guarded("compare", work)


def sides_of(words: Sequence[str]) -> list[list[Path]]:
    """The groups of files: between the words `vs`, or each file by itself if there is none."""
    groups: list[list[Path]] = [[]]
    for word in words:
        if word == VERSUS:
            groups.append([])
        else:
            groups[-1].append(Path(word))
    if len(groups) == 1:
        groups = [[path] for path in groups[0]]
    if len(groups) < 2 or not all(groups):
        raise UsageError("at least two sides are compared: `iosonar compare A B`, or `iosonar compare A1 A2 vs B1 B2`")
    return groups


def main() -> int:
    """Entry point of `iosonar-compare`."""
    app(prog_name="iosonar compare")
    return 0
