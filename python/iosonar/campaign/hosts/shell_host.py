"""A host with a POSIX shell: all that a campaign does there, over any connection."""

from __future__ import annotations

import hashlib
import math
import os
import secrets
import shlex
import threading
import time
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from iosonar.campaign.program import program_for
from iosonar.campaign.undo import Undo
from iosonar.errors import UserError

from .calls import Calls, CallTimeoutError, Conversation, FolderGoneError, Sink, Talk
from .connection import Connection
from .host import ClockOffset, Completed, ConnectionLostError, HostError, HostSample, RunStatus
from .names import checked_file, checked_run
from .run import RemoteRun, parsed_status

Note = Callable[[str], None]
_T = TypeVar("_T")

_SCRIPT = Path(__file__).with_name("host.sh")
NEEDED = "cat date df gzip head ln mkdir mv od rm setsid sha256sum sleep tail tr uname wc"
_NAME = "iosonar-campaign."
_PIECE = 1 << 20
_EXCHANGES = 40
_LONGEST_MEASUREMENT_S = 2.0
_MISMATCH = 65
_RETRY_EVERY_S = 1.0
END_GRACE_S = 30
"""Seconds for a replay to undo what it changed, after TERM."""

_HELLO = f"""
for program in {NEEDED}; do command -v "$program" >/dev/null || printf '%s ' "$program"; done
[ -r /proc/self/stat ] || printf '/proc '
printf 'iosonar-hello\\0%s\\0' "${{TMPDIR:-/tmp}}"
"""
_MAKE = """
umask 077
{ [ -d "$1" ] && [ ! -L "$1" ] && [ -O "$1" ] || mkdir "$1"; } &&
    mkdir -p "$1/files" "$1/runs" "$1/calls" && cat >"$1/host.part" && mv "$1/host.part" "$1/host.sh"
"""


def removal(folder: str) -> str:
    """The command that ends what runs from a temporary folder on a host and removes that folder, and nothing else."""
    return f"""folder={shlex.quote(folder)}
case $folder in
/*/{_NAME}????????) ;;
*) echo "$folder is not a temporary folder of a campaign" >&2; exit 1 ;;
esac
if [ -L "$folder" ]; then echo "$folder is a symbolic link; remove it by hand" >&2; exit 1; fi
[ -d "$folder" ] || exit 0
if [ ! -f "$folder/host.sh" ] || sh "$folder/host.sh" end {END_GRACE_S}; then
    rm -rf --one-file-system -- "$folder"
else
    exit 1
fi"""


class ShellHost:
    """A host that is reached by a connection; see Host for what its methods promise."""

    def __init__(
        self,
        name: str,
        connection: Connection,
        undo: Undo,
        *,
        reconnect_timeout: float = 300,
        note: Note = lambda _: None,
    ) -> None:
        self._name = name
        self._connection = connection
        self._calls = Calls(connection)
        self._undo = undo
        self.reconnect_timeout = reconnect_timeout
        """Seconds in which a broken connection must come back."""
        self._note = note
        self._lock = threading.RLock()
        self._stop = threading.Event()
        self._base: str | None = None
        self._folder: str | None = None
        self._undo_id: str | None = None
        self._was_connected = False
        self._made = False
        self._sent: dict[str, str] = {}
        self._sums: dict[tuple[str, int, int, int], str] = {}
        self._program: str | None = None
        self._runs: dict[str, RemoteRun] = {}
        self._ended: dict[str, RunStatus] = {}

    @property
    def name(self) -> str:
        """As in the conf."""
        return self._name

    @property
    def folder(self) -> str:
        """The temporary folder there, made on first use."""
        return self._persistent(self._ensure_folder)

    # Commands

    def run(
        self,
        argv: Sequence[str],
        *,
        input: bytes = b"",  # noqa: A002
        timeout: float | None = 60,
    ) -> Completed:
        """Runs a command; its words reach it unchanged. After the timeout it is ended."""
        return self._call(["run", *argv], source=input, timeout=timeout, repeat=False)

    def script(
        self,
        text: str,
        *args: str,
        input: bytes = b"",  # noqa: A002
        timeout: float | None = 60,
    ) -> Completed:
        """Runs a script by sh with arguments."""
        return self._call(["script", text, "sh", *args], source=input, timeout=timeout, repeat=False)

    def undo(self, command: str) -> Completed:
        """Runs a command of the undo journal; makes no temporary folder."""
        start = 'if command -v bash >/dev/null; then exec bash -c "$1"; else exec sh -c "$1"; fi'

        def attempt() -> Completed:
            with self._lock:
                self._connection.connect()
                self._was_connected = True
            return self._calls.plain(["sh", "-c", start, "sh", command], timeout=None)

        return self._persistent(attempt)

    def shell_words(self) -> list[str]:
        """The words to which a shell on the controller appends one more: `shell_prefix` and a quoted command line."""
        self._persistent(self._ensure_folder)
        return self._connection.shell_words()

    def shell_prefix(self) -> str:
        """See `shell_words`. A command line that is quoted by sh's rules in single quotes follows."""
        return f"sh {shlex.quote(self.folder)}/host.sh shell "

    # Files

    def put(self, source: Path, name: str) -> str:
        """Copies a file; returns its path there. The same content is not sent twice."""
        checked_file(name)
        sum_ = self._sum(source)
        folder = self.folder
        with self._lock:
            sent = self._sent.get(sum_)
        if sent is not None and self._call(["link", sent, name], repeat=True).code == 0:
            return f"{folder}/files/{name}"
        done = self._call(["put", name, sum_], source=source, timeout=None, repeat=True)
        if done.code == _MISMATCH:
            done = self._call(["put", name, sum_], source=source, timeout=None, repeat=True)
        if done.code == _MISMATCH:
            raise HostError(
                self._name, f"{source} arrived with another content, twice; it changes, or the transfer is faulty"
            )
        if done.code != 0:
            raise HostError(self._name, f"cannot copy {source} to the host: {done.words}")
        with self._lock:
            self._sent[sum_] = name
        return f"{self.folder}/files/{name}"

    def get(self, remote: str, target: Path) -> None:
        """Copies a file from there; `target` appears when it is complete and verified."""
        part = target.with_name(f".{target.name}.get")
        try:
            for _ in range(2):
                if self._persistent(lambda: self._get(remote, part)):
                    part.replace(target)
                    return
        except OSError as error:
            raise UserError(f"cannot write {target}: {error.strerror}") from None
        finally:
            part.unlink(missing_ok=True)
        raise HostError(
            self._name, f"{remote} arrived with another content, twice; it changes, or the transfer is faulty"
        )

    def _get(self, remote: str, part: Path) -> bool:
        """One attempt; False if the content differs."""
        with part.open("wb") as file:
            received = _Received(file.write)
            folder = self._ensure_folder()
            done = self._calls.call(folder, ["get", remote], sink=received.take, timeout=None)
            if done.code != 0:
                raise HostError(self._name, f"cannot copy {remote} from the host: {done.words}")
            complete = received.is_complete()
            file.flush()
            os.fsync(file.fileno())
        return complete

    def _sum(self, source: Path) -> str:
        try:
            status = source.stat()
            key = (str(source.resolve()), status.st_ino, status.st_size, status.st_mtime_ns)
            if key not in self._sums:
                with source.open("rb") as file:
                    self._sums[key] = hashlib.file_digest(file, "sha256").hexdigest()
            return self._sums[key]
        except OSError as error:
            raise UserError(f"cannot read {source}: {error.strerror}") from None

    def program(self) -> str:
        """The path of an iosonar there that is identical to the controller's; brings it if it is missing."""
        with self._lock:
            if self._program is None:
                self._program = self._find_program()
            return self._program

    def _find_program(self) -> str:
        architecture, *found = self._checked(["program"], "cannot look for iosonar").text.splitlines()
        try:
            ours = program_for(architecture)
        except UserError as error:
            raise HostError(self._name, str(error)) from None
        if len(found) == 2 and found[0] == self._sum(ours):
            return found[1]
        path = self.put(ours, "iosonar")
        done = self.run(["sh", "-c", 'chmod 700 "$0" && exec "$0" --version', path])
        if done.code != 0:
            raise HostError(
                self._name,
                f"{ours} does not run there: {done.words}; install an iosonar that was built for this host,"
                " or set TMPDIR there to a folder from which programs may run",
            )
        return path

    # Looks

    def expand(self, pattern: str) -> list[str]:
        """The paths there that match a pattern of the shell, in ASCII order; nothing else is evaluated."""
        return sorted(self._checked(["expand", pattern], f"cannot expand {pattern}").text.split("\0")[:-1])

    def clock(self) -> ClockOffset:
        """Measures the offset of its clock: many exchanges over one connection, of which the fastest counts."""
        best: list[ClockOffset] = []

        def talk(conversation: Conversation) -> None:
            until = time.monotonic() + _LONGEST_MEASUREMENT_S
            for _ in range(_EXCHANGES):
                if (exchange := self._exchange(conversation)) is None:
                    return
                best.append(exchange)
                if time.monotonic() > until:
                    return

        self._checked(["clock"], "cannot read its clock", talk=talk)
        if not best:
            raise HostError(self._name, "cannot read its clock: date has no nanoseconds there; install GNU coreutils")
        return min(best, key=lambda each: each.uncertainty_s)

    def _exchange(self, conversation: Conversation) -> ClockOffset | None:
        before = time.time_ns()
        conversation.stdin.write(b"\n")
        conversation.stdin.flush()
        answer = conversation.stdout.readline()
        after = time.time_ns()
        seconds, _, fraction = answer.strip().partition(b".")
        if not (seconds.isdigit() and len(fraction) == 9 and fraction.isdigit()):
            return None
        there = int(seconds) * 10**9 + int(fraction)
        return ClockOffset((2 * there - before - after) / 2e9, (after - before) / 2e9)

    def watch(self) -> HostSample:
        """Its load and free space."""
        load, free_kib = self._checked(["watch"], "cannot read its load").text.split()
        return HostSample(time.time(), float(load), int(free_kib) * 1024)

    # Detached runs

    def start(self, argv: Sequence[str], name: str) -> RemoteRun:
        """Starts a command that goes on when the connection breaks; no other run there has this name."""
        checked_run(name)
        with self._lock:
            if name in self._runs:
                raise HostError(self._name, f"a run {name} exists already")
            run = self._runs[name] = RemoteRun(self, name, f"{self.folder}/runs/{name}")
        self._checked(["start", name, *argv], f"cannot start {name}")
        return run

    def started(self, name: str) -> RemoteRun | None:
        """The run of this name, also if its start was not confirmed."""
        with self._lock:
            return self._runs.get(name)

    def poll_all(self) -> dict[str, RunStatus]:
        """The state of every run that was started there, by name, in one round trip."""
        return self.poll(list(self._runs))

    def poll(self, names: Sequence[str]) -> dict[str, RunStatus]:
        """The state of some runs."""
        known = {name: self._ended[name] for name in names if name in self._ended}
        running = [name for name in names if name not in known]
        if not running:
            return known
        out = self._checked(["poll", *running], "cannot poll its runs").out
        for name in running:
            known[name], out = parsed_status(out)
            if known[name].state == "ended":
                self._ended[name] = known[name]
        return {name: known[name] for name in names}

    def output_of(self, run: RemoteRun) -> bytes:
        """The standard output of a run so far."""
        pieces: list[bytes] = []
        received = _Received(pieces.append)
        done = self._call(["get", f"{run.folder}/out"], sink=received.take, repeat=True)
        if done.code != 0:
            raise HostError(self._name, f"cannot read what {run.name} wrote: {done.words}")
        return b"".join(pieces)

    def end(self, run: RemoteRun, grace: float) -> None:
        """Ends a run."""
        done = self._end(f"runs/{run.name}", grace)
        if done.code != 0:
            raise HostError(self._name, f"cannot end {run.name}: {done.words}")

    def _end(self, what: str, grace: float) -> Completed:
        return self.undo(f"sh {shlex.quote(self.folder)}/host.sh end {math.ceil(grace)} {what}")

    # The connection and the folder

    def close(self) -> None:
        """Ends what it started there, removes the temporary folder, ends the connection.

        It ends calls of other threads. If the host cannot be reached, the undo journal still has the entry.
        """
        self._stop.set()
        self._calls.interrupt()
        self._connection.interrupt()
        try:
            with self._lock:
                if self._undo_id is None or self._folder is None:
                    return
                done = self._remove_folder(self._folder)
                if done.code != 0:
                    raise HostError(self._name, f"cannot remove {self._folder}: {done.words}")
                self._undo.done(self._undo_id)
                self._undo_id = self._folder = None
        finally:
            self._connection.close()

    def _remove_folder(self, folder: str) -> Completed:
        words = ["sh", "-c", removal(folder)]
        self._connection.connect()
        try:
            return self._calls.plain(words, timeout=END_GRACE_S + 60, closing=True)
        except ConnectionLostError:
            # The connection may have been broken before, without a sign of it.
            self._connection.connect()
            return self._calls.plain(words, timeout=END_GRACE_S + 60, closing=True)

    def _checked(self, words: Sequence[str], failure: str, talk: Talk | None = None) -> Completed:
        done = self._call(words, talk=talk, repeat=True)
        if done.code != 0:
            raise HostError(self._name, f"{failure}: {done.words}")
        return done

    def _call(
        self,
        words: Sequence[str],
        *,
        source: bytes | Path = b"",
        sink: Sink | None = None,
        talk: Talk | None = None,
        timeout: float | None = 60,
        repeat: bool,
    ) -> Completed:
        def attempt() -> Completed:
            folder = self._ensure_folder()
            return self._calls.call(folder, words, source=source, sink=sink, talk=talk, timeout=timeout)

        try:
            return self._persistent(attempt, repeat=repeat)
        except CallTimeoutError as late:
            self._end(f"calls/{late.mark}", 2)
            raise
        except OSError as error:
            raise HostError(self._name, f"cannot read {error.filename}: {error.strerror}") from None

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
                    raise HostError(self._name, f"{self._folder} disappears again and again there") from None
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
                    raise ConnectionLostError(self._name, text, begun=lost.begun, final=True) from None
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
        with self._lock:
            if self._stop.is_set():
                raise ConnectionLostError(self._name, "the connection is closed", begun=False, final=True)
            self._connection.connect()
            self._was_connected = True
            if self._folder is None:
                if self._base is None:
                    self._base = self._hello()
                folder = f"{self._base}/{_NAME}{secrets.token_hex(4)}"
                # The entry comes first: no moment without it in which the folder exists.
                self._undo_id = self._undo.add(self._name, f"remove the temporary folder {folder}", removal(folder))
                self._folder = folder
            if not self._made:
                self._make_folder(self._folder)
                self._made = True
            return self._folder

    def _hello(self) -> str:
        """Checks what is needed there; returns the folder of temporary folders."""
        done = self._calls.plain(["sh", "-c", _HELLO])
        missing, hello, base = done.out.partition(b"iosonar-hello\0")
        if done.code != 0 or not hello:
            raise HostError(self._name, f"cannot run a POSIX shell there: {done.words}")
        # A login shell may print lines first.
        if names := missing.decode(errors="replace").rpartition("\n")[2].split():
            raise HostError(self._name, f"{', '.join(names)} is missing there; install coreutils, util-linux and gzip")
        path = os.fsdecode(base.rstrip(b"\0")).rstrip("/")
        if not path.startswith("/"):
            raise HostError(self._name, f"TMPDIR there is {path!r}: set it to the absolute path of a folder")
        return path

    def _make_folder(self, folder: str) -> None:
        done = self._calls.plain(["sh", "-c", _MAKE, "sh", folder], _SCRIPT.read_bytes())
        if done.code != 0:
            raise HostError(self._name, f"cannot make {folder}: {done.words}; set TMPDIR there to another folder")

    def _forget_folder(self) -> None:
        """The folder is gone, with all files in it; the host was restarted, or the folder was removed there."""
        with self._lock:
            if self._made:
                self._note(
                    f"{self._name}: the temporary folder {self._folder} is gone, and what ran there; making it again"
                )
            self._made = False
            self._sent.clear()
            self._program = None


class _Received:
    """Takes the output of the verb `get`: a line with sum and coding, then the content."""

    def __init__(self, write: Callable[[bytes], object]) -> None:
        self._write = write
        self._header: bytes | None = None
        self._start = b""
        self._unzip: zlib._Decompress | None = None
        self._sum = hashlib.sha256()
        self._expected = ""
        self._is_broken = False

    def take(self, piece: bytes) -> None:
        if not self._expected:
            self._start += piece
            line, end, piece = self._start.partition(b"\n")
            if not end:
                return
            self._expected, _, coding = line.decode(errors="replace").partition(" ")
            if coding == "gzip":
                self._unzip = zlib.decompressobj(31)
        if self._unzip and not self._is_broken:
            try:
                piece = self._unzip.decompress(piece)
            except zlib.error:
                self._is_broken = True
        if not self._is_broken:
            self._sum.update(piece)
            self._write(piece)

    def is_complete(self) -> bool:
        return not self._is_broken and self._sum.hexdigest() == self._expected
