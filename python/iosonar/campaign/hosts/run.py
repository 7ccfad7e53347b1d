"""Commands that go on when the connection breaks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Protocol

from .host import RunStatus

_REASONS = {
    "directory": "its directory on the host is gone; the host was restarted, or the directory was removed",
    "restart": "the host was restarted",
    "killed": "its processes were killed",
}


class _RunningHost(Protocol):
    @property
    def name(self) -> str: ...
    def poll(self, names: Sequence[str]) -> dict[str, RunStatus]: ...
    def output_of(self, run: RemoteRun) -> bytes: ...
    def end(self, run: RemoteRun, grace: float) -> None: ...


class RemoteRun:
    """A detached command on a host."""

    def __init__(self, host: _RunningHost, name: str, directory: str) -> None:
        self._host = host
        self.name = name
        self.host = host.name
        self.directory = directory
        """Its own directory on the host, and its working directory."""

    def poll(self) -> RunStatus:
        """The state now."""
        return self._host.poll([self.name])[self.name]

    def out(self) -> bytes:
        """Its standard output so far."""
        return self._host.output_of(self)

    def kill(self, grace: float = 30) -> None:
        """Sends TERM to all its processes, KILL to those that are left after `grace` seconds, and waits."""
        self._host.end(self, grace)


def parsed_status(out: bytes) -> tuple[RunStatus, bytes]:
    """Reads one answer of the verb `poll`; returns what follows it too."""
    header, _, rest = out.partition(b"\n")
    state, detail, length = header.decode().split()
    err, rest = rest[: int(length)], rest[int(length) :]
    lines = err.decode(errors="replace").splitlines()
    progress = next((each for line in reversed(lines) if (each := _json(line)) is not None), None)
    words = "\n".join(line for line in lines if _json(line) is None)
    if state == "ended":
        return RunStatus("ended", int(detail), "", progress, words), rest
    if state == "lost":
        return RunStatus("lost", None, _REASONS[detail], progress, words), rest
    return RunStatus("running", None, "", progress, words), rest


def _json(line: str) -> dict[str, Any] | None:
    if not line.startswith("{"):
        return None
    try:
        value = json.loads(line)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
