"""Runs kernels in threads: NumPy releases the GIL, so it works while the engine fetches the next rows."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

P = TypeVar("P")
R = TypeVar("R")

THREADS = min(os.cpu_count() or 1, 4)


def in_threads(work: Callable[[P], R], parts: Iterable[P]) -> Iterator[R]:
    """`work` of each part, in order. Holds no more parts than are being processed, plus the next one."""
    with ThreadPoolExecutor(THREADS) as threads:
        pending: deque[Future[R]] = deque()
        for part in parts:
            pending.append(threads.submit(work, part))
            del part
            while len(pending) >= THREADS or (pending and pending[0].done()):
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
