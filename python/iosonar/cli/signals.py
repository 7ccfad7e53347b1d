"""Handles SIGINT, SIGTERM and SIGHUP. A signal that is ignored at the start stays ignored.

A thread handles them at once: the main thread may be inside an engine or wait for a child process.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from iosonar.cleanup import cleanup
from iosonar.interrupts import interrupt

MESSAGES = {
    signal.SIGINT: "interrupted",
    signal.SIGTERM: "ended by SIGTERM",
    signal.SIGHUP: "ended by SIGHUP",
}


@contextmanager
def handling_signals(name: str) -> Iterator[None]:
    """In this context, a signal removes all temporary files and exits."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    read, write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    os.set_blocking(read, True)
    wakeup = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    watcher = threading.Thread(target=_watch, args=(name, read), daemon=True)
    watcher.start()
    try:
        # The wakeup file descriptor gets the signal number; nothing else is needed.
        with _handled(lambda *_: None):
            yield
    finally:
        signal.set_wakeup_fd(wakeup)
        os.close(write)
        watcher.join()
        os.close(read)


@contextmanager
def raising_signals() -> Iterator[None]:
    """In this context, a signal raises KeyboardInterrupt in the main thread, except for the second one.

    For work that has to undo things first, which a second Ctrl-C must not cut short by accident.
    """
    count = 0

    def on_signal(*_: object) -> None:
        nonlocal count
        count += 1
        if count != 2:
            interrupt()
            return
        with suppress(OSError):
            os.write(2, b"still cleaning up; press Ctrl-C again to give up\n")

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    with _handled(on_signal):
        yield


@contextmanager
def _handled(handler: Callable[..., None]) -> Iterator[None]:
    """In this context, the handler gets the signals that were not ignored before."""
    earlier = {each: signal.getsignal(each) for each in MESSAGES}
    for each, before in earlier.items():
        if before not in (signal.SIG_IGN, None):
            signal.signal(each, handler)
    try:
        yield
    finally:
        for each, before in earlier.items():
            if before is not None:
                signal.signal(each, before)


def _watch(name: str, read: int) -> None:
    while numbers := os.read(read, 1):
        if numbers[0] in MESSAGES:
            _end(name, signal.Signals(numbers[0]))


def _end(name: str, number: signal.Signals) -> None:
    cleanup.run_all_and_block()
    with suppress(OSError, ValueError):
        os.write(sys.stderr.fileno(), f"iosonar {name}: {MESSAGES[number]}\n".encode())
    os._exit(128 + number)
