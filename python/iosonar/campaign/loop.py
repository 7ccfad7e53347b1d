"""Runs a campaign: leaf by leaf, until all are done, failed or skipped."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from iosonar import units
from iosonar.campaign import confs, outcome, results, state, tree
from iosonar.campaign.context import Surroundings
from iosonar.campaign.hosts import Hosts
from iosonar.campaign.leaf import LeafRun
from iosonar.campaign.program import own_program
from iosonar.campaign.shell import end_leftover
from iosonar.campaign.subset import Subset
from iosonar.campaign.tree import Leaf
from iosonar.campaign.undo import Undo
from iosonar.campaign.watch import Events
from iosonar.errors import UserError
from iosonar.locks import becomes_free, is_held
from iosonar.text import plain

DIRECTORY = ".campaign"


@dataclass(frozen=True)
class Options:
    """How a campaign runs."""

    overrides: Sequence[tuple[str, str]] = ()
    stop_on_failure: bool = False
    shuffle: int | None = None
    """The seed of a random order of the leaves."""
    as_json: bool = False
    subset: Subset = field(default_factory=Subset)


@dataclass
class Ended:
    """How a campaign ended."""

    done: list[str] = field(default_factory=list)
    unfaithful: list[str] = field(default_factory=list)
    """Those of the done leaves whose replays were not faithful."""
    failed: list[tuple[str, str]] = field(default_factory=list)
    """Leaves and reasons."""
    stopped_by: Path | None = None
    """The file `stop`."""
    not_undone: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    """Leaves that are not in the subset."""


def run(top: Path, options: Options) -> Ended:
    """Runs all leaves that are not done.

    Raises KeyboardInterrupt if a signal ended it, after what had been changed was undone.
    """
    confs.check_top(top)
    events = Events(options.as_json)
    ended = Ended()
    with locked(top), _surroundings(top / DIRECTORY, options, events) as around:
        _recover(top, around, ended)
        ended.left_out = _say_left_out(top, options, events)
        while leaf := _next(top, options, ended, events):
            run_ = LeafRun(leaf, around)
            events.emit("leaf", leaf=leaf.name, state=run_.state.state)
            events.say(f"leaf {plain(leaf.name)}{': was replayed, and is finished now' if run_.is_replayed else ''}")
            try:
                found = run_.run()
            except KeyboardInterrupt:
                events.say(f"leaf {plain(leaf.name)}: {_after_interrupt(run_)}")
                raise
            ended.not_undone += run_.not_undone
            words = outcome.line(found.instances) if found.state == "done" else ""
            events.emit("leaf", leaf=leaf.name, state=found.state, reason=found.reason, outcome=words)
            if found.state == "done":
                ended.done.append(leaf.name)
                if outcome.is_unfaithful(found.instances):
                    ended.unfaithful.append(leaf.name)
                events.say(f"leaf {plain(leaf.name)}: done, {words}")
                continue
            ended.failed.append((leaf.name, found.reason))
            how = "failed" if found.state == "failed" else "was replayed, but cannot be finished"
            events.say(f"leaf {plain(leaf.name)}: {how}: {found.reason}")
            if options.stop_on_failure:
                break
    return ended


def _after_interrupt(run_: LeafRun) -> str:
    """What an interrupt left to do for a leaf."""
    if run_.state.state == "done":
        return f"done, {outcome.line(run_.state.instances)}"
    if run_.state.state == "finishing":
        return "interrupted after its replay; it is finished when the campaign is started again"
    return "interrupted; it runs again when the campaign is started again"


def dry_run(top: Path, options: Options, show: Callable[[Leaf, LeafRun], None]) -> None:
    """Shows the leaves that would run, in their order, without running any phase."""
    confs.check_top(top)
    events = Events(options.as_json)
    left_out = _say_left_out(top, options, events)
    with (
        TemporaryDirectory(prefix=".iosonar-plan.") as directory,
        _surroundings(Path(directory), options, events) as around,
    ):
        found = [leaf for leaf in _ordered(tree.leaves(top), options) if not leaf.done and leaf.name not in left_out]
        for leaf in found:
            show(leaf, LeafRun(leaf, around))


def _say_left_out(top: Path, options: Options, events: Events) -> list[str]:
    """Says which leaves do not run; returns those that are not in the subset."""
    for name in tree.left_out(top):
        events.say(f"{plain(name)} is left out: a name that begins with old does not count; rename it to run it")
    leaves = tree.leaves(top)
    found = options.subset.left_out(leaves)
    if found:
        which = f"{options.subset.option} leaves out {len(found)} of {units.counted(len(leaves), 'leaf', 'leaves')}"
        events.say("\n  ".join([f"{which}:", *map(plain, found)]), left_out=found)
    return found


def undo(top: Path, say: Callable[[str], None]) -> list[str]:
    """Undoes the changes of a campaign that was killed; returns those that could not be undone."""
    with locked(top), _surroundings(top / DIRECTORY, Options(), Events(False)) as around:
        if not around.undo.entries():
            say("nothing to undo")
        failures = _undo_all(around, say)
        _mark_interrupted(top)
    return failures


@contextmanager
def locked(top: Path) -> Iterator[None]:
    """One campaign at a time in a directory, those above it and those below it."""
    others = [*(above / DIRECTORY / "lock" for above in top.absolute().parents), *top.glob(f"*/**/{DIRECTORY}/lock")]
    if held := next(filter(is_held, others), None):
        raise UserError(f"another campaign runs in {held.parents[1]}, which has leaves in common with {top}")
    (top / DIRECTORY).mkdir(exist_ok=True)
    with (top / DIRECTORY / "lock").open("a") as file:
        # `status` holds it for a moment.
        if not becomes_free(file):
            raise UserError(f"another campaign runs in {top}: `iosonar campaign status` shows it")
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield


@contextmanager
def _surroundings(directory: Path, options: Options, events: Events) -> Iterator[Surroundings]:
    """What leaves share; `directory` is for what the campaign keeps while it runs."""
    program = own_program()
    journal = Undo(directory / "undo")
    hosts = Hosts(journal, note=events.say)
    environment = {"PATH": f"{program.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"}
    try:
        yield Surroundings(hosts, journal, options.overrides, events, environment, directory)
    finally:
        for failure in hosts.close_all():
            events.say(failure)


def _recover(top: Path, around: Surroundings, ended: Ended) -> None:
    """Completes the results or marks as interrupted the leaves of a killed campaign, after undoing its changes."""
    ended.not_undone += _undo_all(around, around.events.say)
    for leaf in tree.leaves(top):
        known = _known(leaf)
        if known and known.state == "finishing":
            try:
                results.finish(leaf.directory, known)
            except UserError as error:
                known.state, known.reason = "interrupted", str(error)
                state.write(leaf.directory, known)
    _mark_interrupted(top)


def _known(leaf: Leaf) -> state.LeafState | None:
    """The state of a leaf; None if it cannot be read, so that its next attempt writes it anew."""
    try:
        return state.read(leaf.directory)
    except UserError:
        return None


def _mark_interrupted(top: Path) -> None:
    for leaf in tree.leaves(top):
        known = _known(leaf)
        if known and known.state == "running":
            known.state, known.reason = "interrupted", state.KILLED
            state.write(leaf.directory, known)
            results.keep_partial_results(leaf.directory, known.attempt)


def _undo_all(around: Surroundings, say: Callable[[str], None]) -> list[str]:
    end_leftover(around.undo.directory.parent)
    entries = around.undo.entries()
    if not entries:
        return []
    say(f"undoing what the last campaign left behind: {'; '.join(f'{each.what} on {each.host}' for each in entries)}")
    failures = around.undo.run_all(around.hosts.undo, entries)
    return [f"{each.entry.what} on {each.entry.host}: {each.reason}" for each in failures]


def _next(top: Path, options: Options, ended: Ended, events: Events) -> Leaf | None:
    """The next leaf. The tree is read anew, since people add leaves while a campaign runs."""
    tried = {*ended.done, *(name for name, _ in ended.failed), *ended.left_out}
    for leaf in _ordered(tree.leaves(top), options):
        if leaf.name in tried or leaf.done:
            continue
        if stop := tree.stop_file(top, leaf):
            events.say(f"ended by the file {stop}")
            ended.stopped_by = stop
            return None
        return leaf
    return None


def _ordered(found: list[Leaf], options: Options) -> list[Leaf]:
    if options.shuffle is None:
        return found
    # By a number that depends on the leaf alone, so that the order of the others stays when a leaf is added.
    return sorted(found, key=lambda leaf: (tree.priority(leaf.directory), _random(options.shuffle, leaf.name)))


def _random(seed: int | None, name: str) -> float:
    return random.Random(f"{seed}/{name}").random()
