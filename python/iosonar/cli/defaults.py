"""The user's defaults: the file of `iosonar config`, which the Rust half reads, too.

A table is a command, a key one of its options by its long name. The definition of a command is the only list of them.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from iosonar.errors import UsageError
from iosonar.text import nearest, plain, shown

VARIABLE = "IOSONAR_CONFIG"
"""Names another file, or an empty text for none."""

NEVER = ("force", "target", "root", "output")
"""What is decided anew for each run, as in the Rust half."""


def path() -> Path | None:
    """The path of the file, whether it exists or not."""
    if VARIABLE in os.environ:
        return Path(os.environ[VARIABLE]) if os.environ[VARIABLE] else None
    directory = os.environ.get("XDG_CONFIG_HOME", "")
    if not Path(directory).is_absolute():
        if not os.environ.get("HOME"):
            return None
        directory = f"{os.environ['HOME']}/.config"
    return Path(directory, "iosonar", "config.toml")


def defaults(command: Any, name: str) -> dict[str, Any]:
    """The defaults of a command and of those below it, by names of parameters, nested as the parser expects."""
    file = path()
    try:
        text = file.read_text(encoding="utf-8") if file else ""
        table = tomllib.loads(text).get(name, {})
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        # A file that is named must exist.
        if isinstance(error, OSError) and VARIABLE not in os.environ and file and not _may_exist(file):
            return {}
        why = error.strerror if isinstance(error, OSError) else str(error)
        place = re.fullmatch(r"(.*) \(at line (\d+), column \d+\)", str(why), re.DOTALL)
        line, why = (f":{place[2]}", place[1]) if place else ("", why)
        raise UsageError(f"{shown(str(file))}{line}: {plain(str(why))}") from error

    def refuse(names: list[str], why: str) -> UsageError:
        return UsageError(f"{shown(str(file))}{_line(text, names)}: {plain('.'.join(names))}: {plain(why)}")

    return _of(command, command.make_context(name, [], resilient_parsing=True), table, [name], refuse)


def _may_exist(file: Path) -> bool:
    """Whether it may exist. One in a directory that this user cannot search, as with HOME=/root, counts as missing."""
    try:
        file.stat()
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return False
    return True


def _line(text: str, names: list[str]) -> str:
    """The line of a table or key, as `:3`, which the parser does not give; empty if it is written in another way."""
    table: list[str] = []
    for number, line in enumerate(text.split("\n"), 1):
        if found := re.match(r"\s*\[([^\[\]]+)\]", line):
            key = table = _parts(found[1])
        elif found := re.match(r"([^=#\[\]{}]+)=", line):
            key = [*table, *_parts(found[1])]
        else:
            continue
        if key == names:
            return f":{number}"
    return ""


def _parts(key: str) -> list[str]:
    return [part.strip(" \t\"'") for part in key.split(".")]


def _of(
    command: Any, context: Any, table: Any, names: list[str], error: Callable[[list[str], str], UsageError]
) -> dict[str, Any]:
    def refuse(key: str, why: str) -> UsageError:
        return error([*names, key], why)

    if not isinstance(table, dict):
        raise error(names, f"options of a command are in a table, [{names[-1]}]")
    below = getattr(command, "commands", {})
    options = {_long(each): each for each in command.params if each.param_type_name == "option" and not each.hidden}
    found: dict[str, Any] = {}
    for key, value in table.items():
        if key in below and isinstance(value, dict):
            inner = below[key].make_context(key, [], parent=context, resilient_parsing=True)
            found[key] = _of(below[key], inner, value, [*names, key], error)
            continue
        option = options.get(key.replace("_", "-"))
        if option is None:
            raise refuse(key, f"no such option; {nearest(key.replace('_', '-'), [*options, *below])}")
        if key in NEVER:
            raise refuse(key, "no default: name it in each command line")
        if option.is_flag and not isinstance(value, bool):
            raise refuse(key, "expected true or false")
        if option.multiple and not isinstance(value, list):
            value = [value]
        try:
            option.process_value(context, value)
        except Exception as wrong:
            # The class is in different modules in different versions of the library.
            if not hasattr(wrong, "format_message"):
                raise
            raise refuse(
                key, str(getattr(wrong, "message", wrong)).removeprefix("Value error, ").rstrip(".")
            ) from wrong
        found[option.name] = value
    return found


def _long(option: Any) -> str:
    return next((each.removeprefix("--") for each in option.opts if each.startswith("--")), "")
