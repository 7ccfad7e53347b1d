"""All hosts of a campaign."""

from __future__ import annotations

import os
import secrets
import shlex
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

from iosonar.campaign.program import own_program
from iosonar.campaign.undo import Undo
from iosonar.errors import UserError

from .connection import NoConnection, SharedConnection
from .host import ClockReading, Completed, HostError
from .names import checked_host
from .session import Note
from .shell_host import ShellHost

LOCALHOST = "localhost"
_SOCKETS = "iosonar-ssh."
_LONGEST_SOCKET_DIRECTORY = 60
"""A socket's path has at most 107 bytes; ssh appends 17 while it makes one."""


class LocalHost(ShellHost):
    """The controller itself, without sshd."""

    def __init__(self, undo: Undo, *, reconnect_timeout: float = 300, note: Note = lambda _: None) -> None:
        super().__init__(LOCALHOST, NoConnection(LOCALHOST), undo, reconnect_timeout=reconnect_timeout, note=note)

    def put(self, source: Path, name: str) -> str:
        """The file itself, which is here already."""
        if not os.access(source, os.R_OK):
            raise UserError(f"cannot read {source}")
        return str(source.resolve())

    def program(self) -> str:
        """The controller's own."""
        return str(own_program())

    def clock(self, exchanges: int = 0) -> ClockReading:
        """No exchanges: it is the controller's clock."""
        return ClockReading(Path("/proc/sys/kernel/random/boot_id").read_text().strip(), ())


class SshHost(ShellHost):
    """A host by the system's OpenSSH client, over one shared connection."""

    def __init__(
        self, name: str, socket: Path, undo: Undo, *, reconnect_timeout: float = 300, note: Note = lambda _: None
    ) -> None:
        self.shared = SharedConnection(name, socket)
        super().__init__(checked_host(name), self.shared, undo, reconnect_timeout=reconnect_timeout, note=note)


class Hosts:
    """The hosts of a campaign by name, each connected once."""

    def __init__(self, undo: Undo, *, reconnect_timeout: float = 300, note: Note = lambda _: None) -> None:
        self._reconnect_timeout = reconnect_timeout
        self._undo = undo
        self._note = note
        self._hosts: dict[str, ShellHost] = {}
        self._lock = threading.RLock()
        self._sockets: Path | None = None
        self._sockets_undo = ""
        self._count = 0

    def __enter__(self) -> Hosts:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for failure in self.close_all():
            self._note(failure)

    @property
    def reconnect_timeout(self) -> float:
        """Seconds in which a broken connection must come back."""
        return self._reconnect_timeout

    @reconnect_timeout.setter
    def reconnect_timeout(self, seconds: float) -> None:
        with self._lock:
            self._reconnect_timeout = seconds
            for host in self._hosts.values():
                host.reconnect_timeout = seconds

    @contextmanager
    def without_waiting(self) -> Iterator[None]:
        """Within it, no call waits for a host that cannot be reached."""
        timeout, self.reconnect_timeout = self.reconnect_timeout, 0
        try:
            yield
        finally:
            self.reconnect_timeout = timeout

    def get(self, name: str) -> ShellHost:
        """The host of this name; it is connected on first use. An impossible name is an error."""
        with self._lock:
            if name not in self._hosts:
                self._hosts[name] = self._made(checked_host(name))
            return self._hosts[name]

    def undo(self, host: str, command: str) -> Completed:
        """Runs a command of the undo journal on a host."""
        return self.get(host).undo(command)

    def close_all(self) -> list[str]:
        """Closes all hosts at the same time; returns an error for each that could not be cleaned up.

        Any thread may call it, also while others use the hosts: their calls fail. What could not be removed is still in
        the undo journal.
        """
        with self._lock:
            hosts = list(self._hosts.values())
            self._hosts.clear()
        failures: list[str] = []
        threads = [threading.Thread(target=_close, args=(host, failures.append), daemon=True) for host in hosts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        with self._lock:
            if self._sockets is not None and not self._hosts:
                shutil.rmtree(self._sockets, ignore_errors=True)
                self._undo.done(self._sockets_undo)
                self._sockets = None
        return failures

    def _made(self, name: str) -> ShellHost:
        if name == LOCALHOST:
            return LocalHost(self._undo, reconnect_timeout=self._reconnect_timeout, note=self._note)
        self._count += 1
        socket = self._socket_directory() / str(self._count)
        return SshHost(name, socket, self._undo, reconnect_timeout=self._reconnect_timeout, note=self._note)

    def _socket_directory(self) -> Path:
        """A directory that only this user can use, with a short path; it is in the undo journal."""
        if self._sockets is None:
            base = next(path for path in (os.environ.get("XDG_RUNTIME_DIR", ""), "/tmp") if _is_short_directory(path))
            # The entry of the journal comes first, so that a killed controller leaves nothing without one.
            while (directory := Path(base) / f"{_SOCKETS}{secrets.token_hex(4)}").exists():
                pass
            self._sockets_undo = self._undo.add(
                LOCALHOST, f"remove the directory {directory} of ssh's sockets", _removal(directory)
            )
            directory.mkdir(mode=0o700)
            self._sockets = directory
        return self._sockets


def _is_short_directory(path: str) -> bool:
    is_short = 0 < len(os.fsencode(path)) <= _LONGEST_SOCKET_DIRECTORY
    return path == "/tmp" or (
        is_short and path.isascii() and " " not in path and "%" not in path and os.access(path, os.W_OK)
    )


def _removal(directory: Path) -> str:
    return f"""directory={shlex.quote(str(directory))}
case $directory in
/*/{_SOCKETS}*[!A-Za-z0-9_]*) echo "$directory is not a directory of ssh's sockets" >&2; exit 1 ;;
/*/{_SOCKETS}*) if [ -d "$directory" ] && [ ! -L "$directory" ]; then rm -rf --one-file-system -- "$directory"; fi ;;
*) echo "$directory is not a directory of ssh's sockets" >&2; exit 1 ;;
esac"""


def _close(host: ShellHost, failed: Callable[[str], None]) -> None:
    try:
        host.close()
    except HostError as error:
        failed(f"{error}; run `iosonar campaign undo` when the host can be reached")
    except (UserError, OSError) as error:
        failed(f"{host.name}: {error}")
