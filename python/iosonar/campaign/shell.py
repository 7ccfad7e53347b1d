"""The bash of a leaf: sources confs and modules, calls their functions, and gives access to their variables."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from iosonar.errors import UserError

SESSION = Path(__file__).with_name("session.sh")

Request = Callable[[str, list[str]], "Answer"]
"""Answers a request of the shell: its name and arguments."""


class Answer(Protocol):
    """The answer to a request: a status as of a command, and a text."""

    status: int
    text: str


class ShellEndedError(UserError):
    """The shell ended: a conf or a module called `exit`, or an option such as `set -e` ended it."""


class Shell:
    """One bash. Commands go through one pipe, answers come through another; its output goes to `output`."""

    def __init__(self, cwd: Path, output: Callable[[bytes], None], answer: Request, environment: Mapping[str, str]):
        self._answer = answer
        self._output = output
        self._source = ""
        self._lock = cwd / ".campaign" / "shell.lock"
        self._lock.parent.mkdir(exist_ok=True)
        commands, self._commands = os.pipe()
        self._answers, answers = os.pipe()
        try:
            self._process = subprocess.Popen(
                ["bash", "--noprofile", "--norc", SESSION, str(commands), str(answers), self._lock],
                cwd=cwd,
                env={**os.environ, **environment},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=(commands, answers),
            )
        except FileNotFoundError as error:
            os.close(self._commands)
            os.close(self._answers)
            raise UserError("bash is not installed: campaigns need it for their confs and modules") from error
        finally:
            os.close(commands)
            os.close(answers)
        self._buffer = bytearray()
        self._initial: set[str] = set()
        self._reader = threading.Thread(target=self._copy_output, daemon=True)
        self._reader.start()
        self._initial = set(self._names())

    def __enter__(self) -> Shell:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the shell, also one that hangs in a command."""
        if self._commands >= 0:
            os.close(self._commands)
            self._commands = -1
        try:
            self._process.wait(2)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        # Background processes of a module may still hold the pipe.
        self._reader.join(1)
        if self._answers >= 0:
            os.close(self._answers)
            self._answers = -1

    @property
    def alive(self) -> bool:
        """Whether the shell runs."""
        return self._process.poll() is None

    def source(self, path: Path) -> int:
        """Sources a file; returns its status."""
        self._source = str(path)
        return self._status("source", str(path.absolute()))

    def call(self, *command: str) -> int:
        """Calls a function with arguments; returns its status."""
        self._source = command[0]
        return self._status("call", *command)

    def cd(self, folder: Path) -> None:
        """Changes the directory."""
        if self._status("cd", str(folder.absolute())):
            raise UserError(f"cannot enter the directory {folder}")

    def get(self, name: str) -> list[str]:
        """The values of an array, or the value of a variable; empty if it is not set."""
        return self._values("get", name)

    def scalar(self, name: str, default: str = "") -> str:
        """The value of a variable."""
        values = self.get(name)
        return values[0] if values else default

    def set(self, name: str, values: Sequence[str]) -> None:
        """Sets an array."""
        self._status("set", name, *values)

    def set_scalar(self, name: str, value: str) -> None:
        """Sets a variable."""
        self._status("set_scalar", name, value)

    def variables(self) -> dict[str, str]:
        """All variables that confs and modules have set, arrays joined by spaces."""
        names = sorted(set(self._names()) - self._initial - {"REPLY", "PIPESTATUS", "OLDPWD", "_"})
        return {name: " ".join(self.get(name)) for name in names}

    def _names(self) -> list[str]:
        return self._values("variables")

    def _status(self, *command: str) -> int:
        self._send(*command)
        return int(self._until("done")[0])

    def _values(self, *command: str) -> list[str]:
        self._send(*command)
        return self._until("values")

    def _until(self, kind: str) -> list[str]:
        while True:
            message = self._receive()
            if message[0] == kind:
                return message[1:]
            if message[0] == "request":
                try:
                    answer = self._answer(message[1], message[2:])
                except UserError as error:
                    self._output(f"{error}\n".encode())
                    self._answer("error", [str(error)])
                    self._send("return", "1", "")
                else:
                    self._send("return", str(answer.status), answer.text)

    def _send(self, *fields: str) -> None:
        data = b"".join(os.fsencode(field).replace(b"\0", b"") + b"\0" for field in (str(len(fields)), *fields))
        try:
            while data:
                data = data[os.write(self._commands, data) :]
        except BrokenPipeError:
            raise self._ended() from None

    def _receive(self) -> list[str]:
        count = int(self._field())
        return [self._field() for _ in range(count)]

    def _field(self) -> str:
        while (end := self._buffer.find(0)) < 0:
            read = os.read(self._answers, 65536)
            if not read:
                raise self._ended()
            self._buffer += read
        field = os.fsdecode(bytes(self._buffer[:end]))
        del self._buffer[: end + 1]
        return field

    def _ended(self) -> ShellEndedError:
        try:
            code: int | str = self._process.wait(5)
        except subprocess.TimeoutExpired:
            code = "unknown"
        return ShellEndedError(f"{self._source or 'the shell'} ended the shell (exit code {code})")

    def _copy_output(self) -> None:
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        while read := os.read(descriptor, 65536):
            self._output(read)
