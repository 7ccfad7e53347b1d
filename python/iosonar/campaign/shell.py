"""The bash of a leaf: sources confs and modules, calls their functions, and gives access to their variables."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from iosonar.campaign import endings
from iosonar.errors import UserError
from iosonar.interrupts import uninterrupted
from iosonar.processes import descendants, end, kill_tree, started_at

END_S = 20.0
"""After an interrupt, what the shell runs has this time to end."""

TERM_S = 2.0
"""After this time, the signal is TERM instead of INT."""

RECORD = "shell"
"""The file with the process of the shell, so that the next campaign can end it if this one is killed."""

SESSION = Path(__file__).with_name("session.sh")

Request = Callable[[str, list[str]], "Answer"]
"""Answers a request of the shell: its name and arguments."""


class Answer(Protocol):
    """The answer to a request: a status as of a command, and a text."""

    status: int
    text: str


class ShellEndedError(UserError):
    """A conf or a module called `exit`, or an option such as `set -e` ended it.

    The shell goes on for the functions of cleanup, unless it was killed or replaced by `exec`.
    """


INTERNAL = {"REPLY", "undo_id", "PIPESTATUS", "OLDPWD", "_"}
"""Variables that bash and the session itself set."""


class Shell:
    """One bash. Commands go through one pipe, answers come through another; its output goes to `output`."""

    def __init__(
        self,
        cwd: Path,
        output: Callable[[bytes], None],
        answer: Request,
        environment: Mapping[str, str],
        directory: Path | None = None,
    ):
        """Starts it. `directory` is for its own files, `.campaign` in `cwd` unless given."""
        self._answer = answer
        self._output = output
        self._source = ""
        self._outstanding = 0
        """Commands whose answers have not been read, because an exception ended the wait."""
        self._killed_after_s = 0.0
        """If the campaign itself killed it: how long it had not ended."""
        self._memory_kills = endings.memory_kills()
        directory = directory or cwd / ".campaign"
        self._lock = directory / "shell.lock"
        self._lock.parent.mkdir(exist_ok=True)
        commands, self._commands = os.pipe()
        self._answers, answers = os.pipe()
        try:
            self._process = subprocess.Popen(
                ["bash", "--noprofile", "--norc", SESSION, str(commands), str(answers), self._lock],
                cwd=cwd,
                # bash would source the file that BASH_ENV names.
                env={name: value for name, value in os.environ.items() if name != "BASH_ENV"} | dict(environment),
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
        self._record = directory / RECORD
        self._record.write_text(f"{self._process.pid} {started_at(self._process.pid)}\n")
        self._buffer = bytearray()
        self._depth = 0
        """Requests that are being answered."""
        self._copying = threading.Lock()
        self._is_closed = False
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
        background: dict[int, str] = {}
        self._add_descendants(background)
        if self._commands >= 0:
            os.close(self._commands)
            self._commands = -1
        deadline = time.monotonic() + TERM_S
        while self.alive and time.monotonic() < deadline:
            # An interrupted function may go on: what it starts until then must end, too.
            self._add_descendants(background)
            time.sleep(0.01)
        if self.alive:
            # It starts nothing more, and is still the parent of what it started.
            self._process.send_signal(signal.SIGSTOP)
            self._add_descendants(background)
            self._process.kill()
            self._process.wait()
        end(background)
        self._record.unlink(missing_ok=True)
        # A daemon that a module started may still hold the pipe.
        self._is_closed = True
        self._reader.join()
        assert self._process.stdout is not None
        self._process.stdout.close()
        if self._answers >= 0:
            os.close(self._answers)
            self._answers = -1

    def _add_descendants(self, processes: dict[int, str]) -> None:
        """Adds what the shell runs now, with start times."""
        for process in descendants(self._process.pid):
            processes.setdefault(process, started_at(process))

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

    def cd(self, directory: Path) -> None:
        """Changes the directory."""
        if self._status("cd", str(directory.absolute())):
            raise UserError(f"cannot enter the directory {directory}")

    def protect(self) -> None:
        """From now on, Ctrl-C of the terminal ends nothing that the shell runs: for cleanup."""
        self._status("protect")

    def get(self, name: str) -> list[str]:
        """The values of an array, or the value of a variable; empty if it is not set."""
        return self._values("get", name)

    def scalar(self, name: str, default: str = "") -> str:
        """The value of a variable."""
        values = self.get(name)
        return values[0] if values else default

    def set(self, name: str, values: Sequence[str]) -> None:
        """Sets an array."""
        self._set("set", name, *values)

    def set_scalar(self, name: str, value: str) -> None:
        """Sets a variable."""
        self._set("set_scalar", name, value)

    def _set(self, command: str, name: str, *values: str) -> None:
        if self._status(command, name, *values):
            raise UserError(f"cannot set the variable {name}: a conf made it readonly")

    def variables(self) -> dict[str, str]:
        """All variables that confs and modules have set, arrays joined by spaces."""
        return {name: " ".join(self.get(name)) for name in sorted(self.names())}

    def names(self) -> frozenset[str]:
        """The names of all variables that confs and modules have set."""
        return frozenset(self._names()) - self._initial - INTERNAL

    def _names(self) -> list[str]:
        return self._values("variables")

    def _status(self, *command: str) -> int:
        return int(self._ask("done", *command)[0])

    def _values(self, *command: str) -> list[str]:
        return self._ask("values", *command)

    def _ask(self, kind: str, *command: str) -> list[str]:
        if not self._depth:
            self._end_outstanding()
        with uninterrupted():
            self._send(*command)
            self._outstanding += 1
        return self._until(kind)

    def _end_outstanding(self) -> None:
        """After an interrupt: ends what the shell runs, and reads its answer."""
        begun = time.monotonic()
        deadline = begun + END_S
        while self._outstanding:
            after = time.monotonic() - begun
            # Background processes ignore SIGINT.
            number = signal.SIGINT if after < TERM_S else signal.SIGTERM if after < END_S / 2 else signal.SIGKILL
            processes = descendants(self._process.pid)
            if not processes and after > TERM_S / 2:
                # The shell itself waits, as `read` does for a person.
                processes = [self._process.pid]
                number = signal.SIGINT
            for process in processes:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, number)
            if select.select([self._answers], [], [], 0.2)[0] or self._buffer:
                try:
                    self._until("done", "values")
                except ShellEndedError:
                    if not self.alive:
                        raise
            elif time.monotonic() > deadline:
                self._killed_after_s = END_S
                self._process.kill()
                raise self._ended()

    def _until(self, *kinds: str) -> list[str]:
        while True:
            message = self._receive()
            if message[0] in kinds:
                # What the command printed is complete when its answer is here.
                self._copy_available()
                return message[1:]
            if message[0] == "ended":
                self._copy_available()
                raise ShellEndedError(self._words_of(int(message[1])))
            if message[0] == "request":
                self._serve(message[1], message[2:])

    def _serve(self, name: str, arguments: list[str]) -> None:
        """Answers a request; the answer may use variables and call functions of the shell."""
        self._depth += 1
        before = self._outstanding
        is_answered = False
        try:
            answer = self._answer(name, arguments)
            with uninterrupted():
                self._send("return", str(answer.status), answer.text)
                is_answered = True
        except ShellEndedError:
            raise
        except UserError as error:
            self._output(f"{error}\n".encode("utf-8", "surrogateescape"))
            self._answer("error", [str(error)])
            self._send("return", "1", "")
        except BaseException:
            # An interrupt. A function that the request called may still run.
            if not is_answered:
                while self._outstanding > before:
                    self._until("done", "values")
                self._send("return", "130", "")
            raise
        finally:
            self._depth -= 1

    def _send(self, *fields: str) -> None:
        data = b"".join(os.fsencode(field).replace(b"\0", b"") + b"\0" for field in (str(len(fields)), *fields))
        try:
            while data:
                data = data[os.write(self._commands, data) :]
        except BrokenPipeError:
            raise self._ended() from None

    def _receive(self) -> list[str]:
        while not (size := self._size_of_message()):
            self._read()
        with uninterrupted():
            fields = bytes(self._buffer[:size]).split(b"\0")[1:-1]
            del self._buffer[:size]
            message = [os.fsdecode(field) for field in fields]
            if message[0] in ("done", "values"):
                self._outstanding -= 1
            elif message[0] == "ended":
                # The commands that it ended have no answers.
                self._outstanding = 0
        return message

    def _size_of_message(self) -> int:
        """The bytes of the first message; 0 if it is not complete."""
        end = self._buffer.find(0)
        for _ in range(int(self._buffer[:end]) if end >= 0 else 0):
            end = self._buffer.find(0, end + 1)
            if end < 0:
                break
        return end + 1

    def _read(self) -> None:
        # A background process may hold the pipe after the shell has ended.
        has_ended = not self.alive
        if select.select([self._answers], [], [], 0 if has_ended else 1)[0]:
            with uninterrupted():
                read = os.read(self._answers, 65536)
                self._buffer += read
            if not read:
                raise self._ended()
        elif has_ended:
            raise self._ended()

    def _ended(self) -> ShellEndedError:
        try:
            code: int | str = self._process.wait(5)
        except subprocess.TimeoutExpired:
            code = "unknown"
        self._copy_available()
        return ShellEndedError(self._words_of(code))

    def _words_of(self, code: int | str) -> str:
        """How the shell ended, and by whom as far as that is known."""
        what = self._source or "the shell"
        if not isinstance(code, int) or not (name := endings.signal_of(code)):
            return f"{what} ended the shell (exit code {code})"
        during = f"the shell of the leaf was ended by {name} in {what}"
        if self._killed_after_s:
            return f"{during}, by the campaign, as it did not end {self._killed_after_s:.0f} s after the interrupt"
        return f"{during}, {endings.by_whom(name, self._memory_kills)}"

    def check(self) -> None:
        """Raises ShellEndedError if the shell has ended: a request that takes long asks for this."""
        if not self.alive:
            raise self._ended()

    def _copy_output(self) -> None:
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        while not self._is_closed:
            select.select([descriptor], [], [], 0.2)
            with self._copying:
                # The other thread may have read it.
                if select.select([descriptor], [], [], 0)[0]:
                    read = os.read(descriptor, 65536)
                    if not read:
                        return
                    self._output(read)
        self._copy_available()

    def _copy_available(self) -> None:
        """Copies what the shell has printed so far."""
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        with self._copying:
            # Not until the pipe is empty: a background process may print without end.
            available = int.from_bytes(fcntl.ioctl(descriptor, termios.FIONREAD, bytes(4)), sys.byteorder)
            while available > 0:
                read = os.read(descriptor, available)
                self._output(read)
                available -= len(read)


def end_leftover(directory: Path) -> None:
    """Ends the shell of a campaign that was killed, and what that shell runs, before anything is undone."""
    record = directory / RECORD
    try:
        process, started = record.read_text().split()
    except (OSError, ValueError):
        return
    if started_at(int(process)) == started:
        kill_tree(int(process))
    record.unlink(missing_ok=True)
