"""What a campaign does on a host, whatever connects to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from iosonar.errors import UserError

from .clock import Exchange


class HostError(UserError):
    """An error of one host; its text begins with the host's name."""

    def __init__(self, host: str, text: str) -> None:
        super().__init__(f"{host}: {text}")
        self.host = host

    @property
    def summary(self) -> str:
        """What the user should know in one line, without the details that the log has."""
        return str(self)


class ConnectionLostError(HostError):
    """The connection broke; whether a command on the host began and still runs is unknown if `begun`."""

    def __init__(self, host: str, text: str, *, begun: bool, final: bool = False) -> None:
        super().__init__(host, text)
        self.text = text
        self.begun = begun
        self.final = final
        """Another attempt would fail the same way."""

    @property
    def summary(self) -> str:
        """That the host is unreachable, and why."""
        return f"{self.host} is unreachable: {self.text}"


@dataclass(frozen=True)
class Completed:
    """The result of a command."""

    code: int
    """The exit code; 128 + the number of the signal that ended the command."""
    out: bytes
    err: bytes

    @property
    def text(self) -> str:
        """Standard output as text."""
        return self.out.decode(errors="surrogateescape")

    @property
    def words(self) -> str:
        """Standard error for a message, or the exit code if there is none."""
        return self.err.decode(errors="replace").strip() or f"exit code {self.code}"


@dataclass(frozen=True)
class ClockReading:
    """Some exchanges with a host's clock."""

    boot_id: str
    """Of the kernel: another one after a restart."""
    exchanges: tuple[Exchange, ...]
    """None of the controller itself, whose clock needs no measurement."""


@dataclass(frozen=True)
class HostSample:
    """The state of a host at a time of the controller's clock."""

    at: float
    load1: float
    tmp_free_bytes: int


@dataclass(frozen=True)
class RunStatus:
    """The state of a detached command."""

    state: Literal["running", "ended", "lost"]
    exit_code: int | None
    """Only of an ended run; 128 + the number of the signal that ended it."""
    reason: str
    """The reason for a lost run."""
    progress: dict[str, Any] | None
    """The last line of JSON on its standard error."""
    err: str
    """The end of its standard error without lines of JSON."""


class DetachedRun(Protocol):
    """A command that goes on when the connection breaks."""

    name: str
    host: str
    directory: str
    """Its own directory on the host, and its working directory."""

    def poll(self) -> RunStatus:
        """The state now."""

    def out(self) -> bytes:
        """Its standard output so far."""

    def kill(self, grace: float = 30) -> None:
        """Sends TERM to all its processes, KILL to those that are left after `grace` seconds, and waits."""


class Host(Protocol):
    """A machine with devices. Every method may be called by several threads at a time.

    Each call first connects if the connection is broken, for as long as `reconnect_timeout`. A command that may have
    begun is not begun again: `run` and `script` raise ConnectionLostError then. Everything else is repeated.
    """

    @property
    def name(self) -> str:
        """As in the conf."""

    @property
    def directory(self) -> str:
        """The temporary directory there, made on first use."""

    def run(
        self,
        argv: Sequence[str],
        *,
        input: bytes = b"",  # noqa: A002
        timeout: float | None = 60,
    ) -> Completed:
        """Runs a command; its words reach it unchanged. After the timeout it is ended."""

    def script(
        self,
        text: str,
        *args: str,
        input: bytes = b"",  # noqa: A002
        timeout: float | None = 60,
    ) -> Completed:
        """Runs a script by sh with arguments."""

    def put(self, source: Path, name: str) -> str:
        """Copies a file; returns its path there. The same content is not sent twice."""

    def get(self, remote: str, target: Path) -> None:
        """Copies a file from there; `target` appears when it is complete and verified."""

    def grow(self, remote: str, target: Path) -> None:
        """Appends to a copy what a file has grown by there, if there is such a file."""

    def program(self) -> str:
        """The path of an iosonar there that is identical to the controller's; brings it if it is missing."""

    def expand(self, pattern: str) -> list[str]:
        """The paths there that match a pattern of the shell, in ASCII order; nothing else is evaluated."""

    def clock(self, exchanges: int = 40) -> ClockReading:
        """Reads its clocks, many times over one connection."""

    def watch(self) -> HostSample:
        """Its load and free space."""

    def start(self, argv: Sequence[str], name: str) -> DetachedRun:
        """Starts a command that goes on when the connection breaks; no other run there has this name."""

    def started(self, name: str) -> DetachedRun | None:
        """The run of this name, also if its start was not confirmed."""

    def poll_all(self) -> dict[str, RunStatus]:
        """The state of every run that was started there, by name, in one round trip."""

    def undo(self, command: str) -> Completed:
        """Runs a command of the undo journal; makes no temporary directory."""

    def shell_words(self) -> list[str]:
        """The words to which a shell on the controller appends one more: `shell_prefix` and a quoted command line."""

    def shell_prefix(self) -> str:
        """See `shell_words`. A command line that is quoted by sh's rules in single quotes follows."""

    def close(self) -> None:
        """Ends what it started there, removes the temporary directory, ends the connection."""
