"""Views of made runs, for tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Thread

from iosonar.table import open_files
from iosonar.table.embedded import connect
from iosonar.table.engine import EngineOptions
from iosonar.table.views import define_views
from iosonar.view.figures import Figures
from iosonar.view.findings import Findings
from iosonar.view.index import index_of
from iosonar.view.page import View
from iosonar.view.server import Server
from iosonar.view.table import Table


@contextmanager
def viewed(run: Path, caches: Path, diagnosis: str = "") -> Iterator[View]:
    """The view of a run or load; `diagnosis` is what `iosonar diagnose --json` prints of it."""
    with open_files([run]) as (files, spill), connect(spill, EngineOptions("512MiB")) as connection:
        [file] = files
        define_views(connection, files)
        index, _ = index_of(file, connection, caches, lambda what, share: None)
        is_run = file.kind.is_run
        figures, table = Figures(index, file.name, is_run=is_run), Table(file, connection, spill)
        if not diagnosis:
            yield View(figures, file.name, table)
            return
        with closing(Findings(["printf", "%s", diagnosis], figures.names)) as findings:
            yield View(figures, file.name, table, None, findings)


@contextmanager
def served(view: View) -> Iterator[Server]:
    """A server of a view."""
    with Server(view.routes()) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
