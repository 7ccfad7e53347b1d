"""Names of results: label, path, host, device and input."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import PurePath

from iosonar.errors import UserError
from iosonar.text import plain

SUFFIXES = {"replay.gz": ".replay.gz", "gz": ".replay.gz", "parquet": ".replay.parquet"}
"""The suffix for each value of `output_format`."""

OF_CALLS = ".calls-run.parquet"
"""The suffix of a result of calls."""

REPLICATE = re.compile(r"(?:repeat|replicate|run)[-_]?\d+", re.IGNORECASE)
"""A path component that only counts repetitions."""

_INPUT_SUFFIXES = re.compile(r"\.(load|replay|calls|strace|gz|zst|parquet)(?=\.|$)")
_LONGEST = 200
"""In bytes; a file name has at most 255, and unfinished files have longer ones."""


def output_name(label: str, parts: Sequence[str], suffix: str) -> str:
    """The name of a result. Slashes become dots."""
    name = label + "".join("." + part.strip("/").replace("/", ".") for part in parts if part.strip("/")) + suffix
    name = re.sub(r"/+", ".", name)
    if name.startswith((".", "-")) or plain(name) != name:
        raise UserError(f"invalid name of a result, {plain(name)}: change output_label or the name of the directory")
    if len(name.encode("utf-8", "surrogateescape")) > _LONGEST:
        raise UserError(f"the name of a result is longer than {_LONGEST} bytes: {plain(name)}: shorten output_label")
    return name


def device_part(device: str) -> str:
    """A device as a part of a name: without /dev."""
    return device.removeprefix("/dev/").removeprefix("dev/")


def input_part(path: str) -> str:
    """An input file as a part of a name: without directory and suffixes."""
    return _INPUT_SUFFIXES.sub("", PurePath(path).name)


def refuse_duplicates(names: Sequence[str]) -> None:
    """Two instances must not write the same result."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise UserError(
            f"two instances have the same result name, {twice[0]}: "
            "set output_add_host=1, output_add_device=1 or output_add_input=1"
        )
