"""Runs a leaf: sources its confs, calls the functions of its phases, and keeps its state and results."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from iosonar import units
from iosonar.campaign import confs, estimate, loads, plan, samples, state
from iosonar.campaign.context import Surroundings
from iosonar.campaign.instances import Instances
from iosonar.campaign.results import finish, keep_partial_results
from iosonar.campaign.shell import Shell, ShellEndedError
from iosonar.campaign.shell_requests import Reply, ShellRequests
from iosonar.campaign.tree import Leaf
from iosonar.campaign.words import LeafFailedError, Words
from iosonar.errors import UserError
from iosonar.text import plain

_T = TypeVar("_T")

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


class LeafRun:
    """One attempt to run a leaf."""

    def __init__(self, leaf: Leaf, around: Surroundings):
        self.leaf = leaf
        self.around = around
        self._attempts = state.last_attempt(leaf.directory)
        attempt = max((known.attempt for known in self._attempts), default=0) + 1
        self.state = state.LeafState(leaf.name, "running", attempt=attempt, started=time.time(), path=list(leaf.path))
        self.is_replayed = False
        """Whether it has all of its results, and only the finish phase is left."""
        if self._attempts and self._attempts[-1].state in state.UNFINISHED and state.finished_results(leaf.directory):
            self.state, self.is_replayed = self._attempts[-1], True
            self.state.state, self.state.reason = "finishing", ""
        self._words = Words(self.state, around.said)
        self._shell: Shell
        self._instances: Instances
        self._requests: ShellRequests
        self._is_finished = False
        """Whether all functions of the finish phase have ended."""
        self._is_continued = self.is_replayed
        """Whether an earlier start replayed it."""
        self.not_undone: list[str] = []
        """Changes that could not be undone; the undo journal still has them."""

    def run(self) -> state.LeafState:
        """Runs all phases; returns the leaf's state, which is also in its directory.

        Raises KeyboardInterrupt after the teardown, if that ended the leaf.
        """
        self._save()
        interrupted = False
        work = self._finish_in_shell if self.is_replayed else self._run_in_shell
        with (self.leaf.directory / LOG).open("ab") as self._words.log:
            self._words.write(f"=== {plain(self.leaf.name)}, attempt {self.state.attempt}, {time.ctime()}\n".encode())
            try:
                work()
                self._end("done", "")
            except KeyboardInterrupt:
                interrupted = True
                self._end_early("interrupted", "by a signal")
            except UserError as error:
                self._end_early("failed", str(error))
            except BaseException as error:
                # Such as a full disk, or a closed pipe of --json.
                self._end_early("interrupted", f"the campaign ended: {str(error) or type(error).__name__}")
                raise
            self._words.write(f"=== {self.state.state} {self.state.reason}\n".encode())
        if interrupted:
            raise KeyboardInterrupt
        return self.state

    def planned(self) -> plan.LeafPlan:
        """What it replays, without running anything but the confs."""
        with self._open_shell():
            self._load_confs(self._shell)
            self._instances.find_devices(local_only=True)
            filters = self._filters(self._shell)
            functions = {phase: self._shell.scalar(f"{phase}_list").split() for phase in (*WORK, *TEARDOWN)}
            self._instances.plan_replays(self._words.note, fetch=False)
            found = self._instances
            return plan.LeafPlan(found.planned, found.options, self._shell.variables(), functions, filters)

    def _filters(self, shell: Shell) -> str:
        """The filters of loads; their functions only write the text of a pipe."""
        names = [f"{name}_prepare" for name in FILTERS]
        for function in shell.scalar("prepare_list").split():
            if function in names and shell.call(function):
                raise self._words.failure(f"{function} failed")
        return shell.scalar(plan.FILTERS).strip().removeprefix("|").strip()

    def estimated(self, planned: plan.LeafPlan) -> estimate.Estimate:
        """How long it takes."""
        return estimate.estimate(self.leaf.name, planned, loads.info, self._earlier())

    def _earlier(self) -> list[state.LeafState]:
        return [*samples.others(self.leaf.top, self.leaf.name), *self._attempts]

    def _run_in_shell(self) -> None:
        # Of an attempt whose campaign was killed.
        self._keep_partial_results(self.state.attempt - 1)
        with self._open_shell() as shell:
            try:
                self._load_confs(shell)
                self.around.hosts.reconnect_timeout = plan.number(shell, "reconnect_timeout", RECONNECT_S)
                for phase in WORK:
                    self._phase(phase)
                    if phase == "prepare":
                        self._plan_results()
                self._finish_results()
            except BaseException:
                if not self.is_replayed:
                    self._keep_partial_results(self.state.attempt)
                raise
            finally:
                self._tear_down(TEARDOWN)

    def _keep_partial_results(self, attempt: int) -> None:
        if kept := keep_partial_results(self.leaf.directory, attempt):
            results = units.counted(len(kept), "instance")
            self._words.note(f"what was measured of {results} until then is in {kept[0].parent.name}/")

    def _finish_in_shell(self) -> None:
        """Calls the functions of the finish phase that an earlier start did not call, or that were interrupted."""
        with self._open_shell():
            self._load_confs(self._shell)
            self._instances.restore(self.state.instances)
            self._tear_down(("finish",))

    def _load_confs(self, shell: Shell) -> None:
        try:
            confs.load(shell, self.leaf, self.around.overrides, self._words.note_once, self._keep_common_options)
        except UserError as error:
            raise self._words.failure(str(error)) from error
        self._words.say_errors()

    def _keep_common_options(self) -> None:
        """Keeps what the options are without the confs of the path; these may have to correct them."""
        if self.is_replayed:
            return
        with contextlib.suppress(UserError):
            self.state.common_options = plan.settings(self._shell, lambda _: None)

    def _open_shell(self) -> Shell:
        self._shell = shell = Shell(
            self.leaf.top, self._words.print, self._answer, self.around.environment, self.around.directory
        )
        self._instances = Instances(shell, [self.leaf.directory, self.leaf.top], self.around.hosts)
        self._requests = ShellRequests(
            shell, self.leaf, self.around, self.state, self._words, self._instances, self._earlier
        )
        return shell

    def _answer(self, name: str, arguments: list[str]) -> Reply:
        return self._requests.answer(name, arguments)

    def _phase(self, phase: str) -> None:
        for function in self._shell.scalar(f"{phase}_list").split():
            self._words.forget()
            self._words.write(f"--- {phase}: {function}\n".encode())
            try:
                status = self._timed(self._shell, function)
            except ShellEndedError as error:
                raise self._words.failure(f"{error} (phase {phase}{self._requests.standing()})") from error
            if status:
                raise self._words.failure(f"{function} failed")
            self._words.say_errors()

    def _timed(self, shell: Shell, function: str) -> int:
        """Calls a function of the shell, and notes how long it took."""
        began = time.monotonic()
        try:
            return shell.call(function)
        finally:
            # What is switched off takes no time.
            if (took := round(time.monotonic() - began, 3)) > 0:
                self.state.took_s[function] = took

    def _tear_down(self, phases: Sequence[str]) -> None:
        """Calls the functions of these phases; then undoes what they left."""
        shell = self._shell
        interrupt: KeyboardInterrupt | None = None

        def asked(question: Callable[[], _T]) -> _T:
            """Asks the shell again if an interrupt came first."""
            nonlocal interrupt
            try:
                return question()
            except KeyboardInterrupt as error:
                interrupt = error
                return question()

        with contextlib.suppress(UserError):
            asked(shell.protect)
        for phase in phases:
            try:
                functions = asked(partial(shell.scalar, f"{phase}_list")).split() if shell.alive else []
            except UserError:
                functions = []
            for function in functions:
                if phase == "finish" and function in self.state.finished:
                    continue
                notes = list(self.state.notes)
                self._words.forget()
                self._words.write(f"--- {phase}: {function}\n".encode())
                try:
                    if self._timed(shell, function):
                        self._words.note(self._words.with_reason(f"{function} failed"))
                    self._words.say_errors()
                except KeyboardInterrupt as error:
                    # The other functions must still run.
                    interrupt = error
                    if self.is_replayed and phase == "finish":
                        # It will be called again, and says then what is wrong.
                        self.state.notes = notes
                        self.state.took_s.pop(function, None)
                        continue
                    self._words.note(f"{function} was interrupted")
                except UserError as error:
                    self._words.note(self._words.with_reason(str(error)))
                    if not shell.alive:
                        break
                if self.is_replayed and phase == "finish":
                    self.state.finished.append(function)
                    with contextlib.suppress(UserError):
                        self._save()
            self._is_finished = phase == "finish" and shell.alive and set(functions) <= set(self.state.finished)
        mine = [entry for entry in self.around.undo.entries() if entry.id in self._requests.undo_ids]
        for failure in self.around.undo.run_all(self.around.hosts.undo, mine):
            self.not_undone.append(f"{failure.entry.what} on {failure.entry.host}: {failure.reason}")
            self._words.note(f"not undone: {self.not_undone[-1]}")
        if interrupt:
            raise interrupt

    def _plan_results(self) -> None:
        try:
            self._instances.plan_replays(self._words.note)
        except UserError as error:
            raise LeafFailedError(str(error)) from error
        self._instances.set_files(self._instances.planned)
        self.state.options = self._instances.settings
        if self._instances.of_calls:
            # They were those of requests, before the load was known.
            self.state.common_options = None
        self.state.variables = {name: plain(value) for name, value in self._shell.variables().items()}
        self._save()

    def _finish_results(self) -> None:
        """Gives the results their final names, all or none."""
        if not self.state.instances:
            raise LeafFailedError("main_run did not run: it is missing in run_list")
        self.state.state, self.state.ended = "finishing", time.time()
        self._save()
        try:
            finish(self.leaf.directory, self.state)
        except (KeyboardInterrupt, OSError):
            # If this does not complete it, the next start does.
            self.is_replayed = True
            finish(self.leaf.directory, self.state)
            raise
        self.is_replayed = True

    def _end(self, to: str, reason: str) -> None:
        if not self._is_continued:
            self.state.ended = time.time()
        self.state.state, self.state.reason = to, plain(reason)
        self._save()

    def _end_early(self, to: str, reason: str) -> None:
        """The end by an error or a signal; a leaf that has its results keeps them, and its state says what is left."""
        if not self.is_replayed:
            self._end(to, reason)
        elif self._is_finished:
            self._end("done", "")
        else:
            self.state.reason = plain(f"interrupted {reason}" if reason.startswith("by ") else reason)
            self._save()

    def _save(self) -> None:
        state.write(self.leaf.directory, self.state)
