"""How to start a command on a host: ssh over one shared connection, or none at all."""

from __future__ import annotations

import contextlib
import getpass
import os
import select
import shlex
import signal
import subprocess
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path

from .host import ConnectionLostError

CONNECT_TIMEOUT = 60.0
"""Seconds for a connection through all jump hosts, with authentication."""
TCP_TIMEOUT_S = 10
ALIVE_INTERVAL_S = 10
ALIVE_COUNT = 3
"""A connection without an answer for this many intervals is broken."""
_READY = b"iosonar-connected "
# Runs on the host, and holds the connection until its standard input ends. It prints the server process of the
# connection, by which a later connection can end it. The arguments are the processes of earlier connections, each as
# its number and start time.
_MASTER = """
look() {
    { read -r line <"/proc/$1/stat"; } 2>/dev/null || return 1
    name=${line#*\\(} name=${name%\\)*}
    set -- ${line##*) }
    parent=$2 session=$4 started=${20}
}
for each; do
    if look "${each%:*}" && [ "$started" = "${each#*:}" ]; then kill "${each%:*}"; fi
done
server=- started=-
look "$$" && look "$session" && server=$parent && look "$server"
case $name in sshd*) ;; *) server=- started=- ;; esac
echo "iosonar-connected $server:$started"
exec cat >/dev/null
"""
_NO_SSH = "cannot connect: the program ssh is missing; install OpenSSH's client"
_FINAL = ("Host key verification failed", "Bad configuration option", "REMOTE HOST IDENTIFICATION HAS CHANGED")


class Connection(ABC):
    """Starts commands on one host."""

    def __init__(self, host: str) -> None:
        self.host = host
        self.lock = threading.RLock()

    @abstractmethod
    def connect(self) -> None:
        """Makes sure that there is a connection, or raises ConnectionLostError."""

    @abstractmethod
    def argv(self, words: Sequence[str]) -> list[str]:
        """The local command that runs these words on the host."""

    @abstractmethod
    def shell_words(self) -> list[str]:
        """The local command without its last word, which is a command line for the host's shell."""

    @property
    @abstractmethod
    def fails_with(self) -> int | None:
        """The exit code of `argv` that means a broken connection."""

    @abstractmethod
    def interrupt(self) -> None:
        """Ends an attempt to connect, in which another thread may be."""

    @abstractmethod
    def close(self) -> None:
        """Ends the connection."""


class NoConnection(Connection):
    """Commands of the controller itself."""

    def connect(self) -> None:
        """Does nothing."""

    def argv(self, words: Sequence[str]) -> list[str]:
        """The same words."""
        return list(words)

    def shell_words(self) -> list[str]:
        """The shell."""
        return ["sh", "-c"]

    @property
    def fails_with(self) -> int | None:
        """None: there is no connection."""
        return None

    def interrupt(self) -> None:
        """Does nothing."""

    def close(self) -> None:
        """Does nothing."""


class SharedConnection(Connection):
    """A master connection of ssh, and the ssh processes that share it.

    The master ends when its standard input ends, so it ends with the controller, however that ends.
    """

    def __init__(self, host: str, socket: Path) -> None:
        super().__init__(host)
        self.socket = socket
        self._master: subprocess.Popen[bytes] | None = None
        self._user: str | None = None
        self._connecting = self._closed = False
        self._earlier: list[str] = []
        """The server process of the connection, which does not end by itself when the network fails."""

    def connect(self) -> None:
        """Connects if there is no connection."""
        with self.lock:
            if self._master is not None:
                if self._master.poll() is None:
                    return
                self._end_master()
            if self._closed:
                raise ConnectionLostError(self.host, "the connection is closed", begun=False, final=True)
            self._connecting = True
            try:
                self._connect()
            finally:
                self._connecting = False

    def _connect(self) -> None:
        # A master that was killed leaves its socket, and ssh would not share the connection then.
        self.socket.unlink(missing_ok=True)
        words = self.socket.with_suffix(".err")
        try:
            with words.open("wb") as err:
                self._master = subprocess.Popen(
                    [*self._ssh("yes"), shlex.join(["sh", "-c", _MASTER, "sh", *self._earlier])],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=err,
                    start_new_session=True,
                )
        except FileNotFoundError:
            raise ConnectionLostError(self.host, _NO_SSH, begun=False, final=True) from None
        if server := _word_after(self._master, _READY, CONNECT_TIMEOUT):
            self._earlier = [] if server == "-:-" else [server]
            return
        code = _code(self._master)
        self._end_master()
        said = words.read_text(errors="replace")
        final = any(each in said for each in _FINAL)
        reason = _last_words(said)
        if code is None:
            reason = f"no connection in {CONNECT_TIMEOUT:.0f} s"
        elif not reason:
            reason = "ssh was killed" if code < 0 else "the host runs no commands; change the user's login shell there"
        raise ConnectionLostError(self.host, f"cannot connect: {reason}", begun=False, final=final)

    def _ssh(self, master: str) -> list[str]:
        options = {
            "BatchMode": "yes",
            "ControlMaster": master,
            "ControlPath": str(self.socket),
            "ControlPersist": "no",
            "ConnectTimeout": str(TCP_TIMEOUT_S),
            "ServerAliveInterval": str(ALIVE_INTERVAL_S),
            "ServerAliveCountMax": str(ALIVE_COUNT),
            "ClearAllForwardings": "yes",
            "ForwardX11": "no",
            "PermitLocalCommand": "no",
            "RemoteCommand": "none",
            "RequestTTY": "no",
            "EscapeChar": "none",
        }
        words = [*ssh_command(), *(word for key, value in options.items() for word in ("-o", f"{key}={value}"))]
        return [*words, *self._login(), "--", self.host]

    def _login(self) -> list[str]:
        """Root, unless the name or the configuration gives a user."""
        if "@" in self.host:
            return []
        if self._user is None:
            self._user = _configured_user(self.host)
        return ["-l", "root"] if self._user == getpass.getuser() else []

    def argv(self, words: Sequence[str]) -> list[str]:
        """The ssh command that runs these words over the shared connection."""
        return [*self.shell_words(), shlex.join(words)]

    def shell_words(self) -> list[str]:
        """The ssh command without the remote command line."""
        return self._ssh("no")

    @property
    def fails_with(self) -> int | None:
        """The exit code 255, which ssh has for its own errors."""
        return 255

    def interrupt(self) -> None:
        """Ends an attempt to connect, in which another thread may be."""
        if self._connecting and (master := self._master):
            master.terminate()

    def close(self) -> None:
        """Ends the connection."""
        self._closed = True
        self.interrupt()
        with self.lock:
            self._end_master()
            self.socket.unlink(missing_ok=True)
            self.socket.with_suffix(".err").unlink(missing_ok=True)

    def _end_master(self) -> None:
        master, self._master = self._master, None
        if master is None:
            return
        assert master.stdin is not None and master.stdout is not None
        with contextlib.suppress(OSError):
            master.stdin.close()
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                master.wait(timeout=2)
            except subprocess.TimeoutExpired:
                master.send_signal(number)
        master.wait()
        master.stdout.close()


def ssh_command() -> list[str]:
    """The system's ssh, with the configuration file that IOSONAR_SSH_CONFIG names instead of the user's."""
    config = os.environ.get("IOSONAR_SSH_CONFIG")
    return ["ssh", *(["-F", config] if config else [])]


def _configured_user(host: str) -> str:
    try:
        done = subprocess.run(
            [*ssh_command(), "-G", "--", host], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
        )
    except FileNotFoundError:
        raise ConnectionLostError(host, _NO_SSH, begun=False, final=True) from None
    if done.returncode != 0:
        raise ConnectionLostError(host, f"cannot connect: {_last_words(done.stderr)}", begun=False, final=True)
    return next((line[5:] for line in done.stdout.splitlines() if line.startswith("user ")), "")


def _word_after(process: subprocess.Popen[bytes], mark: bytes, seconds: float) -> str:
    """Reads until a line begins with a mark; returns its rest, or nothing if the output ends or the time is over."""
    assert process.stdout is not None
    until = time.monotonic() + seconds
    read = b""
    while True:
        _, found, rest = read.partition(mark)
        if found and b"\n" in rest:
            return rest.partition(b"\n")[0].decode(errors="replace")
        ready, _, _ = select.select([process.stdout], [], [], max(0.0, until - time.monotonic()))
        piece = os.read(process.stdout.fileno(), 65536) if ready else b""
        if not piece:
            return ""
        read = (read + piece)[-65536:]


def _code(process: subprocess.Popen[bytes]) -> int | None:
    """The exit code of a process whose output has ended, if it ends."""
    try:
        return process.wait(timeout=2)
    except subprocess.TimeoutExpired:
        return None


def _last_words(text: str) -> str:
    """The lines of ssh that say why, without the frames of its large warnings."""
    lines = [line.strip() for line in text.splitlines() if line.strip(" @\r\t")]
    return "; ".join(lines[-3:])
