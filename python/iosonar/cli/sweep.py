"""`iosonar sweep`: a program at several depths, rates or spans, as one curve."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from iosonar import units
from iosonar.cli.parser import Command
from iosonar.cli.run import guarded, print_error, print_lines, start
from iosonar.cli.series import Json, PageTheme, Simulate, Target, VirtualTime, device_of
from iosonar.cli.times import seconds
from iosonar.errors import UsageError
from iosonar.text import aligned

if TYPE_CHECKING:
    from iosonar.series.sweep import SweepVariable

EXAMPLES = """
\b
Examples:
  iosonar sweep random-reads --depth 1..64 --target /dev/sdb --output sdb.sweep
      depths 1, 2, 4 ... 64: throughput, response time, the best depth
  iosonar sweep random-mix --rate 1k..40k/8 --target /dev/sdb --for 1m
      --output mix.sweep
      eight rates: response time over throughput, and its knee
  iosonar sweep random-reads --span 1G,100G,1T --target /dev/sdb
      --output cache.sweep
      one request at a time in working sets of these sizes
  iosonar sweep mine.toml --rate 100..2k --parameter orders
      --simulate hdd --virtual-time --output hdd.sweep -- --seed 7
      another parameter of the program; options of `workload run` after --

Each point is a run in the directory NAME.sweep. After an interrupt, start the same command again: finished points
are kept, and more values add points. Other settings need another directory.

DESTROYS DATA on the targets if the program writes.

Exit codes: 0 done, 1 failed, 2 the command line was wrong.
"""

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command(cls=Command, epilog=EXAMPLES)
def sweep(
    program: Annotated[str, typer.Argument(metavar="PROGRAM", help="A ready program, or a TOML file.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="NAME.sweep", help="Directory of the series.")],
    options: Annotated[
        list[str] | None, typer.Argument(metavar="[-- OPTIONS]", help="Options of `workload run` for each point.")
    ] = None,
    depth: Annotated[str | None, typer.Option(metavar="LIST", help="Queue depths: 1,2,4 or 1..64.")] = None,
    rate: Annotated[
        str | None, typer.Option(metavar="LIST", help="Requests per second: 1k,2k or 1k..40k/8 (8 points).")
    ] = None,
    span: Annotated[
        str | None, typer.Option(metavar="LIST", help="Sizes of the working set: 1G,100G or 1G..1T.")
    ] = None,
    target: Target = None,
    simulate: Simulate = None,
    virtual_time: VirtualTime = False,
    duration: Annotated[str, typer.Option("--for", metavar="TIME", help="Time for each point.")] = "10s",
    parameter: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Parameter of the program to vary; default: depth, rate or span."),
    ] = None,
    json_: Json = False,
    theme: PageTheme = None,
) -> None:
    """Run a program at several depths, rates or working sets."""

    def work() -> None:
        from iosonar.series import output as outputs
        from iosonar.series import sweep_findings as words
        from iosonar.series.plan import opened
        from iosonar.series.run import run
        from iosonar.series.sweep import Sweep, plan
        from iosonar.series.sweep_figures import figures

        vary, values = _values(depth, rate, span)
        device = device_of("sweep", target, simulate)
        series = Sweep(program, vary, values, parameter, target or [], simulate, virtual_time, duration, options or [])
        with opened(output, plan(series)) as directory:
            results = sorted(run(directory, print_error), key=lambda each: each.value)
            rows = words.rows(vary, results)
            what = " · ".join((" ".join((program, *(options or []))), device, f"{_shown(duration)} for each point"))
            drawn = figures(what, vary, results)
            written = [*outputs.write_tables(directory, rows), *outputs.write_figures(directory, drawn, theme)]
            lead, table = words.findings(vary, results), words.table(vary, results)
            written.append(outputs.write_series_page(directory, words.ABOUT, lead, drawn, table, theme))
            if json_:
                print_lines(json.dumps(words.as_json(vary, results), indent=2))
            else:
                print_lines(*aligned([table.columns, *table.rows]), "", *lead, *written)

    guarded("sweep", work)


def _shown(duration: str) -> str:
    """The time of a point, for people: 3 s."""
    try:
        return units.span(seconds(duration))
    except typer.BadParameter:
        # The binary accepted it.
        return duration


def _values(depth: str | None, rate: str | None, span: str | None) -> tuple[SweepVariable, list[int]]:
    from iosonar.series import values
    from iosonar.series.sweep import SweepVariable

    given = [
        (vary, parse, text)
        for vary, parse, text in (
            (SweepVariable.DEPTH, values.depths, depth),
            (SweepVariable.RATE, values.rates, rate),
            (SweepVariable.SPAN, values.spans, span),
        )
        if text is not None
    ]
    if len(given) != 1:
        raise UsageError("sweep varies one thing: give one of --depth, --rate and --span")
    [(vary, parse, text)] = given
    return vary, parse(text)


def main() -> int:
    """Entry point of `iosonar-sweep`."""
    return start(app, "sweep")
