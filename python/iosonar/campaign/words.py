"""What a leaf says: its notes and errors, what its shell prints, and its log."""

from __future__ import annotations

import contextlib
import os
from typing import BinaryIO

from iosonar.campaign.hosts import HostError
from iosonar.campaign.state import LeafState
from iosonar.errors import UserError
from iosonar.text import plain


class LeafFailedError(UserError):
    """A phase failed."""


class Words:
    """Prints each text once, notes it in the leaf's state, and logs it."""

    def __init__(self, state: LeafState, said_before: set[str]):
        """`said_before`: warnings that are printed once in a campaign."""
        self.log: BinaryIO | None = None
        self._state = state
        self._said_before = said_before
        self._tail = bytearray()
        self._errors: list[str] = []
        self._host_errors: list[str] = []
        """Errors of hosts in the function that runs now, such as one that cannot be reached."""
        self._said: set[str] = set()
        """Errors that were printed, or are the reason of the failure."""

    def note(self, text: str, *, printed: bool = False) -> None:
        """Adds a note to the leaf's state. `printed`: the text is printed already."""
        text = plain(text)
        if text not in self._state.notes and text not in self._said:
            self._said.add(text)
            self._state.notes.append(text)
            if not printed:
                self.print(f"{text}\n".encode())

    def note_once(self, text: str) -> None:
        """A note that is printed for the first leaf of a campaign that has it."""
        self.note(text, printed=text in self._said_before)
        self._said_before.add(text)

    def error(self, text: str, *, is_logged: bool = True) -> None:
        """Keeps an error of a conf or a module: the reason if its function fails."""
        self._errors.append(text)
        if is_logged:
            self.write_text(f"{text}\n")

    def host_error(self, error: HostError) -> None:
        """Keeps an error of a host; the log has all of it."""
        self._host_errors.append(error.summary)
        self.write_text(f"{error}\n")

    def with_reason(self, text: str) -> str:
        """An error with what the conf or the module said about it; before all, what was wrong with a host."""
        if self._host_errors:
            return self._host_errors[0]
        if self._errors:
            return self._errors[-1]
        lines = [line for line in self._tail.decode("utf-8", "replace").splitlines() if line.strip()]
        return f"{text}: {plain(lines[-1].strip())}" if lines else text

    def failure(self, text: str) -> LeafFailedError:
        """The failure of the leaf, whose reason is printed when it ends."""
        reason = self.with_reason(text)
        self._said.add(plain(reason))
        self.say_errors()
        return LeafFailedError(reason)

    def say_errors(self) -> None:
        """Prints errors that nothing else says: those of hosts, or else those of confs and modules."""
        for text in map(plain, self._host_errors or self._errors):
            if text not in self._said:
                self._said.add(text)
                with contextlib.suppress(OSError):
                    os.write(2, f"{text}\n".encode())

    def forget(self) -> None:
        """Forgets errors and output: another function begins."""
        self._errors.clear()
        self._host_errors.clear()
        self._tail.clear()

    def print(self, output: bytes) -> None:
        """Prints and logs the output of the shell."""
        self.write(output)
        self._tail += output
        del self._tail[:-4096]
        with contextlib.suppress(OSError):
            # Also a prompt without a line end.
            os.write(2, output)

    def write_text(self, text: str) -> None:
        """Logs a text, which may contain bytes of a host."""
        self.write(text.encode("utf-8", "surrogateescape"))

    def write(self, output: bytes) -> None:
        """Logs bytes as they are."""
        if self.log and not self.log.closed:
            self.log.write(output)
            self.log.flush()
