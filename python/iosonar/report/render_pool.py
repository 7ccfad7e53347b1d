"""Draws figures in child processes: drawing in this process would hold the GIL, and so stop the computation."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from iosonar.cleanup import cleanup
from iosonar.errors import UserError
from iosonar.figures.model import Figure
from iosonar.figures.palette import Theme
from iosonar.figures.size import Size

MAX_PROCESSES = 4
MIN_PICTURES = 4
"""Below this, pictures are drawn in this process: starting a child takes as long."""

Draw = Callable[[Figure, Path, Size, Theme], None]


@dataclass(frozen=True)
class Drawer:
    """A process that draws: where it reads calls, and where it answers."""

    calls: IO[bytes]
    answers: IO[bytes]


class RenderPool:
    """Draws in the background. Leaving the context waits for submitted work; on an error it kills the children."""

    def __init__(self, pictures: int, suffix: str) -> None:
        count = min(os.cpu_count() or 1, MAX_PROCESSES) if pictures >= MIN_PICTURES else 0
        self._drawers: list[Drawer] = []
        self._process: subprocess.Popen[bytes] | None = None
        self._remove: Callable[[], None] = lambda: None
        if count:
            with cleanup.lock:
                self._process, self._drawers = _start(count, suffix)
                self._remove = cleanup.add(partial(_kill, self._process), process=True)
        self._free = list(self._drawers)
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
            for drawer in self._drawers:
                drawer.calls.close()
            if self._process:
                self._process.wait()
        # On an error, pending pictures are dropped.
        self._remove()
        self._threads.shutdown(wait=True, cancel_futures=True)
        for drawer in self._drawers:
            with suppress(OSError):
                drawer.calls.close()
            drawer.answers.close()

    def _with_process(self, work: Callable[[Draw], None]) -> None:
        if not self._drawers:
            from iosonar.figures.drawing import draw

            return work(draw)
        # There are as many threads as processes.
        with self._lock:
            drawer = self._free.pop()
        try:
            work(lambda *call: _draw_in(drawer, call))
        finally:
            with self._lock:
                self._free.append(drawer)


def _start(count: int, suffix: str) -> tuple[subprocess.Popen[bytes], list[Drawer]]:
    pipes = [(os.pipe(), os.pipe()) for _ in range(count)]
    theirs = [(calls[0], answers[1]) for calls, answers in pipes]
    # The child imports from the same sys.path.
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, "-m", "iosonar.figures.worker", suffix, *(f"{one}:{two}" for one, two in theirs)]
    try:
        # In its own session, so that Ctrl-C reaches this program alone; cleanup then kills the children.
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,
            pass_fds=[end for pair in theirs for end in pair],
        )
    finally:
        for pair in theirs:
            for end in pair:
                os.close(end)
    return process, [Drawer(os.fdopen(calls[1], "wb"), os.fdopen(answers[0], "rb")) for calls, answers in pipes]


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kills the process and those that it forked."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _draw_in(drawer: Drawer, call: tuple[Any, ...]) -> None:
    try:
        pickle.dump(call, drawer.calls, pickle.HIGHEST_PROTOCOL)
        drawer.calls.flush()
        error = pickle.load(drawer.answers)
    except (EOFError, BrokenPipeError, pickle.UnpicklingError) as error:
        raise UserError(
            "a drawing process was killed, perhaps by the OOM killer, and its picture is missing; free some memory and "
            "try again"
        ) from error
    if error is not None:
        raise error
