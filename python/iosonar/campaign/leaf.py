"""Runs a leaf: sources its confs, calls the functions of its phases, and keeps its state and results."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from iosonar.campaign import advice, checks, confs, estimate, loads, outcome, plan, samples, state
from iosonar.campaign.hosts import HostError
from iosonar.campaign.replays import Replays
from iosonar.campaign.results import finish, keep_partial_results
from iosonar.campaign.shell import Shell, ShellEndedError
from iosonar.campaign.surroundings import Surroundings
from iosonar.campaign.tree import Leaf
from iosonar.campaign.watch import Watch
from iosonar.errors import UserError
from iosonar.text import plain

LOG = "campaign.log"

RECONNECT_S = 300.0
"""The default of `reconnect_timeout`."""

FILTERS = tuple(
    name for name, _ in confs.modules_of(confs.MODULES) if name.startswith("pipe_") or name == "input_reverse"
)
"""The modules that filter loads."""

WORK = ("prepare", "setup", "run")
"""The phases that end at the first failure."""

TEARDOWN = ("cleanup", "finish")
"""The phases that always run, all of their functions."""


class LeafFailedError(UserError):
    """A phase failed."""


@dataclass
class Reply:
    """An answer to a request of the shell."""

    status: int = 0
    text: str = ""


class LeafRun:
    """One attempt to run a leaf."""

    def __init__(self, leaf: Leaf, around: Surroundings):
        self.leaf = leaf
        self.around = around
        self._attempts = state.last_attempt(leaf.directory)
        attempt = max((known.attempt for known in self._attempts), default=0) + 1
        self.state = state.LeafState(leaf.name, "running", attempt=attempt, started=time.time(), path=list(leaf.path))
        self._log: BinaryIO | None = None
        self._tail = bytearray()
        self._errors: list[str] = []
        self._host_errors: list[str] = []
        """Errors of hosts in the function that runs now, such as one that cannot be reached."""
        self._said: set[str] = set()
        """Errors that were printed, or are the reason of the failure."""
        self._watch: Watch | None = None
        self._shell: Shell | None = None
        self._undo_ids: set[str] = set()
        self.not_undone: list[str] = []
        """Changes that could not be undone; the undo journal still has them."""
        self._loads = loads.Loads(around.directory / "loads")
        self._replays: Replays | None = None
        self._instances: list[plan.Instance] = []
        self._options: list[str] = []
        self._directories = [leaf.directory, leaf.top]
        self._inputs: list[str] = []
        """What `input_file` was set to."""

    def run(self) -> state.LeafState:
        """Runs all phases; returns the leaf's state, which is also in its directory.

        Raises KeyboardInterrupt after the teardown, if that ended the leaf.
        """
        self._save()
        interrupted = False
        with (self.leaf.directory / LOG).open("ab") as self._log:
            self._write_log(f"=== {plain(self.leaf.name)}, attempt {self.state.attempt}, {time.ctime()}\n".encode())
            try:
                self._run_in_shell()
            except KeyboardInterrupt:
                interrupted = True
                self._end("interrupted", "by a signal")
            except UserError as error:
                self._end("failed", str(error))
            except BaseException as error:
                # Such as a full disk, or a closed pipe of --json.
                self._end("interrupted", f"the campaign ended: {str(error) or type(error).__name__}")
                raise
            self._write_log(f"=== {self.state.state} {self.state.reason}\n".encode())
        if interrupted:
            raise KeyboardInterrupt
        return self.state

    def planned(self) -> plan.LeafPlan:
        """What it replays, without running anything but the confs."""
        with self._open_shell() as self._shell:
            self._load_confs(self._shell)
            self._set_devices(local_only=True)
            filters = self._filters(self._shell)
            functions = {phase: self._shell.scalar(f"{phase}_list").split() for phase in (*WORK, *TEARDOWN)}
            return plan.LeafPlan(*self._plan(fetch=False), self._shell.variables(), functions, filters)

    def _filters(self, shell: Shell) -> str:
        """The filters of loads; their functions only write the text of a pipe."""
        names = [f"{name}_prepare" for name in FILTERS]
        for function in shell.scalar("prepare_list").split():
            if function in names and shell.call(function):
                raise self._failure(f"{function} failed")
        return shell.scalar(plan.FILTERS).strip().removeprefix("|").strip()

    def estimated(self, planned: plan.LeafPlan) -> estimate.Estimate:
        """How long it takes."""
        return estimate.estimate(self.leaf.name, planned, loads.info, self._earlier())

    def _earlier(self) -> list[state.LeafState]:
        return [*samples.others(self.leaf.top, self.leaf.name), *self._attempts]

    def _run_in_shell(self) -> None:
        with self._open_shell() as shell:
            self._shell = shell
            try:
                self._load_confs(shell)
                self.around.hosts.reconnect_timeout = plan.number(shell, "reconnect_timeout", RECONNECT_S)
                for phase in WORK:
                    self._phase(phase)
                    if phase == "prepare":
                        self._plan_results()
                self._finish_results()
            except BaseException:
                keep_partial_results(self.leaf.directory, self.state.attempt)
                raise
            finally:
                self._tear_down()
        self._end("done", "")

    def _load_confs(self, shell: Shell) -> None:
        try:
            confs.load(shell, self.leaf, self.around.overrides, self._note_once, self._keep_common_options)
        except UserError as error:
            raise self._failure(str(error)) from error
        self._say_errors()

    def _keep_common_options(self) -> None:
        """Keeps what the options are without the confs of the path; these may have to correct them."""
        assert self._shell
        with contextlib.suppress(UserError):
            self.state.common_options = plan.settings(self._shell, lambda _: None)

    def _open_shell(self) -> Shell:
        return Shell(self.leaf.top, self._print, self._answer, self.around.environment, self.around.directory)

    def _phase(self, phase: str) -> None:
        assert self._shell
        for function in self._shell.scalar(f"{phase}_list").split():
            self._forget_words()
            self._write_log(f"--- {phase}: {function}\n".encode())
            try:
                status = self._timed(self._shell, function)
            except ShellEndedError as error:
                raise self._failure(f"{error} (phase {phase}{self._standing()})") from error
            if status:
                raise self._failure(f"{function} failed")
            self._say_errors()

    def _timed(self, shell: Shell, function: str) -> int:
        """Calls a function of the shell, and notes how long it took."""
        began = time.monotonic()
        try:
            return shell.call(function)
        finally:
            # What is switched off takes no time.
            if (took := round(time.monotonic() - began, 3)) > 0:
                self.state.took_s[function] = took

    def _tear_down(self) -> None:
        """Calls the functions of cleanup and finish; then undoes what they left."""
        shell = self._shell
        assert shell
        interrupt: KeyboardInterrupt | None = None
        with contextlib.suppress(UserError):
            shell.protect()
        for phase in TEARDOWN:
            try:
                functions = shell.scalar(f"{phase}_list").split() if shell.alive else []
            except UserError:
                functions = []
            for function in functions:
                self._forget_words()
                self._write_log(f"--- {phase}: {function}\n".encode())
                try:
                    if self._timed(shell, function):
                        self._note(self._with_words(f"{function} failed"))
                    self._say_errors()
                except KeyboardInterrupt as error:
                    # The other functions must still run.
                    interrupt = error
                    self._note(f"{function} was interrupted")
                except UserError as error:
                    self._note(self._with_words(str(error)))
                    if not shell.alive:
                        break
        mine = [entry for entry in self.around.undo.entries() if entry.id in self._undo_ids]
        for failure in self.around.undo.run_all(self.around.hosts.undo, mine):
            self.not_undone.append(f"{failure.entry.what} on {failure.entry.host}: {failure.reason}")
            self._note(f"not undone: {self.not_undone[-1]}")
        if interrupt:
            raise interrupt

    # ------------------------------------------------------------------------------ requests of the shell

    def _answer(self, name: str, arguments: list[str]) -> Reply:
        handler = getattr(self, f"_on_{name}", None)
        if handler is None:
            raise UserError(f"unknown request of the shell: {name}")
        try:
            reply = handler(*arguments)
        except ShellEndedError:
            raise
        except HostError as error:
            self._host_errors.append(error.summary)
            self._write_log(f"{error}\n".encode("utf-8", "surrogateescape"))
            return Reply(1)
        except UserError as error:
            self._on_error(str(error))
            return Reply(1)
        return reply if isinstance(reply, Reply) else Reply()

    def _on_error(self, text: str) -> None:
        self._errors.append(text)
        self._write_log(f"{text}\n".encode("utf-8", "surrogateescape"))

    def _on_note(self, text: str) -> None:
        self._note(text, printed=True)

    def _on_remote(self, name: str) -> Reply:
        host = self.around.hosts.get(name)
        return Reply(0, "\n".join([host.shell_prefix(), *host.shell_words()]))

    def _on_reachable(self, name: str) -> None:
        """Raises ConnectionLostError if a host cannot be reached: ssh has failed."""
        self.around.hosts.get(name).run(["true"])

    def _on_program(self, host: str) -> Reply:
        return Reply(0, self.around.hosts.get(host).program())

    def _on_undo_add(self, host: str, what: str, command: str) -> Reply:
        self.around.hosts.get(host)
        entry = self.around.undo.add(host, what, command)
        self._undo_ids.add(entry)
        return Reply(0, entry)

    def _on_undo_done(self, entry: str) -> None:
        self.around.undo.done(entry)

    def _on_undo_now(self, entry: str) -> Reply:
        entries = [each for each in self.around.undo.entries() if each.id == entry]
        failures = self.around.undo.run_all(self.around.hosts.undo, entries)
        for failure in failures:
            self._errors.append(f"not undone on {failure.entry.host}: {failure.entry.what}: {failure.reason}")
        return Reply(1 if failures else 0)

    def _on_devices_prepare(self) -> None:
        self._set_devices()

    def _on_check(self, *limits: str) -> None:
        assert self._shell
        given = checks.limits(*limits)
        variables = self._shell.variables()
        targets = checks.targets(plan.LeafPlan(self._instances, self._options, variables, {}))
        checks.run(given, targets, self.leaf.directory, self.around.hosts.get, self._shell.check, self._note)

    def _on_main_setup(self) -> None:
        assert self._shell
        self._replays = Replays(
            self.leaf.directory,
            self.around.hosts,
            self._instances,
            self._options,
            lambda text: self._write_log(text.encode("utf-8", "surrogateescape")),
            self._shell.check,
        )
        filters = self._shell.scalar(plan.FILTERS).strip()
        self._replays.bring(lambda source: self._loads.filtered(self._shell, source) if filters else source)
        self._replays.sample_hosts()
        for text in self._advice():
            if text.startswith("replay_duration="):
                self._note_once(f"warning: {text}")
            else:
                self._note(f"warning: {text}")

    def _advice(self) -> list[str]:
        assert self._replays
        planned = advice.PlannedLeaf(
            self.leaf.path,
            self.state.variables,
            samples.as_planned(self._instances),
            [samples.as_earlier(known) for known in self._earlier()],
            {name: found[-1].tmp_free_bytes for name, found in self._replays.samples.items() if found},
            plan.without_device(self._options),
        )
        return advice.before(planned)

    def _on_main_run(self) -> None:
        assert self._shell
        if not self._replays:
            raise LeafFailedError("main_setup did not run: it is missing in setup_list")
        if plan.integer(self._shell, "state_sample", 0):
            self._replays.sample_devices()
            for text in samples.changes(self.leaf.top, self.leaf.name, self._replays.states):
                self._note(text)
        with Watch(self.leaf.name, self._instances, self.around.events, self.around.directory) as watch:
            self._watch = watch
            try:
                self._replays.run(plan.number(self._shell, "start_grace", 15.0), watch)
            finally:
                self.state.instances = self._replays.states
                self.state.hosts = self._replays.samples
                for text in outcome.unfilled(
                    self.state.instances, writes_zeros=advice.writes_zeros(self.state.variables)
                ):
                    self._note(text)
                for text in outcome.wrapped(self.state.instances, self._options):
                    self._note(text)
        self._replays.convert(self._to_text)

    def _to_text(self, result: Path, target: Path) -> None:
        assert self._shell
        if self._shell.call("campaign_result", str(result), str(target)) or not target.is_file():
            raise UserError("the result cannot be converted")

    def _on_main_cleanup(self) -> None: ...

    def _on_main_finish(self) -> None:
        self._loads.remove()
        if self._replays:
            self._replays.remove()

    # ---------------------------------------------------------------------------------- plan and results

    def _set_devices(self, *, local_only: bool = False) -> None:
        assert self._shell

        # Then the devices are those of the host of the target, whichever host replays on them.
        exported = plan.integer(self._shell, "enable_iscsi_target_iet", 0)
        target = self._shell.scalar("iscsi_target") if exported else ""

        def expand(host: str, pattern: str) -> list[str]:
            host = target or host
            if local_only and host != "localhost":
                return [pattern]
            return self.around.hosts.get(host).expand(pattern)

        pairs = plan.devices(self._shell, expand)
        hosts, devices = [host for host, _ in pairs], [device for _, device in pairs]
        unique = " ".join(dict.fromkeys(hosts))
        self._shell.set("replay_host", hosts)
        self._shell.set("replay_device", devices)
        self._shell.set("replay_device_orig", devices)
        self._shell.set_scalar("replay_count", str(len(pairs)))
        self._shell.set_scalar("replay_max", str(len(pairs) - 1))
        self._shell.set_scalar("replay_hosts_unique", unique)
        more = self._shell.scalar("target_hosts_unique").split()
        self._shell.set_scalar("all_hosts_unique", " ".join(dict.fromkeys([*unique.split(), *more])))
        self._shell.set("input_file", [])
        # Errors are raised after all functions of prepare, which may change what is wrong.
        with contextlib.suppress(UserError):
            self._set_files(plan.instances(self._shell, self._directories, fetch=not local_only))

    def _set_files(self, instances: Sequence[plan.Instance]) -> None:
        assert self._shell
        self._inputs = [os.fspath(each.source) for each in instances]
        self._shell.set("input_file", self._inputs)
        self._shell.set("output_file", [each.output for each in instances])

    def _plan(self, *, fetch: bool = True) -> tuple[list[plan.Instance], list[str]]:
        assert self._shell
        self._instances = plan.instances(self._shell, self._directories, self._inputs, fetch=fetch)
        self._options = plan.options(self._shell, self._note)
        return self._instances, self._options

    def _plan_results(self) -> None:
        assert self._shell
        try:
            self._plan()
        except UserError as error:
            raise LeafFailedError(str(error)) from error
        self._set_files(self._instances)
        self.state.options = plan.settings(self._shell, self._note)
        self.state.variables = {name: plain(value) for name, value in self._shell.variables().items()}
        self._save()

    def _finish_results(self) -> None:
        """Gives the results their final names, all or none."""
        if not self.state.instances:
            raise LeafFailedError("main_run did not run: it is missing in run_list")
        self.state.state = "finishing"
        self._save()
        finish(self.leaf.directory, self.state)

    # --------------------------------------------------------------------------------------- state, words

    def _end(self, to: str, reason: str) -> None:
        self.state.state, self.state.reason, self.state.ended = to, plain(reason), time.time()
        self._save()

    def _save(self) -> None:
        state.write(self.leaf.directory, self.state)

    def _note(self, text: str, *, printed: bool = False) -> None:
        text = plain(text)
        if text not in self.state.notes and text not in self._said:
            self._said.add(text)
            self.state.notes.append(text)
            if not printed:
                self._print(f"{text}\n".encode())

    def _note_once(self, text: str) -> None:
        """A note that is printed for the first leaf of a campaign that has it."""
        self._note(text, printed=text in self.around.said)
        self.around.said.add(text)

    def _with_words(self, text: str) -> str:
        """An error with what the conf or the module said about it; before all, what was wrong with a host."""
        if self._host_errors:
            return self._host_errors[0]
        if self._errors:
            return self._errors[-1]
        lines = [line for line in self._tail.decode("utf-8", "replace").splitlines() if line.strip()]
        return f"{text}: {plain(lines[-1].strip())}" if lines else text

    def _failure(self, text: str) -> LeafFailedError:
        """The failure of the leaf, whose reason is printed when it ends."""
        reason = self._with_words(text)
        self._said.add(plain(reason))
        self._say_errors()
        return LeafFailedError(reason)

    def _say_errors(self) -> None:
        """Prints errors that nothing else says: those of hosts, or else those of confs and modules."""
        for text in map(plain, self._host_errors or self._errors):
            if text not in self._said:
                self._said.add(text)
                with contextlib.suppress(OSError):
                    os.write(2, f"{text}\n".encode())

    def _forget_words(self) -> None:
        self._errors.clear()
        self._host_errors.clear()
        self._tail.clear()

    def _standing(self) -> str:
        """How far the replays are, as the rest of a sentence; empty if none runs."""
        return f", {self._watch.standing()}" if self._watch and self._watch.standing() else ""

    def _print(self, output: bytes) -> None:
        self._write_log(output)
        self._tail += output
        del self._tail[:-4096]
        with contextlib.suppress(OSError):
            # Also a prompt without a line end.
            os.write(2, output)

    def _write_log(self, output: bytes) -> None:
        if self._log and not self._log.closed:
            self._log.write(output)
            self._log.flush()
