"""Draws figures in child processes: matplotlib holds the GIL, so drawing in this process would stop the computation."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import IO, Any, cast

from iosonar.cleanup import cleanup
from iosonar.errors import UserError
from iosonar.figures.model import Figure
from iosonar.figures.palette import Theme
from iosonar.figures.size import Size

MAX_PROCESSES = 4
MIN_PICTURES = 4
"""Below this, pictures are drawn in this process: starting a child takes as long."""

Draw = Callable[[Figure, Path, Size, Theme], None]


class RenderPool:
    """Draws in the background. Leaving the context waits for submitted work; on an error it kills the children."""

    def __init__(self, pictures: int) -> None:
        count = min(os.cpu_count() or 1, MAX_PROCESSES) if pictures >= MIN_PICTURES else 0
        self._processes: list[subprocess.Popen[bytes]] = []
        self._removers: list[Callable[[], None]] = []
        for _ in range(count):
            with cleanup.lock:
                process = _start()
                self._removers.append(cleanup.add(partial(_kill, process), process=True))
            self._processes.append(process)
        self._free = list(self._processes)
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(max(count, 1), "draw")

    def submit(self, work: Callable[[Draw], None]) -> Future[None]:
        """Runs `work` in the background, with a function that draws."""
        return self._threads.submit(self._with_process, work)

    def __enter__(self) -> RenderPool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self._threads.shutdown(wait=True)
            for process in self._processes:
                _pipe(process.stdin).close()
                process.wait()
        # On an error, pending pictures are dropped.
        for remove in self._removers:
            remove()
        self._threads.shutdown(wait=True, cancel_futures=True)
        for process in self._processes:
            with suppress(OSError):
                _pipe(process.stdin).close()
            _pipe(process.stdout).close()

    def _with_process(self, work: Callable[[Draw], None]) -> None:
        if not self._processes:
            from iosonar.figures.with_matplotlib import draw

            return work(draw)
        # There are as count threads as processes.
        with self._lock:
            process = self._free.pop()
        try:
            work(lambda *call: _draw_in(process, call))
        finally:
            with self._lock:
                self._free.append(process)


def _start() -> subprocess.Popen[bytes]:
    # The child imports from the same sys.path.
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, "-m", "iosonar.figures.worker"]
    # In its own session, so that Ctrl-C reaches this program alone; cleanup then kills the child.
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, start_new_session=True
    )


def _kill(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


def _draw_in(process: subprocess.Popen[bytes], call: tuple[Any, ...]) -> None:
    try:
        pickle.dump(call, _pipe(process.stdin), pickle.HIGHEST_PROTOCOL)
        _pipe(process.stdin).flush()
        error = pickle.load(_pipe(process.stdout))
    except (EOFError, BrokenPipeError, pickle.UnpicklingError) as error:
        raise UserError(
            "a drawing process was killed, perhaps by the OOM killer, and its picture is missing; free some memory and "
            "try again"
        ) from error
    if error is not None:
        raise error


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    return cast(IO[bytes], pipe)
