"""The replays of a leaf: brings loads to the hosts, starts all instances at one time, watches and collects them."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from iosonar.campaign import calls, endings
from iosonar.campaign.growth import JOURNAL, Growth, local_journal
from iosonar.campaign.host_clocks import WHILE_RUNNING, HostClocks
from iosonar.campaign.names import OF_CALLS
from iosonar.campaign.plan import Instance, without_device
from iosonar.campaign.samples import sample
from iosonar.campaign.state import HostSample, InstanceState
from iosonar.campaign.watch import how_far
from iosonar.errors import UserError
from iosonar.text import plain

if TYPE_CHECKING:
    from iosonar.campaign.hosts import DetachedRun, Host, Hosts, RunStatus
    from iosonar.campaign.hosts.clock import HostClock
    from iosonar.campaign.watch import Watch

T = TypeVar("T")
A = TypeVar("A")

POLL_S = 0.5
"""How often the hosts are asked for the progress of their replays."""

SHORTEST_GRACE_S = 0.5
"""The start time must reach all hosts before it has passed, even with a shorter `start_grace`."""

LONGEST_GRACE_S = 2.0
"""The longest time from the last instance being ready to the common start, unless hosts are slow."""

MORE_GRACE_S = (0.0, 2.0, 10.0)
"""Added at the first attempt to start, and at further ones if the start time was too early for a busy host."""

RESULT = ".replay.parquet"
START = ".start"
"""Suffixes of the files of an instance on its host."""

COLLECTED = ".collected"
"""The suffix of a result that was fetched, in the leaf's directory."""

PREPARED = "-prepare"
"""The suffix of the command that prepares the root of an instance."""

_WRITE_START = """
at=$1
shift
for file; do printf '%s\\n' "$at" >"$file.part" && mv -f "$file.part" "$file" || exit 1; done
"""

SAMPLE_EVERY_S = 10.0
"""How often the load and the free space of hosts are noted."""

VIRTUAL = "--virtual-time"
"""An option of `iosonar replay`: it keeps no real time, so it needs no common start and says nothing before its end."""

WITH_RESULT = (0, 4)
"""Exit codes of a replay that ran to its end; 4: some of its requests failed."""

CUT_SHORT = 5
"""The exit code of a replay that a signal ended, and that has written its result so far."""


def is_ready(status: RunStatus) -> bool:
    """Whether an instance has prepared everything and waits for its start time."""
    return (status.progress or {}).get("state") == "ready"


def has_ended(status: RunStatus) -> bool:
    """Whether an instance has ended."""
    return status.state != "running"


LATE = "the start time passed"
"""What `iosonar replay` says then."""


class LateStartError(UserError):
    """The start time was too early for an instance, which has written nothing."""


class Replays:
    """All instances of a leaf."""

    def __init__(
        self,
        leaf: Path,
        hosts: Hosts,
        instances: Sequence[Instance],
        options: Sequence[str],
        log: Callable[[str], None],
        check: Callable[[], None] = lambda: None,
        prepare: str = "0",
    ):
        """`check` is called now and then, and raises if the leaf cannot go on; `prepare` is `files_prepare`."""
        self.leaf = leaf
        self.hosts = hosts
        self.instances = instances
        self.options = options
        self._log = log
        self._check = check
        self._prepare = prepare
        self._of_calls = any(each.of_calls for each in instances)
        self.states = [
            InstanceState(each.host, each.device, each.original, os.fspath(each.source), output=each.output)
            for each in instances
        ]
        self.samples: dict[str, list[HostSample]] = {name: [] for name in self.host_names}
        # Names on the hosts are used once in a campaign.
        self._id = secrets.token_hex(4)
        self._loads: dict[tuple[str, Path], calls.Brought] = {}
        self._clocks = HostClocks(hosts, log)

    def _each(self, work: Callable[[A], T], items: Iterable[A]) -> list[T]:
        """The results of some work on all items at the same time; raises the first error after all have ended.

        After an interrupt, nothing waits for a host that cannot be reached.
        """
        items = list(items)
        if not items:
            return []
        with ThreadPoolExecutor(len(items)) as pool:
            try:
                return [future.result() for future in [pool.submit(work, item) for item in items]]
            except KeyboardInterrupt:
                self.hosts.reconnect_timeout = 0
                raise

    @property
    def host_names(self) -> list[str]:
        """The hosts, each once."""
        return list(dict.fromkeys(each.host for each in self.instances))

    def bring(self, prepared: Callable[[Path], Path]) -> None:
        """Brings the program and the loads to the hosts. `prepared` gives the file to replay for an input."""
        files = {source: prepared(source) for source in {each.source for each in self.instances}}
        for state, instance in zip(self.states, self.instances, strict=True):
            state.input_sha256 = _sha256(instance.source)

        def bring_to(name: str) -> None:
            host = self.hosts.get(name)
            host.program()
            for source in {each.source for each in self.instances if each.host == name}:
                file = files[source]
                remote = _load_name(file, list(files).index(source))
                self._loads[name, source] = (
                    calls.bring(host, file, remote, self.options, self.leaf)
                    if self._of_calls
                    else calls.Brought(host.put(file, remote), tuple(self.options))
                )

        self._each(bring_to, self.host_names)
        if self._of_calls and self._prepare != "0" and not without_device(self.options):
            self._prepare_roots()

    def _prepare_roots(self) -> None:
        """Creates below each root what the calls need."""

        def start(index: int) -> DetachedRun:
            instance = self.instances[index]
            host = self.hosts.get(instance.host)
            brought = self._loads[instance.host, instance.source]
            brought = replace(brought, options=(*brought.options, *instance.options))
            argv = calls.prepare_command(host.program(), instance.device, brought, self._prepare)
            return host.start(argv, f"{self._name(index)}{PREPARED}")

        numbers = range(len(self.instances))
        try:
            runs = self._each(start, numbers)
            while True:
                self._check()
                statuses = self._each(lambda index: runs[index].poll(), numbers)
                for instance, status in zip(self.instances, statuses, strict=True):
                    if has_ended(status) and status.exit_code != 0:
                        why = endings.words(status.err) or status.reason or f"exit code {status.exit_code}"
                        raise UserError(f"{instance.host}:{instance.device}: files prepare failed: {why}")
                if all(map(has_ended, statuses)):
                    return
                time.sleep(POLL_S)
        except BaseException:
            self._each(lambda index: self._kill(index, PREPARED), numbers)
            raise

    def sample_devices(self) -> None:
        """Samples all devices, as proof of their state."""

        def take(known: InstanceState) -> None:
            known.device_state = sample(self.hosts.get(known.host), known.device)

        self._each(take, self.states)

    def run(self, grace_s: float, watch: Watch) -> None:
        """Runs all instances from one common start, and collects their results as hidden files of the leaf.

        Raises UserError if one of them did not run to its end; the others are stopped then.
        """
        for more_s in MORE_GRACE_S:
            try:
                runs, start_ns = self._run_once(grace_s, more_s, watch)
            except LateStartError as error:
                if more_s == MORE_GRACE_S[-1]:
                    raise
                self._log(f"{error}; starting again, with more time\n")
                self._forget()
            else:
                break
        if start_ns is not None:
            self._each(self._clocks.measure, self.host_names)
        self._each(lambda index: self._collect(index, runs[index], start_ns), range(len(self.instances)))

    def _run_once(self, grace_s: float, more_s: float, watch: Watch) -> tuple[list[DetachedRun], int | None]:
        """Runs all instances; returns them and their common start by CLOCK_MONOTONIC, if they have one."""
        try:
            # Together, as preparing a large load takes time.
            runs = self._each(self._start, range(len(self.instances)))
            if VIRTUAL in self.options:
                self._wait(runs, watch, has_ended)
                return runs, None
            self._wait(runs, watch, is_ready)
            before = time.monotonic()
            self._each(self._clocks.measure, self.host_names)
            # Slow hosts need longer until they have the start time; a long start_grace indicates slow hosts.
            took = time.monotonic() - before
            self._clocks.refine(self.host_names)
            clocks = {name: self._clocks.solved(name) for name in self.host_names}
            grace_s = min(grace_s, max(LONGEST_GRACE_S, grace_s / 10, 10 * took))
            ahead_ns = round((max(grace_s, SHORTEST_GRACE_S + 3 * took) + more_s) * 1e9)
            start_ns = time.monotonic_ns() + ahead_ns
            for state in self.states:
                state.began = not without_device(self.options)
            self._each(lambda name: self._set_start(name, clocks[name], start_ns), self.host_names)
            with Growth(self.hosts, self._journals()):
                self._wait(runs, watch, has_ended)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                self.hosts.reconnect_timeout = 0
            self._each(self._kill, range(len(self.instances)))
            if not isinstance(error, LateStartError):
                self._fetch_cut()
            raise
        return runs, start_ns

    def _fetch_cut(self) -> None:
        """Fetches what the instances of a leaf that failed have written until they were ended."""

        def fetch(index: int) -> None:
            with contextlib.suppress(UserError):
                self._fetch(index)

        with self.hosts.without_waiting():
            self._each(fetch, [index for index, state in enumerate(self.states) if state.began])

    def _fetch(self, index: int) -> Path:
        """Fetches a result, which replaces the copy of its journal."""
        instance = self.instances[index]
        host, collected = self.hosts.get(instance.host), self._collected(instance)
        host.get(self._remote(host, index, self._result), collected)
        local_journal(self.leaf, instance.output).unlink(missing_ok=True)
        return collected

    def _journals(self) -> dict[str, dict[str, Path]]:
        """The journals on each host, and their copies here, which are empty at the start."""
        journals: dict[str, dict[str, Path]] = {name: {} for name in self.host_names}
        for index, instance in enumerate(self.instances):
            remote = self._remote(self.hosts.get(instance.host), index, f"{self._result}{JOURNAL}")
            copy = journals[instance.host][remote] = local_journal(self.leaf, instance.output)
            copy.unlink(missing_ok=True)
        return journals

    def _forget(self) -> None:
        """Forgets an attempt that one instance did not start in time: it has written nothing, and the others ended."""
        self._id = secrets.token_hex(4)
        self._clocks.forget()
        for state in self.states:
            state.state, state.reason, state.exit_code, state.began = "", "", None, False

    def convert(self, to_text: Callable[[Path, Path], None]) -> None:
        """Gives the results the format that was asked for; `to_text` writes blkreplay's text."""
        for instance in self.instances:
            collected, target = self._collected(instance), part(self.leaf, instance.output)
            if instance.output.endswith(".parquet"):
                collected.replace(target)
                continue
            # The hosts write Parquet, which has all that is known of the run.
            unfinished = target.with_name(f"{target.name}.replay.gz")
            unfinished.unlink(missing_ok=True)
            to_text(collected, unfinished)
            unfinished.replace(target)
            collected.unlink()

    def _collected(self, instance: Instance) -> Path:
        return self.leaf / f".{instance.output}{COLLECTED}"

    @property
    def _result(self) -> str:
        """The suffix of results on the hosts."""
        return OF_CALLS if self._of_calls else RESULT

    def remove(self) -> None:
        """Removes the results on the hosts; the directories go at the end of the campaign."""

        def remove_from(name: str) -> None:
            self.hosts.get(name).run(["rm", "-f", "--", *self._files(name, self._result), *self._files(name, START)])

        self._each(remove_from, self.host_names)

    def _start(self, index: int) -> DetachedRun:
        instance = self.instances[index]
        host = self.hosts.get(instance.host)
        brought = self._loads[instance.host, instance.source]
        argv = [
            host.program(),
            *(("files", "replay") if self._of_calls else ("replay",)),
            brought.trace,
            *("--root" if self._of_calls else "--target", instance.device),
            *("--output", self._remote(host, index, self._result)),
            *("--json", "--progress", "json"),
            *(() if VIRTUAL in self.options else ("--start-file", self._remote(host, index, START))),
            *brought.options,
            *instance.options,
        ]
        if instance.start_s:
            argv += ["--start", f"{instance.start_s:.9f}"]
        if instance.end_s is not None:
            argv += ["--end", f"{instance.end_s:.9f}"]
        return host.start(argv, self._name(index))

    def _kill(self, index: int, suffix: str = "") -> None:
        """Ends a replay, also one whose start was not confirmed; or another command of an instance."""
        # What cannot be reached is in the undo journal.
        with contextlib.suppress(UserError):
            if run := self.hosts.get(self.instances[index].host).started(f"{self._name(index)}{suffix}"):
                run.kill()

    def _set_start(self, name: str, clock: HostClock, start_ns: int) -> None:
        """Writes the start time, by the clock of the host, to the files that its instances wait for."""
        host = self.hosts.get(name)
        at = self._clocks.wall_time(clock, start_ns, time.time_ns() - time.monotonic_ns())
        done = host.script(_WRITE_START, at, *self._files(name, START))
        if done.code:
            raise UserError(f"{name}: cannot write the start time: {done.words}")

    def _wait(self, runs: Sequence[DetachedRun], watch: Watch, until: Callable[[RunStatus], bool]) -> None:
        """Polls until all instances are as far. Raises UserError if one of them failed."""
        next_sample = 0.0
        while True:
            self._check()
            polled = dict(zip(self.host_names, self._each(self._poll, self.host_names), strict=True))
            statuses = [polled[run.host][run.name] for run in runs]
            for index, status in enumerate(statuses):
                self._note_end(index, status, is_awaited=until is has_ended)
                watch.show(index, status)
            if time.monotonic() >= next_sample:
                self.sample_hosts()
                next_sample = time.monotonic() + SAMPLE_EVERY_S
            self._raise_failures()
            if all(until(status) for status in statuses):
                return
            time.sleep(POLL_S)

    def _poll(self, host: str) -> dict[str, RunStatus]:
        return self.hosts.get(host).poll_all()

    def _note_end(self, index: int, status: RunStatus, *, is_awaited: bool) -> None:
        """Notes that an instance has ended; without a result, or before its start, it has failed."""
        state = self.states[index]
        if status.state == "lost":
            why = "the host was restarted" if self._clocks.restarted(state.host) else status.reason
            state.state, state.reason = "failed", f"{why}{_standing(status)}"
        elif status.state == "ended":
            if state.exit_code is None and status.err.strip():
                self._log(f"--- {state.host}:{state.device}\n{status.err.strip()}\n")
            state.exit_code = status.exit_code
            if name := endings.signal_of(status.exit_code or 0):
                state.state = "failed"
                state.reason = f"the replay was ended by {name}{_standing(status)}, {endings.who(name, state.host)}"
            elif status.exit_code == CUT_SHORT:
                state.state = "failed"
                state.reason = (
                    f"the replay was stopped by a signal{_standing(status)}, not by the campaign but by a person or "
                    "another program"
                )
            elif status.exit_code not in WITH_RESULT:
                state.state = "failed"
                state.reason = endings.words(status.err) or f"the replay ended with exit code {status.exit_code}"
            elif not is_awaited:
                state.state = "failed"
                state.reason = (
                    f"the replay ended before its start, with exit code {status.exit_code} and without a result: an "
                    "option in replay_options asks for something else than a replay, as --help does"
                )

    def _raise_failures(self) -> None:
        failed = [state for state in self.states if state.state == "failed"]
        late = [state for state in failed if LATE in state.reason]
        if late:
            raise LateStartError(f"{late[0].host}:{late[0].device}: {late[0].reason}")
        if failed:
            more = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
            raise UserError(f"{failed[0].host}:{failed[0].device}: {failed[0].reason}{more}")

    def _collect(self, index: int, run: DetachedRun, start_ns: int | None) -> None:
        state, collected = self.states[index], self._fetch(index)
        with contextlib.suppress(ValueError):
            state.summary = json.loads(run.out())
        state.state = "done"
        if start_ns is not None:
            self._clocks.note(state, collected, start_ns)

    def _files(self, name: str, suffix: str) -> list[str]:
        """The files of all instances of a host."""
        host = self.hosts.get(name)
        return [self._remote(host, index, suffix) for index, each in enumerate(self.instances) if each.host == name]

    def _remote(self, host: Host, index: int, suffix: str) -> str:
        return f"{host.directory}/{self._name(index)}{suffix}"

    def _name(self, index: int) -> str:
        return f"{self._id}-{index}"

    def sample_hosts(self) -> None:
        """Notes the load, the free space and the clocks of all hosts."""

        def sample(name: str) -> None:
            with contextlib.suppress(UserError):
                found = self.hosts.get(name).watch()
                self.samples[name].append(HostSample(found.at, found.load1, found.tmp_free_bytes))
                if VIRTUAL not in self.options:
                    self._clocks.measure(name, WHILE_RUNNING)

        self._each(sample, self.host_names)


def part(leaf: Path, output: str) -> Path:
    """A result that is collected, while others of its leaf are not."""
    return leaf / f".{output}.part"


def _load_name(file: Path, number: int) -> str:
    suffixes = "".join(file.suffixes[-2:]) if file.suffixes else ""
    return f"{number}{suffixes}" if plain(suffixes) == suffixes and " " not in suffixes else f"{number}.load"


def _sha256(path: Path) -> str:
    import hashlib

    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _standing(status: RunStatus) -> str:
    """How far a replay was, as the rest of a sentence."""
    progress = status.progress or {}
    return f" at {how_far(progress)}" if progress.get("time_s") is not None else ""
