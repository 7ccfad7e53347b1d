"""KeyboardInterrupt, held back where it would leave something half done.

Python raises it between any two calls: after a message was sent, and before that is noted.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class _Interrupts:
    is_held = False
    is_pending = False


def interrupt() -> None:
    """Raises KeyboardInterrupt, now or at the end of what must not be interrupted. For handlers of signals."""
    if not _Interrupts.is_held:
        raise KeyboardInterrupt
    _Interrupts.is_pending = True


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Holds back `interrupt` until the end of this context, which must not wait for anything."""
    if _Interrupts.is_held or threading.current_thread() is not threading.main_thread():
        yield
        return
    _Interrupts.is_held = True
    try:
        yield
    finally:
        _Interrupts.is_held = False
        if _Interrupts.is_pending:
            _Interrupts.is_pending = False
            raise KeyboardInterrupt
