"""Calls the program `iosonar`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path


class ScenarioError(Exception):
    """A scenario that could not be run or diagnosed."""


def environment() -> dict[str, str]:
    """With the programs beside this Python before those of the machine."""
    return os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}:/usr/sbin:/sbin"}


def call(*words: object, may_exit: Sequence[int] = (0,)) -> str:
    """What `iosonar WORDS` prints."""
    texts = ["iosonar", *map(str, words)]
    done = subprocess.run(texts, capture_output=True, text=True, env=environment(), timeout=600)
    if done.returncode not in may_exit:
        raise ScenarioError(f"iosonar {words[0]}: {reason(done.stderr or done.stdout, done.returncode)}")
    return done.stdout


def reason(printed: str, code: int) -> str:
    """Why a command failed: the line with its error, or the last one."""
    lines = [line for line in printed.splitlines() if line.strip()] or [f"exit code {code}"]
    return next((line for line in lines if line.startswith("error")), lines[-1]).strip()
