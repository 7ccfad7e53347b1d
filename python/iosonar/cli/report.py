"""`iosonar report`: a page or pictures of runs or loads."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from iosonar.cli.counts import whole_number
from iosonar.cli.desktop import open_page
from iosonar.cli.gate_options import FailIf, Junit, Markdown, Percentiles, end_by
from iosonar.cli.opening import ENGINE, MEMORY, Device, Engine, Memory, refuse_options
from iosonar.cli.parser import Command, terminal_width
from iosonar.cli.run import guarded, print_lines, print_not_drawn, print_skipped_rows, start, write
from iosonar.cli.style import Style
from iosonar.cli.times import From, SkipWarmUp, To, seconds, windows
from iosonar.figures.numbers import DataFormat
from iosonar.figures.palette import Theme
from iosonar.report.output_options import OutputOptions, ReportFormat
from iosonar.text import aligned, lines

if TYPE_CHECKING:
    from iosonar.library.run import Run

TOP = 5
"""How many of the slowest requests a terminal shows unasked."""

EXAMPLES = """
\b
Examples:
  iosonar report run.replay.parquet
      one page, run.report.html, that opens in any browser
  iosonar report run.replay.parquet --format png
      pictures, the most interesting first
  iosonar report run.replay.parquet --format png --out pictures --size 4k
  iosonar report s3://bucket/study/
      an object, or all *.parquet below a prefix as one run
  iosonar report a.replay.gz b.replay.gz
      two parts of one parallel run as one
  iosonar report host*.replay.gz --each-device
      one page of many devices, with a series for each
  iosonar report host*.replay.gz --device host3:/dev/sdb
  iosonar report run.replay.parquet --only latency.realtime --data csv
  iosonar report run.replay.parquet --from 2m --to 10m
      a window of the run, as if it were a run of its own
  iosonar report run.replay.parquet --original production.load.parquet
      with the latencies of the load that it replayed beside those of the run
  iosonar report tar.calls.parquet
      calls to files: a trace, or a run of it
  iosonar report tar.calls.parquet --blocks tar.load.parquet
      with the requests of block devices that calls caused
  iosonar report run.replay.parquet --fail-if 'p99 > 10ms' --fail-if bad
      exit code 3 if the p99 is too high or the verdict is bad

A condition is METRIC OPERATOR LIMIT. Metrics are p50, p99.9 and other percentiles, mean and max of latency, delay.p99
and the like, throughput (95% of the demand, or 1000/s), iops, bandwidth (100MB/s), errors, dropped, requests, verdict,
and mismatches of calls; a grade alone, such as bad, means that or a worse one. Latencies and rates of a run that was
not faithful are undecided, and so are percentiles of too few requests.

Exit codes: 0 done, 1 failed, 2 the command line was wrong, 3 a condition of --fail-if holds, 4 no condition holds, but
one is undecided.
"""

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command(cls=Command, epilog=EXAMPLES)
def report(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN...",
            help="Runs or loads: Parquet or classic text, also compressed. Or calls to files. Paths, or s3://BUCKET/KEY.",
        ),
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Output directory; created if missing.")] = Path(),
    format_: Annotated[
        ReportFormat, typer.Option("--format", help="One page (html), or one picture per diagram.")
    ] = ReportFormat.HTML,
    opens: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    only: Annotated[
        str,
        typer.Option(metavar="NAME,…", help="Only these diagrams or families, such as latency.realtime or latency."),
    ] = "",
    static: Annotated[bool, typer.Option("--static", help="Add diagrams of the load (default for loads).")] = False,
    dynamic: Annotated[bool, typer.Option("--dynamic", help="Add diagrams of the run (default for runs).")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Add diagrams of the replayer, for experts.")] = False,
    device: Device = "",
    each_device: Annotated[
        bool, typer.Option("--each-device", help="A series for each device instead of for reads and writes.")
    ] = False,
    bad_latency: Annotated[
        float,
        typer.Option(
            metavar="TIME",
            parser=seconds,
            show_default="5s",
            help="Latency limit, such as 20ms: a longer one makes the verdict bad.",
        ),
    ] = 5.0,
    bad_delay: Annotated[
        float,
        typer.Option(
            metavar="TIME",
            parser=seconds,
            show_default="10s",
            help="Delay limit: a longer one makes the verdict bad.",
        ),
    ] = 10.0,
    bad_count: Annotated[
        int, typer.Option(metavar="N", parser=whole_number(1), help="This many beyond a limit make the verdict bad.")
    ] = 1,
    window: Annotated[
        float | None,
        typer.Option(
            metavar="TIME",
            parser=seconds,
            help="Throughput is averaged over this; default 3 s, less for runs under 30 s.",
        ),
    ] = None,
    from_: From = None,
    to: To = None,
    skip_warm_up: SkipWarmUp = False,
    percentiles: Percentiles = "",
    working_sets: Annotated[
        str, typer.Option(metavar="TIME,…", help="Windows of working sets; all: everything so far.")
    ] = "1,6,60,600,all",
    size: Annotated[str, typer.Option(metavar="WxH", help="Size of the pictures in pixels, or 4k.")] = "1200x800",
    theme: Annotated[
        Theme | None,
        typer.Option(help="Light or dark background; default: light for pictures, the browser's for a page."),
    ] = None,
    data: Annotated[DataFormat | None, typer.Option(help="Also write the data of each diagram in this format.")] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace pages and pictures of other inputs that have the same names.")
    ] = False,
    fail_if: FailIf = None,
    junit: Junit = None,
    markdown: Markdown = None,
    original: Annotated[
        Path | None,
        typer.Option(
            metavar="LOAD",
            help="With a run: the load that it replayed, with latencies, to draw beside it; default: the one that the "
            "run names, if it is still there; none: without it.",
        ),
    ] = None,
    slowest: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            parser=whole_number(0),
            help="List this many of the slowest requests; default: 10 on the page, 5 on a terminal.",
        ),
    ] = None,
    blocks: Annotated[
        Path | None,
        typer.Option(
            metavar="LOAD",
            help="With a trace of calls: a recording of block devices made at the same time, for amplification.",
        ),
    ] = None,
    graph: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="TSV",
            help="With calls: the output of `iosonar files order --format tsv`, for its outdegrees. May be repeated.",
        ),
    ] = None,
    memory: Memory = MEMORY,
    engine: Engine = ENGINE,
) -> None:
    """Show runs or loads as diagrams, on a page or as pictures."""
    from iosonar.errors import UsageError, UserError
    from iosonar.figures.size import Size
    from iosonar.findings.text import brief_lines
    from iosonar.library.run import open_run
    from iosonar.report.gate import Condition, GateScope
    from iosonar.report.gate_files import refuse_unwritable
    from iosonar.report.outputs import output_directory
    from iosonar.report.percentiles import parse_percentiles
    from iosonar.report.selection import Selection

    def work() -> None:
        refuse_unwritable(junit, markdown)
        pictures = size_of_pictures()
        selection = Selection(static, dynamic, verbose, tuple(name for name in only.split(",") if name))
        output = OutputOptions(out, format_, theme, data, overwrite=overwrite)
        sets = windows(working_sets, "--working-sets")
        chosen = parse_percentiles(percentiles)
        conditions = [Condition.parse(text, GateScope.RUN) for text in fail_if or []]
        with (
            output_directory(out),
            open_run(
                *files,
                device=device,
                each_device=each_device,
                bad_latency_s=bad_latency,
                bad_delay_s=bad_delay,
                bad_count=bad_count,
                window_s=window,
                windows_s=sets,
                from_s=from_,
                to_s=to,
                skip_warm_up=skip_warm_up,
                percentiles=chosen,
                original=original,
                slowest=slowest,
                blocks=blocks,
                graphs=graph or (),
                memory=memory,
                engine=engine,
            ) as run,
        ):
            print_skipped_rows(run.files)
            refuse_options(
                run,
                {
                    "--static": static,
                    "--dynamic": dynamic,
                    "--verbose": verbose,
                    "--device": device,
                    "--each-device": each_device,
                    "--fail-if": fail_if,
                    "--original": original,
                    "--slowest": slowest is not None,
                    "--engine spark": engine != ENGINE,
                },
            )
            judged = tuple(run.judge(condition) for condition in conditions)
            written = []
            for done in run.write(selection, replace(output, judged=judged), pictures):
                print_lines(*done.paths)
                written.append(done)
            print_findings(run)
            print_slowest(run)
            print_not_drawn(written)
            run.write_gate_files(judged, junit, markdown)
            if opens:
                open_pages(path for done in written for path in done.paths)
            end_by(judged)

    def print_findings(run: Run) -> None:
        """Prints what was found on a terminal: without, standard output has only paths."""
        is_terminal = sys.stdout and sys.stdout.isatty()
        if is_terminal and (found := [*brief_lines(run.diagnose().findings, terminal_width())]):
            style = Style.of(sys.stdout)
            print_lines("")
            write("".join(f"{style.severity(lines(each))}\n" for each in found))
            print_lines("More about them: iosonar diagnose, or the page.")

    def open_pages(paths: Iterable[Path]) -> None:
        """Opens the page, or the first picture."""
        for path in [*paths][:1]:
            open_page(path.resolve().as_uri())

    def print_slowest(run: Run) -> None:
        """Prints as many as the user asked for, or a few on a terminal: without, standard output has only paths."""
        count = slowest if slowest is not None else TOP if sys.stdout and sys.stdout.isatty() else 0
        if table := run.family.slowest(run.study, count):
            print_lines("", f"{table.title}:", *aligned([table.columns, *table.rows]))

    def size_of_pictures() -> Size:
        try:
            return Size.parse(size)
        except UserError as error:
            raise UsageError(str(error)) from error

    guarded("report", work)


def main() -> int:
    """Entry point of `iosonar-report`."""
    return start(app, "report")
