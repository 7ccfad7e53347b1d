"""`iosonar view`: a page on loopback that draws anew what is zoomed into."""

from __future__ import annotations

import os
import sys
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Annotated

import typer

from iosonar.cli.desktop import open_page
from iosonar.cli.parser import Command
from iosonar.cli.run import guarded, print_error, print_skipped_rows, start, write
from iosonar.cli.times import moment
from iosonar.errors import UsageError, UserError
from iosonar.figures.palette import Theme
from iosonar.text import address_of, plain

EXAMPLES = """
The page draws the part that is zoomed into, down to single requests: their operation, offset, size, times and delay.
A box selects requests: their share, the slowest, and what was in flight beside it; they leave as CSV or as a load.
Only this machine reaches the page, by an address with a random token. From elsewhere: ssh -L PORT:127.0.0.1:PORT HOST.
An index is made once for each table, of 50 to 70 bytes per request. It is removed when another is made and the table
is gone.

\b
Examples:
  iosonar view run.replay.parquet
  iosonar view run.replay.parquet --figure latency.realtime --from 10 --to 12
  iosonar view --follow run.replay.parquet     # while the replay goes on
  iosonar view mysql.load.gz --port 8080

Exit codes: 0 ended with Ctrl-C, 1 failed, 2 the command line was wrong.
"""

DIAGNOSE = "import sys; from iosonar.cli.diagnose import main; sys.exit(main())"
"""The program `iosonar-diagnose`, wherever it is installed."""

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command(cls=Command, epilog=EXAMPLES)
def view(
    run: Annotated[
        Path,
        typer.Argument(metavar="RUN", help="A run or load, also s3://BUCKET/KEY; with --follow, a run or its journal."),
    ],
    follow: Annotated[bool, typer.Option("--follow", help="Show a replay that goes on.")] = False,
    figure: Annotated[
        str, typer.Option(metavar="NAME", help="The address leads to this diagram, such as latency.realtime.")
    ] = "",
    from_: Annotated[
        float | None, typer.Option("--from", metavar="TIME", parser=moment, help="… zoomed in from this time: 90, 2m.")
    ] = None,
    to: Annotated[float | None, typer.Option("--to", metavar="TIME", parser=moment, help="… up to this time.")] = None,
    port: Annotated[int, typer.Option(metavar="PORT", min=0, max=65535, help="0 is any.")] = 0,
    browser: Annotated[
        bool,
        typer.Option("--open", "--browser", help="Open a browser; other users of this machine may see the address."),
    ] = False,
    index: Annotated[
        Path | None, typer.Option(metavar="DIRECTORY", help="Keep the index there; default: ~/.cache/iosonar/view.")
    ] = None,
    theme: Annotated[Theme | None, typer.Option(help="Colours of the page; default: the browser's choice.")] = None,
    memory: Annotated[
        str, typer.Option(metavar="SIZE", help="Memory limit for reading the table: 512M, or bytes.")
    ] = "512MiB",
) -> None:
    """Zoom into a run down to single requests, in a browser."""

    def work() -> None:
        if follow:
            if figure or from_ is not None or to is not None:
                raise UsageError("--figure, --from, --to: not with --follow")
            if address := address_of(run):
                raise UsageError(f"--follow: {plain(address)} is in an object store; follow a replay where it writes")
            _follow(run, port, theme, browser=browser)
            return
        if (from_ is None) != (to is None) or (from_ is not None and to is not None and not from_ < to):
            raise UsageError("give --from with a later --to")
        from iosonar.table import open_files
        from iosonar.table.embedded import connect
        from iosonar.table.engine import EngineOptions
        from iosonar.table.views import define_views
        from iosonar.view.figures import Figures
        from iosonar.view.findings import Findings, place
        from iosonar.view.index import cache_directory, index_of
        from iosonar.view.page import View
        from iosonar.view.table import Table

        with open_files([run]) as (files, spill), connect(spill, EngineOptions(memory)) as connection:
            [file] = files
            if file.kind.view != "requests":
                raise UserError(f"{file.path} is {file.kind.words}: the view shows requests")
            print_skipped_rows(files)
            define_views(connection, files)
            with _Progress() as progress:
                found, _ = index_of(file, connection, index or cache_directory(), progress)
            is_run = file.kind.is_run
            figures = Figures(found, file.name, is_run=is_run)
            name = figure or figures.names[0]
            if name not in figures.names:
                raise UserError(f"there is no diagram {name}: {', '.join(figures.names)}")
            at = place(name, from_, to) if figure or from_ is not None else ""
            command = [sys.executable, "-c", DIAGNOSE, "--json", "--memory", memory, "--", os.fspath(file.local)]
            with closing(Findings(command, figures.names)) as findings:
                shown = View(figures, file.name, Table(file, connection, spill), theme, findings)
                serve(shown, port, browser=browser, at=at)

    guarded("view", work)


def _follow(run: Path, port: int, theme: Theme | None, *, browser: bool) -> None:
    from iosonar.view.follow import following

    with suppress(OSError):
        # Of a processor, only what the replay and others leave. Threads that are started later inherit it.
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    with following(run, theme) as view:
        serve(view, port, browser=browser)


def serve(shown: object, port: int, *, browser: bool, at: str = "") -> None:
    """Serves a view until the user ends it; its address leads to a place."""
    from iosonar.view.page import View
    from iosonar.view.server import Server

    assert isinstance(shown, View)
    try:
        server = Server(shown.routes(), port)
    except OSError as error:
        raise UserError(f"cannot listen on port {port}: {error.strerror or error}") from error
    with server:
        url = f"{server.url}#{at}" if at else server.url
        write(f"{url}\n")
        print_error("Ctrl-C ends it.")
        if browser:
            open_page(url)
        server.serve_forever(poll_interval=0.2)


class _Progress:
    """Shows how far the index is, if it takes more than a moment."""

    AFTER_S, EACH_S = 1.0, 0.5

    def __init__(self) -> None:
        self.started = self.said = time.monotonic()
        self.is_shown = False

    def __enter__(self) -> _Progress:
        return self

    def __call__(self, what: str, share: float) -> None:
        now = time.monotonic()
        is_terminal = sys.stderr is not None and sys.stderr.isatty()
        wait = self.EACH_S if is_terminal else 10.0
        if now - self.started < self.AFTER_S or now - self.said < wait:
            return
        self.said, self.is_shown = now, is_terminal
        text = f"index: {what} {100 * share:.0f} %"
        if is_terminal:
            sys.stderr.write(f"\r{text:40}")
            sys.stderr.flush()
        else:
            print_error(text)

    def __exit__(self, *_: object) -> None:
        if self.is_shown:
            sys.stderr.write(f"\r{'':40}\r")
            sys.stderr.flush()


def main() -> int:
    """Runs the program."""
    return start(app, "view")
