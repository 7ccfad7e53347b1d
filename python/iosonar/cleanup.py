"""Removes temporary directories, unfinished files and child processes, however the program ends."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from threading import RLock

Remove = Callable[[], None]


class Cleanup:
    """The removers of all temporary files and child processes that exist now."""

    def __init__(self) -> None:
        self._removers: dict[int, Remove] = {}
        self._processes: set[int] = set()
        self._numbers = count()
        self.lock = RLock()
        """Held from creating a thing until its remover is registered, and during exit."""

    def add(self, remove: Remove, *, process: bool = False) -> Remove:
        """Registers a remover; returns a function that runs it once and unregisters it.

        `process` marks the remover of a child process.
        """
        number = next(self._numbers)
        with self.lock:
            self._removers[number] = remove
            if process:
                self._processes.add(number)

        def done() -> None:
            with self.lock:
                remove = self._removers.pop(number, None)
            if remove is not None:
                remove()

        return done

    def run_all_and_block(self) -> None:
        """Runs all removers and keeps the lock: other threads block before they create anything more.

        Processes go first, since a child may create its output file again after the removal.
        After that, newer things go before older ones.
        """
        self.lock.acquire()
        for number in sorted(self._removers, key=lambda number: (number in self._processes, number), reverse=True):
            self._removers[number]()

    def block_if_exiting(self) -> None:
        """Blocks forever during exit: an error at that time is a consequence of the cleanup, and needs no message."""
        with self.lock:
            pass


cleanup = Cleanup()
"""The instance of this process."""
