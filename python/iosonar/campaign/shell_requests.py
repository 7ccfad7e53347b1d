"""Answers the requests of a leaf's shell: what confs and modules ask of the campaign."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from iosonar.campaign import advice, calls, checks, outcome, plan, samples
from iosonar.campaign.context import Surroundings
from iosonar.campaign.hosts import HostError
from iosonar.campaign.instances import Instances
from iosonar.campaign.loads import Loads
from iosonar.campaign.replays import Replays
from iosonar.campaign.shell import Shell, ShellEndedError
from iosonar.campaign.state import LeafState
from iosonar.campaign.tree import Leaf
from iosonar.campaign.watch import Watch
from iosonar.campaign.words import LeafFailedError, Words
from iosonar.errors import UserError


@dataclass
class Reply:
    """An answer to a request of the shell."""

    status: int = 0
    text: str = ""


@dataclass
class ShellRequests:
    """Each request NAME of the shell has a method `_on_NAME`."""

    shell: Shell
    leaf: Leaf
    around: Surroundings
    state: LeafState
    words: Words
    instances: Instances
    earlier: Callable[[], list[LeafState]]
    """Other leaves of the campaign, and earlier attempts of this one."""
    undo_ids: set[str] = field(default_factory=set)
    """Entries of the undo journal that this leaf made."""
    _watch: Watch | None = None
    _replays: Replays | None = None

    def __post_init__(self) -> None:
        self._loads = Loads(self.around.directory / "loads")

    def answer(self, name: str, arguments: list[str]) -> Reply:
        """Answers a request; errors become words of the leaf, and a status."""
        handler = getattr(self, f"_on_{name}", None)
        if handler is None:
            raise UserError(f"unknown request of the shell: {name}")
        try:
            reply = handler(*arguments)
        except ShellEndedError:
            raise
        except HostError as error:
            self.words.host_error(error)
            return Reply(1)
        except UserError as error:
            self.words.error(str(error))
            return Reply(1)
        return reply if isinstance(reply, Reply) else Reply()

    def standing(self) -> str:
        """How far the replays are, as the rest of a sentence; empty if none runs."""
        return f", {self._watch.standing()}" if self._watch and self._watch.standing() else ""

    def _on_error(self, text: str) -> None:
        self.words.error(text)

    def _on_note(self, text: str) -> None:
        self.words.note(text, printed=True)

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
        self.undo_ids.add(entry)
        return Reply(0, entry)

    def _on_undo_done(self, entry: str) -> None:
        self.around.undo.done(entry)

    def _on_undo_now(self, entry: str) -> Reply:
        entries = [each for each in self.around.undo.entries() if each.id == entry]
        failures = self.around.undo.run_all(self.around.hosts.undo, entries)
        for failure in failures:
            self.words.error(
                f"not undone on {failure.entry.host}: {failure.entry.what}: {failure.reason}", is_logged=False
            )
        return Reply(1 if failures else 0)

    def _on_devices_prepare(self) -> None:
        self.instances.find_devices()

    def _on_check(self, *limits: str) -> None:
        given = checks.limits(*limits)
        variables = self.shell.variables()
        targets = checks.targets(plan.LeafPlan(self.instances.planned, self.instances.options, variables, {}))
        checks.run(given, targets, self.leaf.directory, self.around.hosts.get, self.shell.check, self.words.note)

    def _on_main_setup(self) -> None:
        self._replays = Replays(
            self.leaf.directory,
            self.around.hosts,
            self.instances.planned,
            self.instances.options,
            self.words.write_text,
            self.shell.check,
            calls.prepare_mode(self.shell) if self.instances.of_calls else "0",
        )
        filters = self.shell.scalar(plan.FILTERS).strip()
        self._replays.bring(lambda source: self._loads.filtered(self.shell, source) if filters else source)
        self._replays.sample_hosts()
        for text in self._advice():
            if text.startswith("replay_duration="):
                self.words.note_once(f"warning: {text}")
            else:
                self.words.note(f"warning: {text}")

    def _advice(self) -> list[str]:
        assert self._replays
        planned = advice.PlannedLeaf(
            self.leaf.path,
            self.state.variables,
            samples.as_planned(self.instances.planned),
            [samples.as_earlier(known) for known in self.earlier()],
            {name: found[-1].tmp_free_bytes for name, found in self._replays.samples.items() if found},
            plan.without_device(self.instances.options),
            calls.prepare_mode(self.shell) if self.instances.of_calls else "",
        )
        return advice.before(planned)

    def _on_main_run(self) -> None:
        if not self._replays:
            raise LeafFailedError("main_setup did not run: it is missing in setup_list")
        if plan.integer(self.shell, "state_sample", 0):
            self._replays.sample_devices()
            for text in samples.changes(self.leaf.top, self.leaf.name, self._replays.states):
                self.words.note(text)
        with Watch(self.leaf.name, self.instances.planned, self.around.events, self.around.directory) as watch:
            self._watch = watch
            try:
                self._replays.run(plan.number(self.shell, "start_grace", 15.0), watch)
            finally:
                self.state.instances = self._replays.states
                self.state.hosts = self._replays.samples
                for text in outcome.unfilled(
                    self.state.instances, writes_zeros=advice.writes_zeros(self.state.variables)
                ):
                    self.words.note(text)
                for text in outcome.wrapped(self.state.instances, self.instances.options):
                    self.words.note(text)
        self._replays.convert(self._to_text)

    def _to_text(self, result: Path, target: Path) -> None:
        if self.shell.call("campaign_result", str(result), str(target)) or not target.is_file():
            raise UserError("the result cannot be converted")

    def _on_main_cleanup(self) -> None: ...

    def _on_main_finish(self) -> None:
        self._loads.remove()
        if self._replays:
            self._replays.remove()
