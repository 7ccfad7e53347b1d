"""Settings that differ between runs: load, target, machine and options."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from pathlib import PurePath
from typing import Any

from iosonar import units
from iosonar.diagrams.comparison import Side
from iosonar.pacing import Changes, options_that_change
from iosonar.report.typed_options import typed_options
from iosonar.table import SourceFile, has_closed_stream
from iosonar.table.footer import Queue, Target
from iosonar.text import plain

DEFAULT = "default"
UNKNOWN = "unknown"
NOT_USED = "not used"
NO_DIFFERENCE = (UNKNOWN, NOT_USED)
"""Values that do not count as different from others."""

SEED = "--seed"
PLAIN_OPTIONS = ("seed", "depth")
"""Options that are the same number as typed and in effect, so that a default can be shown by its value."""

SECTOR_BYTES = 512

IRRELEVANT_OPTIONS = (
    "force",
    "overwrite",
    "output",
    "output-offset",
    "no-sample",
    "verify-memory",
    "start-file",
    *(option.name.removeprefix("--") for option in options_that_change(Changes.NOTHING)),
)
"""Options that do not affect the measurement."""


class Scope(StrEnum):
    """The part of the experiment that a setting belongs to."""

    LOAD = "load"
    TARGET = "target"
    MACHINE = "machine"
    OPTION = "option"


@dataclass(frozen=True)
class Setting:
    """A setting that differs between runs: for each side, by letter, the distinct values of its runs."""

    scope: Scope
    name: str
    values: Mapping[str, tuple[str, ...]]

    def differs(self, *letters: str) -> bool:
        """Whether these sides, or the runs within one of them, differ."""
        return len({self.values[letter] for letter in letters}) > 1 or any(
            len(self.values[letter]) > 1 for letter in letters
        )

    def is_repetition(self, *letters: str) -> bool:
        """Whether it is the seed, and varies within each of these sides: repetitions with other random numbers."""
        return self.name == SEED and all(len(self.values[letter]) > 1 for letter in letters)

    def value(self, letter: str) -> str:
        """The distinct values of a side."""
        return ", ".join(self.values[letter])

    def text(self, *letters: str) -> str:
        """For people: --wait (default in A; hybrid in B)."""
        return f"{self.name} ({'; '.join(f'{self.value(letter)} in {letter}' for letter in letters)})"


def differing(sides: Sequence[Side]) -> tuple[Setting, ...]:
    """All settings that differ between any runs of any sides."""
    by_side = {side.letter: [dict(_settings_of(file)) for file in side.study.requests.files] for side in sides}
    known = dict.fromkeys(key for runs in by_side.values() for run in runs for key in run)
    found = []
    for kind, name in known:
        missing = DEFAULT if kind is Scope.OPTION else UNKNOWN
        values = {
            letter: tuple(sorted({run.get((kind, name), missing) for run in runs}, key=_in_order))
            for letter, runs in by_side.items()
        }
        # An unknown value does not count as different; an option that was not typed has its default.
        known_values = {value for each in values.values() for value in each if value not in NO_DIFFERENCE}
        if len(known_values) > 1:
            found.append(Setting(kind, name, values))
    return tuple(
        sorted(found, key=lambda each: (list(Scope).index(each.scope), each.scope is Scope.OPTION and each.name))
    )


def _in_order(value: str) -> tuple[bool, int, str]:
    """Whole numbers by their size, before other texts."""
    return (False, int(value), "") if value.isdecimal() else (True, 0, value)


def _settings_of(file: SourceFile) -> Iterator[tuple[tuple[Scope, str], str]]:
    for key, value in _raw_settings(file):
        if value not in (None, ""):
            yield key, plain(str(value))


def _raw_settings(file: SourceFile) -> Iterator[tuple[tuple[Scope, str], Any]]:
    run, footer = file.run, file.footer
    if run.load:
        yield (Scope.LOAD, "load"), PurePath(run.load).name
    if run.program and file.program:
        yield (Scope.LOAD, "program"), file.program
        yield (Scope.LOAD, "text of the program"), _digest(run.program.text)
    if not has_closed_stream(file):
        # Of closed streams, the storage determines the number of requests.
        yield (Scope.LOAD, "requests"), _number(footer.counts.requests)
    yield from _settings_of_targets(file.targets)
    for key, name in MACHINE.items():
        yield (Scope.MACHINE, name), getattr(run.machine, key)
    if run.machine.memory_kib:
        yield (Scope.MACHINE, "memory"), units.binary_bytes(run.machine.memory_kib * 1024)
    options = {name: value or "on" for name, value in typed_options(run).items() if name not in IRRELEVANT_OPTIONS}
    if run.wait == "spin":
        # Such a loop never sleeps.
        options["busy-poll"] = NOT_USED
    elif isinstance(poll := file.option("busy_poll"), int):
        # Also the choice of the replay.
        options["busy-poll"] = units.span(poll / 1e9)
    else:
        options.setdefault("busy-poll", UNKNOWN)
    for name in PLAIN_OPTIONS:
        if isinstance(number := file.option(name), int):
            options.setdefault(name, str(number))
    for name, value in options.items():
        yield (Scope.OPTION, f"--{name}"), value
    # The choice of the replay if nothing was typed.
    for key, chosen in (("engine", run.engine), ("wait", run.wait)):
        if key not in options and chosen:
            yield (Scope.OPTION, f"--{key}"), chosen


MACHINE = {
    "hostname": "machine",
    "kernel": "kernel",
    "kernel_command_line": "kernel command line",
    "processor": "processor",
    "cpus": "processors",
    "cpus_isolated": "isolated processors",
    "governor": "frequency governor",
    "virtualisation": "virtualisation",
    "clock_source": "clock source",
    "transparent_hugepages": "transparent hugepages",
}


def _settings_of_targets(targets: Sequence[Target]) -> Iterator[tuple[tuple[Scope, str], Any]]:
    def each(value: Callable[[Target], Any]) -> str:
        return ", ".join(str(value(target)) for target in targets if value(target) not in (None, ""))

    for name, value in OF_TARGETS.items():
        yield (Scope.TARGET, name), each(value)


OF_TARGETS: Mapping[str, Callable[[Target], Any]] = {
    "target": lambda target: target.path,
    "kind of target": lambda target: target.kind,
    "disk": lambda target: target.disk,
    "size of the target": lambda target: target.sectors and units.binary_bytes(float(target.sectors) * SECTOR_BYTES),
    "logical block": lambda target: target.logical_block_bytes and units.binary_bytes(target.logical_block_bytes),
    "scheduler": lambda target: _queue(target).scheduler,
    "write cache": lambda target: _queue(target).write_cache,
    "wbt_lat_usec": lambda target: target.queue and target.queue.wbt_lat_usec,
    "file system": lambda target: target.mount.file_system,
}


def _queue(target: Target) -> Target | Queue:
    """What has the settings of the block layer: earlier versions wrote them beside the target's size."""
    return target if not target.queue or target.queue == Queue() else target.queue


def _digest(text: str) -> str:
    """A short name for a text, different for different texts."""
    return sha256(text.encode()).hexdigest()[:8] if text else ""


def _number(value: int | None) -> str | None:
    return None if value is None else f"{value:,}"
