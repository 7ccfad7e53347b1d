"""How a process ended: by a signal, and by whom as far as that is known, or with what words."""

from __future__ import annotations

import re
import signal
from pathlib import Path

from iosonar.text import plain

_FAULTS = ("SIGSEGV", "SIGBUS", "SIGABRT", "SIGILL", "SIGFPE", "SIGSYS")
"""Signals that a program gets for an error of its own."""


def signal_of(code: int) -> str:
    """The name of the signal that an exit code stands for, as bash or Python tell it; empty if it is none."""
    number = -code if code < 0 else code - 128
    try:
        return signal.Signals(number).name
    except ValueError:
        return ""


def memory_kills() -> int | None:
    """How many processes of this machine the kernel killed for want of memory since it started; None if unknown."""
    try:
        lines = Path("/proc/vmstat").read_text().splitlines()
    except OSError:
        return None
    found = [line.split()[1] for line in lines if line.startswith("oom_kill ")]
    return int(found[0]) if found else None


def by_whom(name: str, memory_kills_before: int | None) -> str:
    """Who sent the signal to a process of this machine, where the campaign did not."""
    now = memory_kills()
    if name == "SIGKILL" and None not in (now, memory_kills_before) and now != memory_kills_before:
        return "by the kernel, which ran out of memory meanwhile"
    return who(name, "", is_memory_excluded=memory_kills_before is not None)


def who(name: str, host: str, *, is_memory_excluded: bool = False) -> str:
    """Who may have sent the signal."""
    if name in _FAULTS:
        return "for an error of its own: please report it"
    if name == "SIGKILL" and not is_memory_excluded:
        on = f" on {host}" if host else ""
        return f"not by the campaign but by a person, a program, or the kernel for want of memory (see `dmesg`{on})"
    return "not by the campaign but by a person or another program"


def words(text: str) -> str:
    """The last line of an error output that says something."""
    # What a line that ends with a colon announces is in the next ones.
    text = re.sub(r":\n\s+(?=\S)", ": ", text)
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("{")]
    errors = [line for line in lines if line.startswith(("error", "iosonar"))]
    return plain((errors or lines or [""])[-1]).removeprefix("error: ").removeprefix("iosonar: ")
