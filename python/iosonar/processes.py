"""Processes that this program started, directly or not."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path


def children(process: int) -> list[int]:
    """The processes that a process started, of its first thread; none if it has ended."""
    try:
        return [int(each) for each in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
    except OSError:
        return []


def descendants(process: int) -> list[int]:
    """The children of a process, theirs, and so on; children before their parents."""
    return [each for child in children(process) for each in (*descendants(child), child)]


def kill_tree(process: int) -> None:
    """Kills a process and its descendants. Each is stopped first, so that it starts no other meanwhile."""
    with suppress(OSError):
        os.kill(process, signal.SIGSTOP)
    for child in children(process):
        kill_tree(child)
    with suppress(OSError):
        os.kill(process, signal.SIGKILL)


def end(processes: Mapping[int, str]) -> None:
    """Ends processes, which are given with their start times: TERM, and KILL for those that are left after a second.

    Waits until they have ended, but for those that the kernel does not end at once: at most a second more.
    """
    begun = time.monotonic()
    while left := [process for process, started in processes.items() if started and started_at(process) == started]:
        after = time.monotonic() - begun
        for process in left:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGTERM if after < 1 else signal.SIGKILL)
        if after > 2:
            return
        time.sleep(0.02)


def started_at(process: int) -> str:
    """When a process started, in clock ticks since the boot; empty if it has ended."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return ""
    # The name, in parentheses, may hold spaces.
    fields = stat.rpartition(")")[2].split()
    return fields[19] if fields[0] != "Z" else ""
