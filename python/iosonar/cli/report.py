"""`iosonar report`: what happened in a run, or what a load is like, in a page or in pictures."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Annotated

import typer

from iosonar.cli.run import VERDICT, guarded
from iosonar.figures.numbers import DataFormat
from iosonar.figures.palette import Theme
from iosonar.report.verdict import Grade
from iosonar.report.wanted import ReportFormat, Wanted

MOST_WINDOWS = 100_000
"""More can neither be seen, nor be held in a page."""

EXAMPLES = """
Examples:

  iosonar report run.replay.parquet                  one page, run.report.html, that opens in any browser

  iosonar report run.replay.parquet --format png     pictures, the most interesting first

  iosonar report run.replay.parquet --format png --out pictures --theme dark --size 4k

  iosonar report a.replay.gz b.replay.gz             two parts of one parallel run as one

  iosonar report run.replay.parquet --only latency.realtime --format svg --data csv

  iosonar report run.replay.parquet --fail-on bad     exit code 3 if the run was not good, for scripts

Exit codes: 0 done, 1 failed, 2 the command line was wrong, 3 the verdict is what --fail-on names.
"""

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command(epilog=EXAMPLES)
def report(
    files: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="Runs or loads: Parquet, or classic text, also compressed.")
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where to write; made if it is missing.")] = Path(),
    format_: Annotated[
        ReportFormat, typer.Option("--format", help="One page (html), or pictures of this type.")
    ] = ReportFormat.HTML,
    only: Annotated[
        str, typer.Option(metavar="NAME,…", help="Only these diagrams, such as latency.realtime or latency.")
    ] = "",
    static: Annotated[bool, typer.Option("--static", help="Also describe the load (default for loads).")] = False,
    dynamic: Annotated[bool, typer.Option("--dynamic", help="Also describe what happened (default for runs).")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Also describe the replayer itself, for experts.")] = False,
    bad_latency: Annotated[float, typer.Option(metavar="S", help="Longer latencies fail the run.")] = 5.0,
    bad_delay: Annotated[float, typer.Option(metavar="S", help="Longer delays fail the run.")] = 10.0,
    window: Annotated[
        float | None,
        typer.Option(metavar="S", help="Window of throughput; default 3 s, less for runs under 30 s."),
    ] = None,
    size: Annotated[str, typer.Option(metavar="WxH", help="Size of the pictures in pixels, or 4k.")] = "1200x800",
    theme: Annotated[
        Theme | None, typer.Option(help="Light or dark paper; default: light, a page as its reader's system.")
    ] = None,
    data: Annotated[
        DataFormat | None, typer.Option(help="Also write the numbers behind each diagram, in this format.")
    ] = None,
    fail_on: Annotated[
        Grade | None, typer.Option(help="End with exit code 3 if the verdict is as bad as this, or worse.")
    ] = None,
    memory: Annotated[
        str, typer.Option(metavar="SIZE", help="Memory for all of the work; more is spilled to TMPDIR.")
    ] = "2GiB",
    engine: Annotated[
        str,
        typer.Option(
            metavar="NAME[=URL]",
            help="What computes: duckdb, spark on this machine, or spark=spark://HOST:7077 on a cluster.",
        ),
    ] = "duckdb",
) -> None:
    """Shows what happened in runs, or what loads are like, in a page or in pictures."""
    from iosonar.diagrams import CATALOGUE, Options, Study
    from iosonar.errors import UsageError, UserError
    from iosonar.figures.size import PAGE, Size
    from iosonar.report.formats import write_report
    from iosonar.report.pictures import make_folder, prefix
    from iosonar.report.selection import Selection
    from iosonar.report.verdict import fails, verdict_of, write_verdict
    from iosonar.table import open_requests
    from iosonar.table.engine import EngineOptions, parse_engine

    def work() -> None:
        drawn_for = PAGE if format_ is ReportFormat.HTML else size_of_pictures()
        kind, url = parse_engine(engine)
        for name, value in (("--bad-latency", bad_latency), ("--bad-delay", bad_delay), ("--window", window)):
            if value is not None and not (math.isfinite(value) and value > 0):
                raise UsageError(f"{name} takes a number of seconds above 0, not {value:g}")
        options = Options(bad_latency, bad_delay, window, size=drawn_for)
        selection = Selection(static, dynamic, verbose, tuple(name for name in only.split(",") if name))
        make_folder(out)
        with open_requests(files, EngineOptions(memory, kind=kind, url=url)) as requests:
            study = Study(requests, options)
            check_window(study)
            diagrams = selection.choose(CATALOGUE, requests)
            for done in write_report(study, diagrams, Wanted(out, format_, theme, data)):
                for path in done.paths:
                    print(path, flush=True)
                if not done.paths:
                    print(f"no {done.name}: {done.reason}", file=sys.stderr)
            if requests.is_run:
                judge(study)

    def size_of_pictures() -> Size:
        try:
            return Size.parse(size)
        except UserError as error:
            raise UsageError(str(error)) from error

    def check_window(study: Study) -> None:
        length_s = study.last_s - min(study.span.first_intended_s or 0.0, 0.0)
        if window is not None and length_s / window > MOST_WINDOWS:
            least = f"{length_s / MOST_WINDOWS:.2g}"
            raise UsageError(f"--window {window:g}: at most {MOST_WINDOWS:,} windows are drawn, so {least} s at least")

    def judge(study: Study) -> None:
        verdict = verdict_of(study)
        path = out / f"{prefix(study)}.verdict.json"
        write_verdict(verdict, path)
        print(path)
        if fail_on is not None and fails(verdict, fail_on):
            print(f"verdict: {verdict['grade']}: {'; '.join(verdict['reasons'])}", file=sys.stderr)
            sys.exit(VERDICT)

    guarded("report", work)


def main() -> int:
    """Entry point of `iosonar-report`."""
    app(prog_name="iosonar report")
    return 0
