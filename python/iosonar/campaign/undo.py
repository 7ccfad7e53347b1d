"""The undo journal: what a campaign must undo on its hosts, kept on the controller until it is undone.

An entry is a file, written and synced before the change that it undoes:

    host: a
    what: remove the volume group vg-test
    ---
    vgremove -f vg-test

The command is idempotent, succeeds if there is nothing to undo, and runs by `bash -c` on the host.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from iosonar.errors import UserError

_SEPARATOR = "\n---\n"


class Outcome(Protocol):
    """The result of a command on a host."""

    @property
    def code(self) -> int:
        """The exit code."""

    @property
    def err(self) -> bytes:
        """What the command wrote to standard error."""


@dataclass(frozen=True)
class Entry:
    """One change and the command that undoes it."""

    id: str
    host: str
    what: str
    command: str


@dataclass(frozen=True)
class Failure:
    """An entry that could not be undone; it is still in the journal."""

    entry: Entry
    reason: str


class Undo:
    """The journal in a directory, which is made with the first entry."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._lock = threading.RLock()
        self._last = 0

    def add(self, host: str, what: str, command: str) -> str:
        """Writes an entry, which is on disk when this returns; returns its id."""
        header = f"host: {_line(host)}\nwhat: {_line(what)}"
        content = os.fsencode(f"{header}{_SEPARATOR}{command}\n")
        with self._lock:
            self.directory.mkdir(parents=True, exist_ok=True)
            part = self.directory / f".{os.getpid()}-{threading.get_ident()}.part"
            try:
                with part.open("wb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
                return self._link(part)
            finally:
                part.unlink(missing_ok=True)
                self._sync()

    def _link(self, part: Path) -> str:
        """Gives a complete file the next free number; a shell of a leaf may take one at the same time."""
        # A number that this process has used is not used again: its entry may be removed a second time.
        number = max([self._last, *(int(path.name) for path in self._paths())])
        while True:
            number += 1
            try:
                os.link(part, self.directory / f"{number:06}")
            except FileExistsError:
                continue
            self._last = number
            return f"{number:06}"

    def done(self, id_: str) -> None:
        """Removes an entry, whose change is undone; does nothing if it is removed already."""
        (self.directory / id_).unlink(missing_ok=True)
        self._sync()

    def entries(self) -> list[Entry]:
        """All entries, the oldest first."""
        found = []
        for path in self._paths():
            try:
                found.append(_parsed(path))
            except FileNotFoundError:
                continue
        return found

    def run_all(self, run: Callable[[str, str], Outcome], entries: list[Entry] | None = None) -> list[Failure]:
        """Runs the commands, the newest first, by `run(host, command)`; returns what could not be undone.

        Without `entries`, it runs all. An entry whose command succeeded is removed.
        """
        failures = []
        for entry in reversed(self.entries() if entries is None else entries):
            try:
                result = run(entry.host, entry.command)
            except UserError as error:
                failures.append(Failure(entry, str(error)))
                continue
            if result.code == 0:
                self.done(entry.id)
            else:
                words = result.err.decode(errors="replace").strip() or f"exit code {result.code}"
                failures.append(Failure(entry, words))
        return failures

    def _paths(self) -> list[Path]:
        if not self.directory.is_dir():
            return []
        return sorted(
            (path for path in self.directory.iterdir() if path.name.isdecimal()), key=lambda path: int(path.name)
        )

    def _sync(self) -> None:
        """Makes new and removed names durable."""
        if not self.directory.is_dir():
            return
        directory = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


def _line(text: str) -> str:
    return " ".join(text.split())


def _parsed(path: Path) -> Entry:
    header, separator, command = os.fsdecode(path.read_bytes()).partition(_SEPARATOR)
    fields = dict(line.partition(": ")[::2] for line in header.split("\n"))
    if not separator or "host" not in fields:
        raise UserError(f"{path} is not an entry of the undo journal; undo by hand what it names, then remove it")
    return Entry(path.name, fields["host"], fields.get("what", ""), command.removesuffix("\n"))
