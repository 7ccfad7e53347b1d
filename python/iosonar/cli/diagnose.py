"""`iosonar diagnose`: what the rows of runs say, in plain words."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from iosonar.cli.counts import whole_number
from iosonar.cli.opening import ENGINE, MEMORY, Device, Engine, Memory, refuse_options
from iosonar.cli.parser import Command, terminal_width
from iosonar.cli.run import VERDICT, guarded, print_lines, print_skipped_rows, start, write
from iosonar.cli.times import From, SkipWarmUp, To
from iosonar.findings.finding import Severity

EXAMPLES = """
\b
Examples:
  iosonar diagnose run.replay.parquet
      the worst first, with what each usually means and what to do
  iosonar diagnose run.replay.parquet --from 2m --to 10m
      of a window of the run
  iosonar diagnose run.replay.parquet --threshold S07.length=20ms
      periodic stalls only from 20 ms on
  iosonar diagnose run.replay.parquet --request 4711
      why this request was slow: what was in flight, in one sentence
  iosonar diagnose run.replay.parquet --json --fail-on warning
      for programs: exit code 3 if there is a warning or worse

Each finding has a number, the condition of `iosonar sql` that selects its rows, and says what else it could be. All
findings and thresholds: docs/generated/findings.md. Times of a run that was not faithful say nothing about the storage,
so findings on them are not looked for.

Exit codes: 0 done, 1 failed, 2 the command line was wrong, 3 there is a finding as bad as --fail-on says, or worse.
"""

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command(cls=Command, epilog=EXAMPLES)
def diagnose(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN...",
            help="Runs, or loads with latencies: parts of one run. Or calls to files. Also s3://BUCKET/KEY.",
        ),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON (docs/schemas/diagnosis.json).")] = False,
    threshold: Annotated[
        list[str] | None,
        typer.Option(metavar="NUMBER.NAME=VALUE", help="Set a threshold: S07.length=20ms. May be repeated."),
    ] = None,
    fail_on: Annotated[
        Severity | None, typer.Option(help="Exit with 3 if there is a finding of this severity, or worse.")
    ] = None,
    request: Annotated[
        int | None,
        typer.Option(metavar="N", parser=whole_number(0), help="Only: why was the request of this number slow?"),
    ] = None,
    device: Device = "",
    from_: From = None,
    to: To = None,
    skip_warm_up: SkipWarmUp = False,
    memory: Memory = MEMORY,
    engine: Engine = ENGINE,
) -> None:
    """Say what limits the storage, and what slowed requests down."""
    from iosonar.errors import UsageError
    from iosonar.findings.registry import thresholds
    from iosonar.findings.text import lines_of
    from iosonar.findings.thresholds import WrongThresholdError, parse_overrides
    from iosonar.library.run import open_run

    def work() -> None:
        try:
            overrides = parse_overrides(threshold or (), thresholds())
        except WrongThresholdError as error:
            raise UsageError(f"--threshold {error}") from error
        with open_run(
            *files,
            device=device,
            from_s=from_,
            to_s=to,
            skip_warm_up=skip_warm_up,
            original="none",
            memory=memory,
            engine=engine,
        ) as run:
            refuse_options(run, {"--device": device})
            print_skipped_rows(run.files)
            why = None if request is None else run.why_slow(request)
            if why is not None and not as_json:
                print_lines(why.sentence)
                return
            found = run.diagnose(overrides)
            if as_json:
                more = {"request": why.as_json()} if why else {}
                write(json.dumps(found.as_json() | more, indent=2, ensure_ascii=False) + "\n")
            else:
                print_lines(*lines_of(found, run.files[0].kind.view, terminal_width()))
            if fail_on is not None and found.fails(fail_on):
                sys.exit(VERDICT)

    guarded("diagnose", work)


def main() -> int:
    """Entry point of `iosonar-diagnose`."""
    return start(app, "diagnose")
