"""The connection to a host and the temporary folder there: made on first use, and again when they are lost."""

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

from .calls import Calls, CallTimeoutError, Exchange, FolderGoneError, Sink
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


def removal(folder: str) -> str:
    """The command that ends what runs from a temporary folder on a host and removes that folder, and nothing else."""
    return f"""folder={shlex.quote(folder)}
name=${{folder##*/}}
case $folder:$name in
*:{_NAME}*[!0-9a-f]*) name= ;;
/*/{_NAME}*:{_NAME}{"?" * 2 * _SUFFIX_BYTES}) ;;
*) name= ;;
esac
if [ -z "$name" ]; then echo "$folder is not a temporary folder of a campaign" >&2; exit 1; fi
if [ -L "$folder" ]; then echo "$folder is a symbolic link; remove it by hand" >&2; exit 1; fi
[ -d "$folder" ] || exit 0
if [ ! -f "$folder/host.sh" ] || sh "$folder/host.sh" end {END_GRACE_S}; then
    # Again if a copy to the folder was just beginning.
    rm -rf --one-file-system -- "$folder" || {{ sleep 1; rm -rf --one-file-system -- "$folder"; }}
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
        """Called after the temporary folder has disappeared, with all that was in it."""
        self._calls = Calls(connection)
        self._undo = undo
        self._note = note
        self._stop = threading.Event()
        self._base: str | None = None
        self._folder: str | None = None
        self._undo_id: str | None = None
        self._was_connected = False
        self._made = False

    @property
    def folder(self) -> str:
        """The temporary folder there, made on first use."""
        return self._persistent(self._ensure_folder)

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
            folder = self._ensure_folder()
            return self._calls.call(folder, words, source=source, sink=sink, exchange=exchange, timeout=timeout)

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
        """Runs a command of the undo journal; makes no temporary folder."""
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
            except FolderGoneError:
                self._forget_folder()
                attempts_left -= 1
                if not attempts_left:
                    text = f"{self._folder} was removed there three times; exempt it from the cleaning of {self._base}"
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

    def _ensure_folder(self) -> str:
        """Connects, and makes the temporary folder if it is missing; one attempt."""
        try:
            return self._connected_folder()
        except ConnectionLostError as lost:
            # What this attempt has begun may begin again.
            lost.begun = False
            raise

    def _connected_folder(self) -> str:
        with self.lock:
            if self._stop.is_set():
                raise ConnectionLostError(self.name, "the connection is closed", begun=False, final=True)
            self.connection.connect()
            self._was_connected = True
            if self._folder is None:
                if self._base is None:
                    self._base = self._check()
                folder = f"{self._base}/{_NAME}{secrets.token_hex(_SUFFIX_BYTES)}"
                # The entry comes first: no moment without it in which the folder exists.
                self._undo_id = self._undo.add(self.name, f"remove the temporary folder {folder}", removal(folder))
                self._folder = folder
            if not self._made:
                self._make_folder(self._folder)
                self._made = True
            return self._folder

    def _check(self) -> str:
        """Checks what is needed there; returns the folder of temporary folders."""
        done = self._calls.plain(["sh", "-c", _CHECK])
        missing, hello, base = done.out.partition(b"iosonar-checked\0")
        if done.code != 0 or not hello:
            raise HostError(self.name, f"cannot run a POSIX shell there: {done.words}")
        # A login shell may print lines first.
        if names := missing.decode(errors="replace").rpartition("\n")[2].split():
            raise HostError(self.name, f"{', '.join(names)} is missing there; install coreutils, util-linux and gzip")
        path = os.fsdecode(base.rstrip(b"\0")).rstrip("/")
        if not path.startswith("/"):
            raise HostError(self.name, f"TMPDIR there is {path!r}: set it to the absolute path of a folder")
        return path

    def _make_folder(self, folder: str) -> None:
        done = self._calls.plain(["sh", "-c", _MAKE, "sh", folder], _SCRIPT.read_bytes())
        if done.code != 0:
            raise HostError(self.name, f"cannot make {folder}: {done.words}; set TMPDIR there to another folder")

    def _forget_folder(self) -> None:
        """The folder is gone, with all files in it; the host was restarted, or the folder was removed there."""
        with self.lock:
            if self._made:
                self._note(f"{self.name}: {self._folder} is gone, with all files and runs in it; it is made again")
            self._made = False
            for forget in self.when_gone:
                forget()

    def close(self) -> None:
        """Ends what it started there, removes the temporary folder, ends the connection.

        It ends calls of other threads. If the host cannot be reached, the undo journal still has the entry.
        """
        self._stop.set()
        self._calls.interrupt()
        self.connection.interrupt()
        try:
            with self.lock:
                if self._undo_id is None or self._folder is None:
                    return
                done = self._remove_folder(self._folder)
                if not self._made:
                    # A script that makes the folder may have been interrupted here and go on there.
                    time.sleep(_RETRY_EVERY_S)
                    done = self._remove_folder(self._folder)
                if done.code != 0:
                    raise HostError(self.name, f"cannot remove {self._folder}: {done.words}")
                self._undo.done(self._undo_id)
                self._undo_id = self._folder = None
        finally:
            self.connection.close()

    def _remove_folder(self, folder: str) -> Completed:
        words = ["sh", "-c", removal(folder)]
        self.connection.connect()
        try:
            return self._calls.plain(words, timeout=END_GRACE_S + 60, closing=True)
        except ConnectionLostError:
            # The connection may have been broken before, without a sign of it.
            self.connection.connect()
            return self._calls.plain(words, timeout=END_GRACE_S + 60, closing=True)

    def end(self, what: str, grace: float) -> Completed:
        """Ends a command there by its folder, runs/NAME or calls/MARK."""
        return self.undo(f"sh {shlex.quote(self.folder)}/host.sh end {math.ceil(grace)} {what}")

    def fetch(self, words: Sequence[str], sink: Callable[[], Sink]) -> Completed:
        """Calls a verb with much output; each attempt has a new sink."""
        return self._persistent(lambda: self._calls.call(self._ensure_folder(), words, sink=sink(), timeout=None))
