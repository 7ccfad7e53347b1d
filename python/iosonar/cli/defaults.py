"""The user's defaults: the file of `iosonar config`, which the Rust half reads, too.

A table is a command, a key one of its options by its long name. The definition of a command is the only list of them.
"""

from __future__ import annotations

import os
import tomllib
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
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(f"{shown(str(file))}: {plain(str(why))}") from error
    return _of(command, command.make_context(name, [], resilient_parsing=True), table, [name], str(file))


def _of(command: Any, context: Any, table: Any, names: list[str], file: str) -> dict[str, Any]:
    def refuse(key: str, why: str) -> UsageError:
        return UsageError(f"{shown(file)}: {plain('.'.join([*names, key]).rstrip('.'))}: {plain(why)}")

    if not isinstance(table, dict):
        raise refuse("", f"options of a command are in a table, [{names[-1]}]")
    below = getattr(command, "commands", {})
    options = {_long(each): each for each in command.params if each.param_type_name == "option" and not each.hidden}
    found: dict[str, Any] = {}
    for key, value in table.items():
        if key in below and isinstance(value, dict):
            inner = below[key].make_context(key, [], parent=context, resilient_parsing=True)
            found[key] = _of(below[key], inner, value, [*names, key], file)
            continue
        option = options.get(key.replace("_", "-"))
        if option is None:
            raise refuse(key, f"no such option; {nearest(key.replace('_', '-'), [*options, *below])}")
        if key in NEVER:
            raise refuse(key, "no default: name it in each command line")
        if option.is_flag and not isinstance(value, bool):
            raise refuse(key, "expected true or false")
        try:
            option.type_cast_value(context, value)
        except Exception as error:
            # The class is in different modules in different versions of the library.
            if not hasattr(error, "format_message"):
                raise
            raise refuse(key, str(getattr(error, "message", error)).rstrip(".")) from error
        found[option.name] = value
    return found


def _long(option: Any) -> str:
    return next((each.removeprefix("--") for each in option.opts if each.startswith("--")), "")
