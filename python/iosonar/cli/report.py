"""`iosonar report`: a page or pictures of runs or loads."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from iosonar.cli.counts import whole_number
from iosonar.cli.parser import Command
from iosonar.cli.run import VERDICT, guarded, print_error, print_lines, print_skipped_rows, start
from iosonar.cli.times import seconds, windows
from iosonar.figures.numbers import DataFormat
from iosonar.figures.palette import Theme
from iosonar.report.output_options import OutputOptions, ReportFormat
from iosonar.report.verdict import Grade

MAX_WINDOWS = 100_000
"""More windows could not be distinguished, and would make the page too large."""

EXAMPLES = """
\b
Examples:
  iosonar report run.replay.parquet
      one page, run.report.html, that opens in any browser
  iosonar report run.replay.parquet --format png
      pictures, the most interesting first
  iosonar report run.replay.parquet --format png --out pictures --size 4k
  iosonar report a.replay.gz b.replay.gz
      two parts of one parallel run as one
  iosonar report host*.replay.gz --each-device
      one page of many devices, with a series for each
  iosonar report host*.replay.gz --device host3:/dev/sdb
  iosonar report run.replay.parquet --only latency.realtime --data csv
  iosonar report tar.calls.parquet
      calls to files: a trace, or a run of it
  iosonar report tar.calls.parquet --blocks tar.load.parquet
      with the requests of block devices that calls caused
  iosonar report run.replay.parquet --fail-on bad
      exit code 3 if the verdict is bad, for scripts

Exit codes: 0 done, 1 failed, 2 the command line was wrong, 3 the verdict is as bad as --fail-on.
"""

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command(cls=Command, epilog=EXAMPLES)
def report(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN...", help="Runs or loads: Parquet or classic text, also compressed. Or calls to files."
        ),
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Output directory; created if missing.")] = Path(),
    format_: Annotated[
        ReportFormat, typer.Option("--format", help="One page (html), or one picture per diagram.")
    ] = ReportFormat.HTML,
    only: Annotated[
        str,
        typer.Option(metavar="NAME,…", help="Only these diagrams or families, such as latency.realtime or latency."),
    ] = "",
    static: Annotated[bool, typer.Option("--static", help="Add diagrams of the load (default for loads).")] = False,
    dynamic: Annotated[bool, typer.Option("--dynamic", help="Add diagrams of the run (default for runs).")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Add diagrams of the replayer, for experts.")] = False,
    device: Annotated[
        str,
        typer.Option(metavar="NAME", help="Only this device, such as sdb, /dev/sdb, or HOST:/dev/sdb."),
    ] = "",
    each_device: Annotated[
        bool, typer.Option("--each-device", help="A series for each device instead of for reads and writes.")
    ] = False,
    bad_latency: Annotated[
        float,
        typer.Option(
            metavar="TIME", parser=seconds, help="Latency limit: a longer one makes the verdict bad; 5, 20ms."
        ),
    ] = 5.0,
    bad_delay: Annotated[
        float, typer.Option(metavar="TIME", parser=seconds, help="Delay limit: a longer one makes the verdict bad.")
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
    fail_on: Annotated[Grade | None, typer.Option(help="Exit with code 3 if the verdict is this bad or worse.")] = None,
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
    memory: Annotated[
        str, typer.Option(metavar="SIZE", help="Memory limit: 2G, or bytes; what exceeds it spills to TMPDIR.")
    ] = "2GiB",
    engine: Annotated[
        str,
        typer.Option(
            metavar="NAME[=URL]",
            help="Query engine: duckdb, spark (on this machine), or spark=spark://HOST:7077 (a cluster).",
        ),
    ] = "duckdb",
) -> None:
    """Show runs or loads as diagrams, on a page or as pictures."""
    from iosonar.cli.calls import report_calls, report_scale
    from iosonar.diagrams import CATALOGUE, Options, Study
    from iosonar.diagrams.calls import CallOptions
    from iosonar.errors import UsageError, UserError
    from iosonar.figures.size import PAGE, Size
    from iosonar.report.formats import write_report
    from iosonar.report.outputs import make_folder
    from iosonar.report.pictures import prefix
    from iosonar.report.selection import Selection
    from iosonar.report.verdict import fails, verdict_of, write_verdict
    from iosonar.table import OF_CALLS, Kind, Requests, only_device, open_files, requests_of
    from iosonar.table.engine import EngineOptions, parse_engine

    def work() -> None:
        pictures = size_of_pictures()
        drawn_for = PAGE if format_ is ReportFormat.HTML else pictures
        kind, url = parse_engine(engine)
        options = Options(
            bad_latency,
            bad_delay,
            bad_count,
            window,
            windows(working_sets, "--working-sets"),
            size=drawn_for,
            each_device=each_device,
            device=device,
        )
        selection = Selection(static, dynamic, verbose, tuple(name for name in only.split(",") if name))
        make_folder(out)
        resources = EngineOptions(memory, kind=kind, url=url)
        output = OutputOptions(out, format_, theme, data, overwrite=overwrite)
        with open_files([*files, *([blocks] if blocks else [])]) as (opened, spill):
            print_skipped_rows(opened)
            if any(file.kind is Kind.SCALE for file in opened):
                refuse_options_of_requests()
                report_scale(opened, spill, resources, drawn_for, output)
                return
            if any(file.kind in OF_CALLS for file in opened):
                refuse_options_of_requests()
                chosen = tuple(name for name in only.split(",") if name)
                calls = CallOptions(window, drawn_for, tuple(graph or ()))
                load = opened[-1] if blocks else None
                of_calls = opened[:-1] if blocks else opened
                missing = report_calls(of_calls, spill, resources, calls, output, chosen, load)
                for reason, names in missing.items():
                    print_error(f"{', '.join(names)} not drawn: {reason}")
                return
            if blocks or graph:
                raise UsageError("--blocks and --graph need a trace of calls")
            with requests_of(opened, spill, resources) as requests:
                report_requests(requests, options, selection, output)

    def report_requests(requests: Requests, options: Options, selection: Selection, output: OutputOptions) -> None:
        if device:
            requests = only_device(requests, device)
        study = Study(requests, options)
        check_window(study)
        diagrams = selection.choose(CATALOGUE, requests)
        missing: dict[str, list[str]] = {}
        for done in write_report(study, diagrams, output):
            for path in done.paths:
                print_lines(path)
            if not done.paths:
                missing.setdefault(done.reason, []).append(done.name)
        for reason, names in missing.items():
            print_error(f"{', '.join(names)} not drawn: {reason}")
        if requests.is_run:
            judge(study)

    def refuse_options_of_requests() -> None:
        typed = {
            "--static": static,
            "--dynamic": dynamic,
            "--verbose": verbose,
            "--device": device,
            "--each-device": each_device,
            "--fail-on": fail_on,
            "--engine spark": engine != "duckdb",
        }
        if found := [name for name, value in typed.items() if value]:
            raise UsageError(f"{', '.join(found)}: not for calls to files")

    def size_of_pictures() -> Size:
        try:
            return Size.parse(size)
        except UserError as error:
            raise UsageError(str(error)) from error

    def check_window(study: Study) -> None:
        length_s = study.last_s - study.first_s
        if window is not None and window < 1e-9:
            raise UsageError(f"--window {window:g} is too short: the minimum is 1 ns")
        if window is not None and length_s / window > MAX_WINDOWS:
            least = f"{length_s / MAX_WINDOWS:.2g}"
            raise UsageError(
                f"--window {window:g} is too short: at most {MAX_WINDOWS:,} windows fit, so use at least {least} s"
            )

    def judge(study: Study) -> None:
        verdict = verdict_of(study)
        path = out / f"{prefix(study)}.verdict.json"
        write_verdict(verdict, path)
        print_lines(path)
        if fail_on is not None and fails(verdict, fail_on):
            print_error(f"verdict: {verdict['grade']}: {'; '.join(verdict['reasons'])}")
            sys.exit(VERDICT)

    guarded("report", work)


def main() -> int:
    """Entry point of `iosonar-report`."""
    return start(app, "report")
