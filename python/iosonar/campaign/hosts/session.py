"""The connection to a host and the temporary directory there: made on first use, and again when they are lost."""

from __future__ import annotations

import math
import os
import secrets
import shlex
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from iosonar.campaign.undo import Undo

from .calls import Calls, CallTimeoutError, DirectoryGoneError, Exchange, Sink
from .connection import Connection
from .host import Completed, ConnectionLostError, HostError

Note = Callable[[str], None]
_T = TypeVar("_T")

_SCRIPT = Path(__file__).with_name("host.sh")
_SUFFIX_BYTES = 4
NEEDED = "cat date df gzip head ln mkdir mv od rm setsid sha256sum sleep tail tr uname wc"
"""The programs that a host must have."""
_NAME = "iosonar-campaign."
_RETRY_EVERY_S = 1.0
END_GRACE_S = 30
"""Seconds for a replay to undo what it changed, after TERM."""

_CHECK = f"""
for program in {NEEDED}; do command -v "$program" >/dev/null || printf '%s ' "$program"; done
[ -r /proc/self/stat ] || printf '/proc '
printf 'iosonar-checked\\0%s\\0' "${{TMPDIR:-/tmp}}"
"""
_MAKE = """
umask 077
{ [ -d "$1" ] && [ ! -L "$1" ] && [ -O "$1" ] || mkdir "$1"; } &&
    mkdir -p "$1/files" "$1/runs" "$1/calls" && cat >"$1/host.part" && mv "$1/host.part" "$1/host.sh"
"""


def removal(directory: str) -> str:
    """The command that ends what runs from a temporary directory on a host and removes that directory."""
    return f"""directory={shlex.quote(directory)}
name=${{directory##*/}}
case $directory:$name in
*:{_NAME}*[!0-9a-f]*) name= ;;
/*/{_NAME}*:{_NAME}{"?" * 2 * _SUFFIX_BYTES}) ;;
*) name= ;;
esac
if [ -z "$name" ]; then echo "$directory is not a temporary directory of a campaign" >&2; exit 1; fi
if [ -L "$directory" ]; then echo "$directory is a symbolic link; remove it by hand" >&2; exit 1; fi
[ -d "$directory" ] || exit 0
if [ ! -f "$directory/host.sh" ] || sh "$directory/host.sh" end {END_GRACE_S}; then
    # Again if a copy to the directory was just beginning.
    rm -rf --one-file-system -- "$directory" || {{ sleep 1; rm -rf --one-file-system -- "$directory"; }}
else
    exit 1
fi"""


class HostSession:
    """Calls of one host that survive a broken connection."""

    def __init__(self, name: str, connection: Connection, undo: Undo, reconnect_timeout: float, note: Note) -> None:
        self.name = name
        self.connection = connection
        self.reconnect_timeout = reconnect_timeout
        self.lock = threading.RLock()
        self.when_gone: list[Callable[[], None]] = []
        """Called after the temporary directory has disappeared, with all that was in it."""
        self._calls = Calls(connection)
        self._undo = undo
        self._note = note
        self._stop = threading.Event()
        self._base: str | None = None
        self._directory: str | None = None
        self._undo_id: str | None = None
        self._was_connected = False
        self._made = False

    @property
    def directory(self) -> str:
        """The temporary directory there, made on first use."""
        return self._persistent(self._ensure_directory)

    def call(
        self,
        words: Sequence[str],
        *,
        source: bytes | Path = b"",
        sink: Sink | None = None,
        exchange: Exchange | None = None,
        timeout: float | None = 60,
        repeat: bool,
    ) -> Completed:
        """Calls a verb of the script there; with `repeat` again if the connection broke after it began."""

        def attempt() -> Completed:
            directory = self._ensure_directory()
            return self._calls.call(directory, words, source=source, sink=sink, exchange=exchange, timeout=timeout)

        try:
            return self._persistent(attempt, repeat=repeat)
        except CallTimeoutError as late:
            self.end(f"calls/{late.mark}", 2)
            raise
        except OSError as error:
            raise HostError(self.name, f"cannot read {error.filename}: {error.strerror}") from None

    def checked(self, words: Sequence[str], failure: str, exchange: Exchange | None = None) -> Completed:
        """Calls a verb that must succeed and may be repeated."""
        done = self.call(words, exchange=exchange, repeat=True)
        if done.code != 0:
            raise HostError(self.name, f"{failure}: {done.words}")
        return done

    def undo(self, command: str) -> Completed:
        """Runs a command of the undo journal; makes no temporary directory."""
        start = 'if command -v bash >/dev/null; then exec bash -c "$1"; else exec sh -c "$1"; fi'

        def attempt() -> Completed:
            with self.lock:
                self.connection.connect()
                self._was_connected = True
            return self._calls.plain(["sh", "-c", start, "sh", command], timeout=None)

        return self._persistent(attempt)

    def _persistent(self, attempt: Callable[[], _T], repeat: bool = True) -> _T:
        """Attempts again after a broken connection, for as long as `reconnect_timeout`."""
        since: float | None = None
        attempts_left = 3
        while True:
            try:
                return attempt()
            except DirectoryGoneError:
                self._forget_directory()
                attempts_left -= 1
                if not attempts_left:
                    text = (
                        f"{self._directory} was removed there three times; exempt it from the cleaning of {self._base}"
                    )
                    raise HostError(self.name, text) from None
            except ConnectionLostError as lost:
                if self._stop.is_set() or lost.final or not self._was_connected or (lost.begun and not repeat):
                    raise
                if since is None:
                    # A connection that was killed can be made again at once.
                    since = time.monotonic()
                    self._note(f"{lost}; connecting again for up to {self.reconnect_timeout:g} s")
                    continue
                # The timeout may be changed meanwhile, so that a campaign that is to end does not wait.
                if time.monotonic() > since + self.reconnect_timeout:
                    text = f"no connection for {self.reconnect_timeout:g} s: {lost.text}"
                    raise ConnectionLostError(self.name, text, begun=lost.begun, final=True) from None
                self._stop.wait(_RETRY_EVERY_S)

    def _ensure_directory(self) -> str:
        """Connects, and makes the temporary directory if it is missing; one attempt."""
        try:
            return self._connected_directory()
        except ConnectionLostError as lost:
            # What this attempt has begun may begin again.
            lost.begun = False
            raise

    def _connected_directory(self) -> str:
        with self.lock:
            if self._stop.is_set():
                raise ConnectionLostError(self.name, "the connection is closed", begun=False, final=True)
            self.connection.connect()
            self._was_connected = True
            if self._directory is None:
                if self._base is None:
                    self._base = self._check()
                directory = f"{self._base}/{_NAME}{secrets.token_hex(_SUFFIX_BYTES)}"
                # The entry comes first: no moment without it in which the directory exists.
                self._undo_id = self._undo.add(
                    self.name, f"remove the temporary directory {directory}", removal(directory)
                )
                self._directory = directory
            if not self._made:
                self._make_directory(self._directory)
                self._made = True
            return self._directory

    def _check(self) -> str:
        """Checks what is needed there; returns the directory of temporary directories."""
        done = self._calls.plain(["sh", "-c", _CHECK])
        missing, hello, base = done.out.partition(b"iosonar-checked\0")
        if done.code != 0 or not hello:
            raise HostError(self.name, f"cannot run a POSIX shell there: {done.words}")
        # A login shell may print lines first.
        if names := missing.decode(errors="replace").rpartition("\n")[2].split():
            raise HostError(self.name, f"{', '.join(names)} is missing there; install coreutils, util-linux and gzip")
        path = os.fsdecode(base.rstrip(b"\0")).rstrip("/")
        if not path.startswith("/"):
            raise HostError(self.name, f"TMPDIR there is {path!r}: set it to the absolute path of a directory")
        return path

    def _make_directory(self, directory: str) -> None:
        done = self._calls.plain(["sh", "-c", _MAKE, "sh", directory], _SCRIPT.read_bytes())
        if done.code != 0:
            raise HostError(self.name, f"cannot make {directory}: {done.words}; set TMPDIR there to another directory")

    def _forget_directory(self) -> None:
        """The directory is gone, with all files in it; the host was restarted, or the directory was removed there."""
        with self.lock:
            if self._made:
                self._note(f"{self.name}: {self._directory} is gone, with all files and runs in it; it is made again")
            self._made = False
            for forget in self.when_gone:
                forget()

    def close(self) -> None:
        """Ends what it started there, removes the temporary directory, ends the connection.

        It ends calls of other threads. If the host cannot be reached, the undo journal still has the entry.
        """
        self._stop.set()
        self._calls.interrupt()
        self.connection.interrupt()
        try:
            with self.lock:
                if self._undo_id is None or self._directory is None:
                    return
                done = self._remove_directory(self._directory)
                if not self._made:
                    # A script that makes the directory may have been interrupted here and go on there.
                    time.sleep(_RETRY_EVERY_S)
                    done = self._remove_directory(self._directory)
                if done.code != 0:
                    raise HostError(self.name, f"cannot remove {self._directory}: {done.words}")
                self._undo.done(self._undo_id)
                self._undo_id = self._directory = None
        finally:
            self.connection.close()

    def _remove_directory(self, directory: str) -> Completed:
        words = ["sh", "-c", removal(directory)]
        self.connection.connect()
        try:
            return self._calls.plain(words, timeout=END_GRACE_S + 60, closing=True)
        except ConnectionLostError:
            # The connection may have been broken before, without a sign of it.
            self.connection.connect()
            return self._calls.plain(words, timeout=END_GRACE_S + 60, closing=True)

    def end(self, what: str, grace: float) -> Completed:
        """Ends a command there by its directory, runs/NAME or calls/MARK."""
        return self.undo(f"sh {shlex.quote(self.directory)}/host.sh end {math.ceil(grace)} {what}")

    def fetch(self, words: Sequence[str], sink: Callable[[], Sink]) -> Completed:
        """Calls a verb with much output; each attempt has a new sink."""
        return self._persistent(lambda: self._calls.call(self._ensure_directory(), words, sink=sink(), timeout=None))
