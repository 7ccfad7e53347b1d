"""Kernels beside the engine: while some rows are fetched, NumPy works on those before, outside of Python's lock."""

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
    """`work` of each part, in their order. No more parts are held than are worked on and the one that is being made."""
    with ThreadPoolExecutor(THREADS) as threads:
        begun: deque[Future[R]] = deque()
        for part in parts:
            begun.append(threads.submit(work, part))
            del part
            while len(begun) >= THREADS or (begun and begun[0].done()):
                yield begun.popleft().result()
        while begun:
            yield begun.popleft().result()
