"""What differs between runs beside their results: the load, the target, the machine, and how they were run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePath
from typing import Any

from iosonar import units
from iosonar.diagrams.comparison import Side
from iosonar.report.typed import typed_options
from iosonar.table import SourceFile
from iosonar.text import plain

DEFAULT = "default"
UNKNOWN = "unknown"
SECTOR_BYTES = 512

NO_MATTER = ("force", "overwrite", "output", "output-offset", "no-sample", "verify-memory", "repeat")
"""Options that change nothing about what is measured."""


class Of(StrEnum):
    """What a setting belongs to."""

    LOAD = "load"
    TARGET = "target"
    MACHINE = "machine"
    OPTION = "option"


@dataclass(frozen=True)
class Setting:
    """Something that is not the same in all runs: for each side, by its letter, the values of its runs, each once."""

    of: Of
    name: str
    values: Mapping[str, tuple[str, ...]]

    def differs(self, *letters: str) -> bool:
        """Whether these sides differ, or the runs of this one."""
        return len({self.values[letter] for letter in letters}) > 1 or any(
            len(self.values[letter]) > 1 for letter in letters
        )

    def text(self, *letters: str) -> str:
        """For people: --wait (default in A, hybrid in B)."""
        sides = (f"{' or '.join(self.values[letter])} in {letter}" for letter in letters)
        return f"{self.name} ({', '.join(sides)})"


def differing(sides: Sequence[Side]) -> tuple[Setting, ...]:
    """All settings that are not the same in all runs of all sides."""
    of = {side.letter: [dict(_of_file(file)) for file in side.study.requests.files] for side in sides}
    known = dict.fromkeys(key for runs in of.values() for run in runs for key in run)
    found = []
    for kind, name in known:
        missing = DEFAULT if kind is Of.OPTION else UNKNOWN
        values = {
            letter: tuple(sorted({run.get((kind, name), missing) for run in runs})) for letter, runs in of.items()
        }
        # What some run does not tell differs from nothing; an option that was not typed has its default.
        told = {value for each in values.values() for value in each if value != UNKNOWN}
        if len(told) > 1:
            found.append(Setting(kind, name, values))
    return tuple(sorted(found, key=lambda each: (list(Of).index(each.of), each.of is Of.OPTION and each.name)))


def _of_file(file: SourceFile) -> Iterator[tuple[tuple[Of, str], str]]:
    for (of, name), value in _raw(file):
        if value not in (None, ""):
            yield (of, name), plain(str(value))


def _raw(file: SourceFile) -> Iterator[tuple[tuple[Of, str], Any]]:
    run, footer = file.run, file.footer
    if load := run.get("load"):
        yield (Of.LOAD, "load"), PurePath(str(load)).name
    yield (Of.LOAD, "requests"), _number((footer.get("counts") or {}).get("requests"))
    yield from _of_targets(file.targets)
    machine = run.get("machine") or {}
    for key, name in MACHINE.items():
        yield (Of.MACHINE, name), machine.get(key)
    if memory := machine.get("memory_kib"):
        yield (Of.MACHINE, "memory"), units.binary_bytes(float(memory) * 1024)
    options = {name: value or "on" for name, value in typed_options(run).items() if name not in NO_MATTER}
    for name, value in options.items():
        yield (Of.OPTION, f"--{name}"), value
    # What the replay chose where nothing was typed.
    for key in ("engine", "wait"):
        if key not in options and run.get(key):
            yield (Of.OPTION, f"--{key}"), str(run[key])


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


def _of_targets(targets: Sequence[dict[str, Any]]) -> Iterator[tuple[tuple[Of, str], Any]]:
    def each(value: Any) -> str:
        return ", ".join(str(value(target)) for target in targets if value(target) not in (None, ""))

    yield (Of.TARGET, "target"), each(lambda target: target.get("path"))
    yield (Of.TARGET, "kind of target"), each(lambda target: target.get("kind"))
    yield (Of.TARGET, "disk"), each(lambda target: target.get("disk"))
    yield (
        (Of.TARGET, "size of the target"),
        each(
            lambda target: units.binary_bytes(float(target["sectors"]) * SECTOR_BYTES) if target.get("sectors") else ""
        ),
    )
    yield (Of.TARGET, "logical block"), each(lambda target: target.get("logical_block_bytes"))
    for key, name in (("scheduler", "scheduler"), ("write_cache", "write cache"), ("wbt_lat_usec", "wbt_lat_usec")):
        yield (Of.TARGET, name), each(lambda target, key=key: (target.get("queue") or target).get(key))
    yield (Of.TARGET, "file system"), each(lambda target: (target.get("mount") or {}).get("file_system"))


def _number(value: Any) -> str | None:
    return f"{value:,}" if isinstance(value, int) else None
