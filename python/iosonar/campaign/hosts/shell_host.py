"""A host with a POSIX shell: all that a campaign does there, over any connection."""

from __future__ import annotations

import io
import shlex
import time
from collections.abc import Sequence
from pathlib import Path

from iosonar.campaign.program import program_for
from iosonar.campaign.undo import Undo
from iosonar.errors import UserError

from .calls import Pipes
from .clock import Exchange
from .connection import Connection
from .files import Files, sha256_of
from .host import ClockReading, Completed, HostError, HostSample, RunStatus
from .names import checked_run
from .run import RemoteRun, parsed_status
from .session import HostSession, Note

EXCHANGES = 40
"""Before and after a run; the first ones are slower, as everything is read into the memory."""
_FEWEST_EXCHANGES = 8
_LONGEST_MEASUREMENT_S = 2.0
"""After the fewest exchanges: the first one waits until the program there has begun."""


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
        self.session = HostSession(name, connection, undo, reconnect_timeout, note)
        self._files = Files(self.session)
        self._program: str | None = None
        self._runs: dict[str, RemoteRun] = {}
        self._ended: dict[str, RunStatus] = {}
        self.session.when_gone.append(self._forget_program)

    @property
    def name(self) -> str:
        """As in the conf."""
        return self.session.name

    @property
    def directory(self) -> str:
        """The temporary directory there, made on first use."""
        return self.session.directory

    @property
    def reconnect_timeout(self) -> float:
        """Seconds in which a broken connection must come back."""
        return self.session.reconnect_timeout

    @reconnect_timeout.setter
    def reconnect_timeout(self, seconds: float) -> None:
        self.session.reconnect_timeout = seconds

    # Commands

    def run(
        self,
        argv: Sequence[str],
        *,
        input: bytes = b"",  # noqa: A002
        timeout: float | None = 60,
    ) -> Completed:
        """Runs a command; its words reach it unchanged. After the timeout it is ended."""
        return self.session.call(["run", *argv], source=input, timeout=timeout, repeat=False)

    def script(
        self,
        text: str,
        *args: str,
        input: bytes = b"",  # noqa: A002
        timeout: float | None = 60,
    ) -> Completed:
        """Runs a script by sh with arguments."""
        return self.session.call(["script", text, "sh", *args], source=input, timeout=timeout, repeat=False)

    def undo(self, command: str) -> Completed:
        """Runs a command of the undo journal; makes no temporary directory."""
        return self.session.undo(command)

    def shell_words(self) -> list[str]:
        """The words to which a shell on the controller appends one more: `shell_prefix` and a quoted command line."""
        # Connects, and makes the script that the prefix names.
        assert self.directory
        return self.session.connection.shell_words()

    def shell_prefix(self) -> str:
        """See `shell_words`. A command line that is quoted by sh's rules in single quotes follows."""
        return f"sh {shlex.quote(self.directory)}/host.sh shell "

    # Files

    def put(self, source: Path, name: str) -> str:
        """Copies a file; returns its path there. The same content is not sent twice."""
        return self._files.put(source, name)

    def get(self, remote: str, target: Path) -> None:
        """Copies a file from there; `target` appears when it is complete and verified."""
        self._files.get(remote, target)

    def grow(self, remote: str, target: Path) -> None:
        """Appends to a copy what a file has grown by there, if there is such a file."""
        self._files.grow(remote, target)

    def program(self) -> str:
        """The path of an iosonar there that is identical to the controller's; brings it if it is missing."""
        with self.session.lock:
            if self._program is None:
                self._program = self._find_program()
            return self._program

    def _find_program(self) -> str:
        architecture, *found = self.session.checked(["program"], "cannot look for iosonar").text.splitlines()
        try:
            ours = program_for(architecture)
        except UserError as error:
            raise HostError(self.name, str(error)) from None
        if len(found) == 2 and found[0] == sha256_of(ours):
            return found[1]
        path = self.put(ours, "iosonar")
        done = self.run(["sh", "-c", 'chmod 700 "$0" && exec "$0" --version', path])
        if done.code != 0:
            raise HostError(
                self.name,
                f"{ours} does not run there: {done.words}; install an iosonar that was built for this host,"
                " or set TMPDIR there to a directory from which programs may run",
            )
        return path

    def _forget_program(self) -> None:
        self._program = None

    # Looks

    def expand(self, pattern: str) -> list[str]:
        """The paths there that match a pattern of the shell, in ASCII order; nothing else is evaluated."""
        return sorted(self.session.checked(["expand", pattern], f"cannot expand {pattern}").text.split("\0")[:-1])

    def clock(self, exchanges: int = EXCHANGES) -> ClockReading:
        """Reads its clocks, many times over one connection."""
        boots: list[bytes] = []
        found: list[Exchange] = []

        def measure(pipes: Pipes) -> None:
            boots.append(pipes.stdout.readline().strip())
            until = time.monotonic() + _LONGEST_MEASUREMENT_S
            while len(found) < exchanges and (exchange := _exchange(pipes)) is not None:
                found.append(exchange)
                if len(found) >= _FEWEST_EXCHANGES and time.monotonic() > until:
                    return

        self.session.checked(["clock", self.program()], "cannot read its clock", exchange=measure)
        if not found:
            raise HostError(self.name, "cannot read its clock: iosonar does not answer there")
        return ClockReading(boots[-1].decode(errors="replace"), tuple(found))

    def watch(self) -> HostSample:
        """Its load and free space."""
        load, free_kib = self.session.checked(["watch"], "cannot read its load").text.split()
        return HostSample(time.time(), float(load), int(free_kib) * 1024)

    # Detached runs

    def start(self, argv: Sequence[str], name: str) -> RemoteRun:
        """Starts a command that goes on when the connection breaks; no other run there has this name."""
        checked_run(name)
        with self.session.lock:
            if name in self._runs:
                raise HostError(self.name, f"a run {name} exists already")
            run = self._runs[name] = RemoteRun(self, name, f"{self.directory}/runs/{name}")
        self.session.checked(["start", name, *argv], f"cannot start {name}")
        return run

    def started(self, name: str) -> RemoteRun | None:
        """The run of this name, also if its start was not confirmed."""
        with self.session.lock:
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
        out = self.session.checked(["poll", *running], "cannot poll its runs").out
        for name in running:
            known[name], out = parsed_status(out)
            if known[name].state == "ended":
                self._ended[name] = known[name]
        return {name: known[name] for name in names}

    def output_of(self, run: RemoteRun) -> bytes:
        """The standard output of a run so far."""
        out = io.BytesIO()
        for _ in range(2):
            # It may grow while it is read.
            if self._files.fetch(f"{run.directory}/out", out):
                break
        return out.getvalue()

    def end(self, run: RemoteRun, grace: float) -> None:
        """Ends a run."""
        done = self.session.end(f"runs/{run.name}", grace)
        if done.code != 0:
            raise HostError(self.name, f"cannot end {run.name}: {done.words}")

    def close(self) -> None:
        """Ends what it started there, removes the temporary directory, ends the connection.

        It ends calls of other threads. If the host cannot be reached, the undo journal still has the entry.
        """
        self.session.close()


def _exchange(pipes: Pipes) -> Exchange | None:
    """One exchange with the verb `clock`."""
    sent = time.monotonic_ns()
    pipes.stdin.write(b"\n")
    pipes.stdin.flush()
    answer = pipes.stdout.readline()
    received = time.monotonic_ns()
    since_boot, _, since_1970 = answer.strip().partition(b" ")
    if not (since_boot.isdigit() and since_1970.isdigit()):
        return None
    return Exchange(sent, int(since_boot), received, int(since_1970))
