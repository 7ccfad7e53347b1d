"""Names of hosts, files and runs that are safe in a command line."""

from __future__ import annotations

import re

from iosonar.errors import UserError
from iosonar.text import plain

_HOST = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:@%\[\]-]*")
_RUN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_LONGEST_FILE_NAME = 200


def checked_host(name: str) -> str:
    """The name of a host, if it is one: `host`, `user@host`, an address."""
    user, at, host = name.rpartition("@")
    if not _HOST.fullmatch(name) or not host or host.startswith("-") or (at and not user):
        raise UserError(
            f"{plain(name)!r} is not a host name; it consists of letters, digits and _ . : @ % [ ] -,"
            " and does not begin with -: correct the list of hosts"
        )
    return name


def checked_run(name: str) -> str:
    """The name of a run, if it is one."""
    if not _RUN.fullmatch(name):
        raise UserError(f"{plain(name)!r} cannot be the name of a run: use letters, digits and _ . -")
    return name


def checked_file(name: str) -> str:
    """The name of a file without its directory, if it is one."""
    if (
        "/" in name
        or "\0" in name
        or name.startswith(".")
        or not 0 < len(name.encode(errors="surrogateescape")) <= _LONGEST_FILE_NAME
    ):
        raise UserError(
            f"{plain(name)!r} cannot be the name of a file on a host: use up to {_LONGEST_FILE_NAME} bytes"
            " without a slash, and no leading dot"
        )
    return name
