"""`iosonar sensitivity`: how much degraded issue times change the results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from iosonar.cli.counts import whole_number
from iosonar.cli.parser import Command
from iosonar.cli.run import guarded, print_error, print_lines, start
from iosonar.cli.series import Json, PageTheme, Simulate, Target, VirtualTime, device_of
from iosonar.text import aligned

EXAMPLES = """
\b
Examples:
  iosonar sensitivity mysql.load.parquet --target /dev/sdb
      --output sdb.sensitivity
      exact, quantised to and delayed by up to 10us, 100us ... 100ms
  iosonar sensitivity mysql.load.parquet --target /dev/sdb --repeat 3
      --output sdb.sensitivity
      three times: the means of each point
  iosonar sensitivity mysql.load.parquet --simulate hdd --virtual-time
      --times 1ms,4ms,10ms --output hdd.sensitivity -- --speedup 4
      these times alone; options of `replay` after --

Each point is a replay in the directory NAME.sensitivity. After an interrupt, start the same command again: finished
points are kept, and more times or repeats add points. Other settings need another directory.

DESTROYS DATA on the targets if the load writes.

Exit codes: 0 done, 1 failed, 2 the command line was wrong.
"""

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command(cls=Command, epilog=EXAMPLES)
def sensitivity(
    load: Annotated[Path, typer.Argument(metavar="LOAD", help="The load to replay.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="NAME.sensitivity", help="Directory of the series.")
    ],
    options: Annotated[
        list[str] | None, typer.Argument(metavar="[-- OPTIONS]", help="Options of `replay` for each point.")
    ] = None,
    target: Target = None,
    simulate: Simulate = None,
    virtual_time: VirtualTime = False,
    times: Annotated[
        str, typer.Option(metavar="LIST", help="How far to quantise and delay.")
    ] = "10us,100us,1ms,10ms,100ms",
    repeat: Annotated[
        int, typer.Option(parser=whole_number(1, 1000), metavar="N", help="Replay each point this many times.")
    ] = 1,
    json_: Json = False,
    theme: PageTheme = None,
) -> None:
    """Measure what degraded issue times change in a replay."""

    def work() -> None:
        from iosonar.series import output as outputs
        from iosonar.series import sensitivity_findings as words
        from iosonar.series.notes import fake_notes, fakes_of, fidelity_notes, too_few_notes, unfilled_notes
        from iosonar.series.plan import opened
        from iosonar.series.run import run
        from iosonar.series.sensitivity import EXACT, Sensitivity, plan, rows
        from iosonar.series.sensitivity_figures import figures

        device = device_of("sensitivity", target, simulate)
        series = Sensitivity(load, times, repeat, target or [], simulate, virtual_time, options or [])
        with opened(output, plan(series)) as directory:
            results = run(directory, print_error)
            found = rows(results)
            # Degraded times are fake by definition, so only the exact replays decide.
            exact = [each for each in results if each.name.startswith(EXACT)]
            of = f"{load.name} · {device}"
            doubts = (*fidelity_notes(exact), *unfilled_notes(results), *too_few_notes(results))
            drawn = figures(of, found, (*doubts, *fake_notes(exact)))
            written = [
                *outputs.write_tables(directory, words.as_rows(found)),
                *outputs.write_figures(directory, drawn, theme),
            ]
            fakes, lead, table = fakes_of(exact), words.findings(found, doubts), words.table(found)
            written.append(outputs.write_series_page(directory, words.ABOUT, lead, drawn, table, theme))
            if json_:
                print_lines(json.dumps(words.as_json(found, fakes), indent=2))
            else:
                sentences = (*lead, *(f"FAKE RESULT: {fake}" for fake in fakes))
                print_lines(*aligned([table.columns, *table.rows]), "", *sentences, *written)

    guarded("sensitivity", work)


def main() -> int:
    """Entry point of `iosonar-sensitivity`."""
    return start(app, "sensitivity")
