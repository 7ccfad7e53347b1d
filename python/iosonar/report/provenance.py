"""Outputs name the inputs that they show, so that no page or picture is replaced by that of another input unasked.

The mark is at the end of a file: a comment in pages and SVG, a text chunk in PNG.
"""

from __future__ import annotations

import json
import os
import re
import struct
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

from iosonar.errors import UserError
from iosonar.report.output_options import OutputOptions
from iosonar.report.outputs import write_whole
from iosonar.table import SourceFile
from iosonar.text import address_of, shown

KEY = "iosonar-inputs"
TAIL_BYTES = 1 << 16
_MARK = re.compile(KEY.encode() + rb"[ \0](\[.*?\])")
_PNG_END = struct.pack(">I4sI", 0, b"IEND", zlib.crc32(b"IEND"))


def inputs_of(files: Sequence[SourceFile], directory: Path) -> tuple[str, ...]:
    """The files as seen from the directory of the output, the same when both are moved together; addresses."""
    return tuple(
        address_of(file.given) or os.path.relpath(os.path.realpath(file.given), os.path.realpath(directory))
        for file in files
    )


def write_claimed(path: Path, options: OutputOptions, write: Callable[[Path], None]) -> None:
    """Writes an output with its mark."""

    def work(unfinished: Path) -> None:
        write(unfinished)
        _mark(unfinished, options.inputs)

    write_whole(path, work)


def refuse_others(stem: str, options: OutputOptions, page: str = "report") -> None:
    """Refuses to replace a page or pictures of other inputs that have the same names, unless the user asked for it."""
    if options.overwrite:
        return
    own = re.compile(rf"{re.escape(stem)}\.(?:{page}\.html|[a-z]\d{{1,3}}\.[\w.-]+\.(?:png|svg))")
    try:
        found = sorted(path for path in options.directory.iterdir() if own.fullmatch(path.name) and path.is_file())
    except OSError:
        return
    for path in found:
        refuse_other(path, options, "--out", "directory")


def refuse_other(path: Path, options: OutputOptions, option: str, what: str = "file") -> None:
    """Refuses to replace this output of other inputs, unless the user asked for it."""
    if options.overwrite or not path.is_file() or (inputs := _claimed(path)) == options.inputs:
        return
    of = "not known to be of this input" if inputs is None else f"of {', '.join(map(shown, inputs))}"
    raise UserError(
        f"{shown(path)} exists, and is {of}: name another {what} with {option}, or replace it with --overwrite"
    )


def _mark(path: Path, inputs: Sequence[str]) -> None:
    # As ASCII, without the characters that end a comment or the list.
    names = json.dumps(list(inputs)).replace("-", r"\u002d")
    text = f"{KEY} [{names[1:-1].replace(']', chr(92) + 'u005d').replace('>', chr(92) + 'u003e')}]"
    with path.open("r+b") as file:
        is_picture = file.read(4) == b"\x89PNG"
        file.seek(0, os.SEEK_END)
        if not is_picture:
            file.write(f"<!-- {text} -->\n".encode())
            return
        file.seek(-len(_PNG_END), os.SEEK_END)
        # The key of a text chunk ends with a zero.
        content = b"tEXt" + text.replace(" ", "\0", 1).encode()
        file.write(struct.pack(">I", len(content) - 4) + content + struct.pack(">I", zlib.crc32(content)) + _PNG_END)


def _claimed(path: Path) -> tuple[str, ...] | None:
    """The inputs that an output shows; None if it does not say."""
    with path.open("rb") as file:
        file.seek(max(os.fstat(file.fileno()).st_size - TAIL_BYTES, 0))
        found = _MARK.findall(file.read())
    try:
        return tuple(str(name) for name in json.loads(found[-1])) if found else None
    except ValueError:
        return None
