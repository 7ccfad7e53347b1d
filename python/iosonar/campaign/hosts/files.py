"""Files to and from a host, compared by SHA-256."""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO

from iosonar.errors import UserError

from .calls import Sink
from .host import HostError
from .names import checked_file
from .session import HostSession

_MISMATCH = 65
"""The exit code of the verb `put` if the content that arrived is another."""

_START = 1 << 14
"""Bytes at the start of a growing file that may still change: they are copied again while a copy has no more."""

_sums: dict[tuple[str, int, int, int], str] = {}


def sha256_of(source: Path) -> str:
    """The sum of a file; it is computed again only if the file has changed."""
    try:
        status = source.stat()
        key = (str(source.resolve()), status.st_ino, status.st_size, status.st_mtime_ns)
        if key not in _sums:
            with source.open("rb") as file:
                _sums[key] = hashlib.file_digest(file, "sha256").hexdigest()
        return _sums[key]
    except OSError as error:
        raise UserError(f"cannot read {source}: {error.strerror}") from None


class Files:
    """The files that the controller has sent to a host."""

    def __init__(self, session: HostSession) -> None:
        self._session = session
        self._sent: dict[str, str] = {}
        session.when_gone.append(self._sent.clear)

    def put(self, source: Path, name: str) -> str:
        """Copies a file; returns its path there. The same content is not sent twice."""
        checked_file(name)
        sum_ = sha256_of(source)
        # First, as a new directory has no files.
        directory = self._session.directory
        sent = self._sent.get(sum_)
        if sent is None or self._session.call(["link", sent, name], repeat=True).code != 0:
            self._send(source, name, sum_)
            self._sent[sum_] = name
        return f"{directory}/files/{name}"

    def _send(self, source: Path, name: str, sum_: str) -> None:
        for _ in range(2):
            done = self._session.call(["put", name, sum_], source=source, timeout=None, repeat=True)
            if done.code == 0:
                return
            if done.code != _MISMATCH:
                raise HostError(self._session.name, f"cannot copy {source} to the host: {done.words}")
        raise self._mismatch(str(source))

    def get(self, remote: str, target: Path) -> None:
        """Copies a file from there; `target` appears when it is complete and verified."""
        part = target.with_name(f".{target.name}.get")
        try:
            for _ in range(2):
                with part.open("wb") as file:
                    is_complete = self.fetch(remote, file)
                    file.flush()
                    os.fsync(file.fileno())
                if is_complete:
                    part.replace(target)
                    return
        except OSError as error:
            raise UserError(f"cannot write {target}: {error.strerror}") from None
        finally:
            part.unlink(missing_ok=True)
        raise self._mismatch(remote)

    def fetch(self, remote: str, file: IO[bytes]) -> bool:
        """Copies a file from there into an open one; False if another content arrived."""
        received = _Received(file.write)

        def sink() -> Sink:
            nonlocal received
            file.seek(0)
            file.truncate()
            received = _Received(file.write)
            return received.take

        done = self._session.fetch(["get", remote], sink)
        if done.code != 0:
            raise HostError(self._session.name, f"cannot copy {remote} from the host: {done.words}")
        return received.is_complete()

    def grow(self, remote: str, target: Path) -> None:
        """Appends to a copy what a file has grown by there, if there is such a file."""
        with target.open("ab"):
            pass
        with target.open("r+b") as file:
            known = file.seek(0, os.SEEK_END)
            if known < _START:
                known = 0

            def sink() -> Sink:
                file.seek(known)
                file.truncate()
                unzip = zlib.decompressobj(31)

                def take(piece: bytes) -> None:
                    file.write(unzip.decompress(piece))

                return take

            done = self._session.fetch(["growth", remote, str(known)], sink)
            if done.code != 0:
                raise HostError(self._session.name, f"cannot copy {remote} from the host: {done.words}")

    def _mismatch(self, path: str) -> HostError:
        text = f"the copy of {path} differed twice; the file changes while it is read, or the network is faulty"
        return HostError(self._session.name, text)


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
