"""Runs the binary of the Rust half, and stops it when this program ends."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from iosonar.cleanup import cleanup
from iosonar.errors import UsageError, UserError
from iosonar.text import lines

WRONG_COMMAND_LINE = 2
CUT_SHORT = 5
WITH_RESULT = (0, 4)
"""Exit codes of a run that ended by itself; 4: some of its requests failed."""

STOP_S = 10.0
"""A run that is stopped writes the requests so far. After this time it is killed."""

SHOWN_LINES = 6
"""Last lines of the binary's messages that an error has."""

Output = tuple[int, str, str]
"""Exit code, standard output and standard error."""


def find() -> Path:
    """The binary beside this program's interpreter, or in PATH."""
    beside = Path(sys.argv[0]).resolve().with_name("iosonar")
    for found in (beside, Path(sys.executable).with_name("iosonar")):
        if found.is_file():
            return found
    in_path = shutil.which("iosonar")
    if in_path is None:
        raise UserError("no program `iosonar` beside this one or in PATH; install the package iosonar")
    return Path(in_path)


def call(words: Sequence[str], lock: int | None = None) -> Output:
    """Runs the binary to its end. It inherits the descriptor `lock`, and keeps that lock if this program dies."""
    with cleanup.lock:
        process = subprocess.Popen(
            [find(), *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=() if lock is None else (lock,),
        )
        remove = cleanup.add(partial(_stop, process), process=True)
    try:
        out, err = process.communicate()
    finally:
        remove()
    return process.returncode, out.decode(errors="replace"), err.decode(errors="replace")


def text_of(words: Sequence[str]) -> str:
    """The standard output of a command that must succeed."""
    code, out, err = call(words)
    if code:
        raise failure(code, err)
    return out


def failure(code: int, messages: str, about: Callable[[str], str] = str) -> UserError:
    """The error of a command, with its last messages."""
    said = [line.removeprefix("iosonar: ") for line in lines(messages).strip().split("\n") if line]
    errors = [line for line in said if not line.startswith("FAKE RESULT:")]
    text = about("\n".join((errors or said)[-SHOWN_LINES:]) or f"iosonar ended with exit code {code}")
    return UsageError(text) if code == WRONG_COMMAND_LINE else UserError(text)


def _stop(process: subprocess.Popen[bytes]) -> None:
    with suppress(OSError):
        process.terminate()
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
