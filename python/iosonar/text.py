"""Text from outside as people may see it: names and notices may hold what moves the cursor or turns the line around."""

from __future__ import annotations

import os
import re
from pathlib import Path

_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 but tab and newline, DEL, C1
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # direction of writing
    "\u2028\u2029\ufeff\ufffe\uffff"  # line ends that are none to a terminal, what XML forbids
    "\ud800-\udfff]"  # bytes of a path that are no UTF-8, and halves of JSON's pairs
)
_BREAKS = re.compile("[\t\n]")


def plain(text: str) -> str:
    r"""One line without control characters: these stand there as in `\x1b` and `\u202e`."""
    return _BREAKS.sub(_escaped, lines(text))


def lines(text: str) -> str:
    """The same with its tabs and line ends."""
    return _UNSAFE.sub(_escaped, text)


def shown(path: str | Path) -> str:
    """A path for people."""
    return plain(os.fspath(path))


def _escaped(found: re.Match[str]) -> str:
    code = ord(found[0])
    if 0xDC80 <= code <= 0xDCFF:
        # How Python holds a byte that is no UTF-8.
        code -= 0xDC00
    short = {0x09: "\\t", 0x0A: "\\n", 0x0D: "\\r"}
    return short.get(code) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")
