"""Draws figures in processes of their own: matplotlib is Python, so nothing else would go on within one process."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import IO, Any, cast

from iosonar.figures.model import Figure
from iosonar.figures.palette import Theme
from iosonar.figures.size import Size

MOST_PROCESSES = 4
WORTH_PROCESSES = 4
"""Fewer pictures than this are drawn in this process: starting another takes as long."""

Draw = Callable[[Figure, Path, Size, Theme], None]


class Drawers:
    """Draws in the background; leaving its context waits for what was begun."""

    def __init__(self, pictures: int) -> None:
        many = min(os.cpu_count() or 1, MOST_PROCESSES) if pictures >= WORTH_PROCESSES else 0
        self._processes: list[subprocess.Popen[bytes]] = [_start() for _ in range(many)]
        self._free = list(self._processes)
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(max(many, 1), "draw")

    def submit(self, work: Callable[[Draw], None]) -> Future[None]:
        """Runs `work` in the background, with a function that draws."""
        return self._threads.submit(self._with_process, work)

    def __enter__(self) -> Drawers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._threads.shutdown(wait=True, cancel_futures=error is not None)
        for process in self._processes:
            _pipe(process.stdin).close()
            process.wait()
            _pipe(process.stdout).close()

    def _with_process(self, work: Callable[[Draw], None]) -> None:
        if not self._processes:
            from iosonar.figures.with_matplotlib import draw

            return work(draw)
        # There are as many threads as processes.
        with self._lock:
            process = self._free.pop()
        try:
            work(lambda *call: _ask(process, call))
        finally:
            with self._lock:
                self._free.append(process)


def _start() -> subprocess.Popen[bytes]:
    # The same modules as here, however this program came by them.
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    words = [sys.executable, "-m", "iosonar.figures.worker"]
    return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)


def _ask(process: subprocess.Popen[bytes], call: tuple[Any, ...]) -> None:
    pickle.dump(call, _pipe(process.stdin), pickle.HIGHEST_PROTOCOL)
    _pipe(process.stdin).flush()
    error = pickle.load(_pipe(process.stdout))
    if error is not None:
        raise error


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    return cast(IO[bytes], pipe)
