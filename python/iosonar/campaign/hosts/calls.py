"""One call of the host's script: starts it, passes data in both directions, and tells how it ended."""

from __future__ import annotations

import contextlib
import secrets
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from .connection import Connection
from .host import Completed, ConnectionLostError, HostError

_PIECE = 1 << 20
_AT_A_TIME = 4
"""Commands at a time over a connection; sshd allows ten by default, and the modules of a campaign need some."""


class DirectoryGoneError(Exception):
    """The temporary directory is no longer on the host."""


@dataclass
class Pipes:
    """A call that goes on: its pipes."""

    stdin: IO[bytes]
    stdout: IO[bytes]


Exchange = Callable[[Pipes], None]
Sink = Callable[[bytes], None]


class CallTimeoutError(HostError):
    """A call did not end in time; its command may still run."""

    def __init__(self, host: str, seconds: float, mark: str) -> None:
        super().__init__(host, f"the command did not end within {seconds:g} s")
        self.mark = mark


class Calls:
    """The calls over one connection, which may be made by several threads."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._host = connection.host
        self._slots = threading.BoundedSemaphore(_AT_A_TIME)
        self._running: set[subprocess.Popen[bytes]] = set()
        self.interrupted = False

    def interrupt(self) -> None:
        """Ends the local half of all calls; they raise an error."""
        self.interrupted = True
        for process in list(self._running):
            with contextlib.suppress(ProcessLookupError):
                process.kill()

    def plain(
        self, words: Sequence[str], source: bytes = b"", *, timeout: float | None = 60, closing: bool = False
    ) -> Completed:
        """Runs words on the host without its script there; for `closing` also after an interruption."""
        with self._slots, self._started(words, subprocess.PIPE, closing) as (process, err):
            try:
                out, _ = process.communicate(source, timeout)
            except subprocess.TimeoutExpired:
                raise HostError(self._host, f"no answer within {timeout:g} s") from None
            said = _read(err)
            if self.interrupted and not closing:
                raise ConnectionLostError(self._host, "interrupted", begun=True, final=True)
            if self._broke(process.returncode):
                raise ConnectionLostError(self._host, _reason(said), begun=True)
            return Completed(_shell_code(process.returncode), out, said)

    def call(
        self,
        directory: str,
        words: Sequence[str],
        *,
        source: bytes | Path = b"",
        sink: Sink | None = None,
        exchange: Exchange | None = None,
        timeout: float | None = 60,
    ) -> Completed:
        """Calls a verb of the script in the directory.

        Standard output goes to `sink` piece by piece, or is handled by `exchange`, or is returned.
        """
        mark = f"iosonar-{secrets.token_hex(8)}"
        # Without the script, sh itself would fail with a code that depends on the shell.
        start = 'if [ -f "$0" ]; then exec sh "$0" "$@"; else echo "$2 gone" >&2; exit 3; fi'
        command = ["sh", "-c", start, f"{directory}/host.sh", words[0], mark, *words[1:]]
        begins = f"{mark} begins\n".encode()
        with contextlib.ExitStack() as stack:
            stack.enter_context(self._slots)
            stdin: IO[bytes] | int = subprocess.PIPE
            if isinstance(source, Path):
                stdin = stack.enter_context(source.open("rb"))
            process, err = stack.enter_context(self._started(command, stdin))
            output = b""
            try:
                if sink or exchange:
                    self._stream(process, begins, sink, exchange)
                    process.wait(timeout)
                else:
                    output, _ = process.communicate(None if isinstance(source, Path) else source, timeout)
                    _, _, output = output.partition(begins)
            except subprocess.TimeoutExpired:
                raise CallTimeoutError(self._host, timeout or 0, mark) from None
            return self._ended(process.returncode, mark, _read(err), output)

    def _stream(
        self, process: subprocess.Popen[bytes], begins: bytes, sink: Sink | None, exchange: Exchange | None
    ) -> None:
        assert process.stdin is not None and process.stdout is not None
        # A login shell may print something first.
        while (line := process.stdout.readline()) and not line.endswith(begins):
            pass
        if line and exchange:
            with contextlib.suppress(BrokenPipeError):
                exchange(Pipes(process.stdin, process.stdout))
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        while piece := process.stdout.read(_PIECE):
            if sink:
                sink(piece)

    def _ended(self, code: int, mark: str, said: bytes, output: bytes) -> Completed:
        before, begun, said_after = said.partition(f"{mark} begins\n".encode())
        words, ended, end = said_after.rpartition(f"\n{mark} ends ".encode())
        if begun and ended:
            code_word, _, rest = end.partition(b"\n")
            return Completed(int(code_word), output, words + rest)
        if self.interrupted:
            raise ConnectionLostError(self._host, "interrupted", begun=bool(begun), final=True)
        if f"{mark} gone".encode() in said:
            raise DirectoryGoneError
        if self._broke(code):
            reason = _reason(before if not begun else said_after)
            raise ConnectionLostError(self._host, reason, begun=bool(begun))
        if begun:
            raise HostError(self._host, "the command was killed")
        raise HostError(self._host, f"cannot run a command: {_reason(said) or f'exit code {code}'}")

    def _broke(self, code: int) -> bool:
        """Whether the connection ended, not the command: ssh says so, or was killed itself."""
        return self._connection.fails_with is not None and (code == self._connection.fails_with or code < 0)

    @contextlib.contextmanager
    def _started(
        self, words: Sequence[str], stdin: IO[bytes] | int, closing: bool = False
    ) -> Iterator[tuple[subprocess.Popen[bytes], IO[bytes]]]:
        # A session of its own: Ctrl-C at the terminal reaches only the controller, which cleans up.
        with tempfile.TemporaryFile() as err:
            process = subprocess.Popen(
                self._connection.argv(words), stdin=stdin, stdout=subprocess.PIPE, stderr=err, start_new_session=True
            )
            self._running.add(process)
            try:
                if self.interrupted and not closing:
                    process.kill()
                yield process, err
            finally:
                if process.poll() is None:
                    process.send_signal(signal.SIGKILL)
                process.wait()
                self._running.discard(process)
                for pipe in (process.stdin, process.stdout):
                    if pipe:
                        with contextlib.suppress(OSError):
                            pipe.close()


def _read(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read()


def _shell_code(code: int) -> int:
    """The code that a shell gives for an ended process."""
    return 128 - code if code < 0 else code


def _reason(said: bytes) -> str:
    """The last line of ssh's standard error."""
    lines = [line.strip() for line in said.decode(errors="replace").splitlines() if line.strip()]
    return lines[-1] if lines else "the connection broke"
