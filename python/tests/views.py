"""Views of made runs, for tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

from iosonar.table import open_files
from iosonar.table.embedded import connect
from iosonar.table.engine import EngineOptions
from iosonar.table.views import define_views
from iosonar.view.figures import Figures
from iosonar.view.index import index_of
from iosonar.view.page import View
from iosonar.view.server import Server
from iosonar.view.table import Table


@contextmanager
def viewed(run: Path, caches: Path) -> Iterator[View]:
    """The view of a run or load."""
    with open_files([run]) as (files, spill), connect(spill, EngineOptions("512MiB")) as connection:
        [file] = files
        define_views(connection, files)
        index, _ = index_of(file, connection, caches, lambda what, share: None)
        is_run = file.kind.is_run
        yield View(Figures(index, file.name, is_run=is_run), file.name, Table(file, connection, spill))


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
