"""What the runs of a series depend on besides the words of their commands: input files, the program, the kernel."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from iosonar.errors import UserError
from iosonar.series import binary
from iosonar.text import shown

PLACES = ("--target", "-t", "--root", "--start-file")
"""Options whose values are no inputs: what a run writes to, and a file that others write."""

_BETWEEN = re.compile(r"[=\s|]+")
"""Between the parts of a word, such as `run=FILE servers=8` or `adjacent with=FILE | dense`."""


def inputs_of(words: Sequence[str]) -> list[str]:
    """The regular files that a command reads, as they are named in it."""
    found: dict[str, None] = {}
    left = iter(words)
    for word in left:
        name, has_value, _ = word.partition("=")
        if name in PLACES:
            if not has_value:
                next(left, None)
        elif not (word.startswith("-t") and len(word) > 2):
            found |= dict.fromkeys(part for part in (word, *_BETWEEN.split(word)) if _is_file(part))
    return list(found)


def _is_file(word: str) -> bool:
    try:
        return Path(word).is_file()
    except OSError:
        # Such as a word that is too long for a name.
        return False


def state_of(commands: Iterable[Sequence[str]]) -> dict[str, Any]:
    """The contents of all inputs of these commands, the program and the kernel, as settings of a series."""
    files = dict.fromkeys(name for words in commands for name in inputs_of(words))
    system = os.uname()
    return {
        **{f"the content of {name}": content_of(Path(name)) for name in files},
        "the program": {"version": binary.text_of(("--version",)).strip(), **content_of(binary.find())},
        "the kernel": f"{system.release} {system.version}",
    }


def content_of(path: Path) -> dict[str, Any]:
    """Size and SHA-256 of a file."""
    try:
        with path.open("rb") as file:
            return {"bytes": os.fstat(file.fileno()).st_size, "sha256": hashlib.file_digest(file, "sha256").hexdigest()}
    except OSError as error:
        raise UserError(f"cannot read {shown(path)}: {error.strerror}") from error
