"""Calls the program `iosonar`."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence

from scenario import TOP


class Failed(Exception):
    """A scenario that could not be run or diagnosed."""


def environment() -> dict[str, str]:
    """With the programs of .venv before those of the machine."""
    return os.environ | {"PATH": f"{TOP / '.venv/bin'}:{os.environ['PATH']}:/usr/sbin:/sbin"}


def call(*words: object, may_exit: Sequence[int] = (0,)) -> str:
    """What `iosonar WORDS` prints."""
    texts = ["iosonar", *map(str, words)]
    done = subprocess.run(texts, capture_output=True, text=True, env=environment(), timeout=600)
    if done.returncode not in may_exit:
        last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:] or [f"exit code {done.returncode}"]
        raise Failed(f"iosonar {words[0]}: {last[0]}")
    return done.stdout
