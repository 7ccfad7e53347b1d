"""Makes external text safe to print: names may contain control characters."""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import re
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path

_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 except tab and newline, DEL, C1
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # text direction
    "\u2028\u2029\ufffe\uffff"  # line ends that terminals ignore, characters that XML forbids
    "\xad\u180e\u200b\u2060-\u2065\u206a-\u206f\ufeff\ufff9-\ufffb"  # invisible
    "\U0001d173-\U0001d17a\U000e0000-\U000e007f"  # invisible
    "\ud800-\udfff]"  # bytes of a path that are not UTF-8, lone surrogates in JSON
)
_BREAKS = re.compile("[\t\n]")
_ADDRESS = re.compile(r"(s3):/(?=[^/])")

MAX_STEM_BYTES = 180
"""A longer stem is shortened: with suffixes, a name may have at most 255 bytes."""


def plain(text: str) -> str:
    r"""One line with control characters escaped, as `\x1b` or `\u202e`."""
    return _BREAKS.sub(_escaped, lines(text))


def lines(text: str) -> str:
    """The same, but keeps tabs and line ends."""
    return _UNSAFE.sub(_escaped, text)


def nearest(typed: str, known: Sequence[str]) -> str:
    """The known name most similar to the typed one, as a question; if none is similar, all known names."""
    near = difflib.get_close_matches(typed, known, n=1)
    return f"did you mean {near[0]}?" if near else f"known: {' '.join(known)}"


def why_wrong(error: Exception) -> str:
    """Why JSON cannot be used, without the words of the parser, which are about its own state."""
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, json.JSONDecodeError | UnicodeError):
        return "it is no valid JSON"
    if isinstance(error, KeyError):
        return f"it has no {plain(str(error.args[0]))}"
    text = plain(str(error))
    return "a number has too many digits" if text.startswith("Exceeds the limit") else text


def shown(path: str | Path) -> str:
    """A path, escaped for printing."""
    return plain((isinstance(path, Path) and address_of(path)) or os.fspath(path))


def address_of(path: Path) -> str | None:
    """The address in an object store, such as `s3://bucket/key`, that a path names; None for a file.

    A path has one slash where the user typed two. A file of such a name has an absolute path.
    """
    text = os.fspath(path)
    return _ADDRESS.sub(r"\1://", text, count=1) if _ADDRESS.match(text) else None


def listed(names: Sequence[str]) -> str:
    """Names in a sentence: a, b and c."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def width(text: str) -> int:
    """The columns of a terminal that a text takes: two for a character of East Asia, none for a combining one."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(each) else 2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in text
    )


def padded(text: str, to: int, *, right: bool = False) -> str:
    """A text with spaces after it, or before it at the right, as wide as a column."""
    space = " " * (to - width(text))
    return space + text if right else text + space


def aligned(table: Sequence[Sequence[str]]) -> Iterator[str]:
    """The rows of a table as lines, with columns of the same width."""
    widths = [max(map(width, column)) for column in zip(*table, strict=True)]
    for row in table:
        yield "  ".join(map(padded, row, widths)).rstrip()


def short_name(stem: str) -> str:
    """Shortens a stem to MAX_STEM_BYTES, with a hash."""
    name = os.fsencode(stem)
    if len(name) <= MAX_STEM_BYTES:
        return stem
    # Drops the rest of a character that was cut.
    head = name[:MAX_STEM_BYTES].decode(errors="ignore")
    return f"{head}~{hashlib.sha256(name).hexdigest()[:8]}"


def joined_names(stems: Sequence[str]) -> str:
    """One name for several: `old.1-3` for `old.1` to `old.3`, else `a-and-2-more`; shortened."""
    first = short_name(stems[0])
    if len(stems) == 1:
        return first
    parts = [part for stem in stems if (part := re.fullmatch(r"(.*?)(\d+)", stem))]
    if len(parts) == len(stems) and len({part[1] for part in parts}) == 1:
        numbers = [int(part[2]) for part in parts]
        if numbers == list(range(numbers[0], numbers[0] + len(stems))):
            return f"{first}-{parts[-1][2]}"
    return f"{first}-and-{len(stems) - 1}-more"


def _escaped(found: re.Match[str]) -> str:
    code = ord(found[0])
    if 0xDC80 <= code <= 0xDCFF:
        # Python's `surrogateescape` for a byte that is not UTF-8.
        code -= 0xDC00
    short = {0x09: "\\t", 0x0A: "\\n", 0x0D: "\\r"}
    if code > 0xFFFF:
        return f"\\U{code:08x}"
    return short.get(code) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")
