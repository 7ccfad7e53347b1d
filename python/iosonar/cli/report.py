"""`iosonar report`: what happened in a run, or what a load is like, in pictures."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from iosonar.cli.run import guarded
from iosonar.figures.palette import Theme
from iosonar.report.pictures import PictureFormat

EXAMPLES = """
Examples:

  iosonar report run.replay.parquet                  pictures beside you, the most interesting first

  iosonar report run.replay.parquet --out pictures --theme dark --size 4k

  iosonar report a.replay.gz b.replay.gz             two parts of one parallel run as one

  iosonar report run.replay.parquet --only latency.realtime --format svg
"""

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command(epilog=EXAMPLES)
def report(
    files: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="Runs or loads: Parquet, or classic text, also compressed.")
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where to write; made if it is missing.")] = Path(),
    format_: Annotated[PictureFormat, typer.Option("--format", help="Type of the pictures.")] = PictureFormat.PNG,
    only: Annotated[
        str, typer.Option(metavar="NAME,…", help="Only these diagrams, such as latency.realtime or latency.")
    ] = "",
    static: Annotated[bool, typer.Option("--static", help="Also describe the load (default for loads).")] = False,
    dynamic: Annotated[bool, typer.Option("--dynamic", help="Also describe what happened (default for runs).")] = False,
    bad_latency: Annotated[float, typer.Option(metavar="S", help="Longer latencies fail the run.")] = 5.0,
    bad_delay: Annotated[float, typer.Option(metavar="S", help="Longer delays fail the run.")] = 10.0,
    window: Annotated[
        float | None,
        typer.Option(metavar="S", help="Window of throughput; default 3 s, less for runs under 30 s."),
    ] = None,
    size: Annotated[str, typer.Option(metavar="WxH", help="Size of the pictures in pixels, or 4k.")] = "1200x800",
    theme: Annotated[Theme, typer.Option(help="Light or dark paper.")] = Theme.LIGHT,
    memory: Annotated[
        str, typer.Option(metavar="SIZE", help="Memory to compute in; more is spilled to TMPDIR.")
    ] = "2GiB",
) -> None:
    """Shows what happened in runs, or what loads are like, in pictures."""
    from iosonar.diagrams import CATALOGUE, Options, Study
    from iosonar.figures.size import Size
    from iosonar.report.pictures import make_folder, write_pictures
    from iosonar.report.selection import Selection
    from iosonar.table import open_requests
    from iosonar.table.engine import EngineOptions

    def work() -> None:
        options = Options(bad_latency, bad_delay, window, size=Size.parse(size))
        selection = Selection(static, dynamic, tuple(name for name in only.split(",") if name))
        make_folder(out)
        with open_requests(files, EngineOptions(memory)) as requests:
            study = Study(requests, options)
            diagrams = selection.choose(CATALOGUE, requests)
            for done in write_pictures(study, diagrams, out, format_, theme):
                if done.path is not None:
                    print(done.path, flush=True)
                else:
                    print(f"no {done.name}: {done.reason}", file=sys.stderr)

    guarded("report", work)


def main() -> int:
    """Entry point of `iosonar-report`."""
    app(prog_name="iosonar report")
    return 0
