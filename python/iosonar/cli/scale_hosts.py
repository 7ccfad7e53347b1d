"""`iosonar-scale-hosts`: does the work of `iosonar files scale --hosts`, which starts it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from iosonar import units
from iosonar.cli.parser import Command
from iosonar.cli.run import guarded, print_error, print_lines, start

if TYPE_CHECKING:
    from iosonar.campaign.scaling import Point

NAME = "scale-hosts"

DIFFERS, CUT_SHORT = 4, 5
"""Exit codes of `iosonar files scale`."""

WIDTHS = (9, 16, 10, 10, 10, 11, 11)

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command(cls=Command)
def scale_hosts(plan: Annotated[str, typer.Argument(metavar="JSON", help="What to measure.")]) -> None:
    """Measure instances of a replay on several hosts."""

    def work() -> None:
        from tempfile import TemporaryDirectory

        from iosonar.campaign import scaling

        given = json.loads(plan)
        wanted = scaling.Plan(**{**given, "trace": Path(given["trace"]), "output": Path(given["output"])})
        found, ended = scaling.Measured(), False
        try:
            with TemporaryDirectory(prefix="iosonar-scale.") as directory:

                def show(point: Point) -> None:
                    if not wanted.json:
                        _show(point, is_first=len(found.points) == 1)

                scaling.measure(wanted, found, Path(directory), print_error, show)
            ended = True
        except KeyboardInterrupt:
            print_error("cut short: " + ("the table has what was measured before" if found.points else "no table"))
            sys.exit(CUT_SHORT)
        finally:
            if ended or found.points:
                scaling.write_table(wanted, found, complete=ended)
                if wanted.json:
                    print_lines(json.dumps(scaling.as_json(found, complete=ended), indent=2))
                else:
                    print_lines(f"result: {wanted.output}")
        if found.mismatches:
            print_error(
                f"warning: {units.counted(found.mismatches, 'call')}: the result differs from the original's; "
                "`iosonar files replay` names them"
            )
            sys.exit(DIFFERS)

    guarded("files scale", work, undoes=True)


def _show(point: Point, *, is_first: bool) -> None:
    """The row of all hosts, and one for each."""
    if is_first:
        _row("instances", "host", "average", "shortest", "longest", "received", "sent")
    rows = [(str(point.instances), "all", point.seconds, point.network("received_bytes"), point.network("sent_bytes"))]
    if len(point.hosts) > 1:
        rows += [
            (str(len(each.seconds)), each.host, each.seconds, each.received_bytes, each.sent_bytes)
            for each in point.hosts
        ]
    for instances, host, seconds, received, sent in rows:
        times = (sum(seconds) / len(seconds), min(seconds), max(seconds))
        network = ("–" if each is None else units.transferred(each) for each in (received, sent))
        _row(instances if host == "all" else f"  {instances}", host, *map(units.span, times), *network)


def _row(*cells: str) -> None:
    aligned = [
        cell.ljust(width) if place == 1 else cell.rjust(width)
        for place, (cell, width) in enumerate(zip(cells, WIDTHS, strict=True))
    ]
    print_lines("  ".join(aligned).rstrip())


def main() -> int:
    """Runs the program."""
    return start(app, NAME)
