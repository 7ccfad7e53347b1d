"""Rounds of two sides, A and B: the runs alternate, so that drift of the machine or the storage meets both alike."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from iosonar import SCHEMA_VERSION
from iosonar.cleanup import cleanup
from iosonar.errors import UsageError, UserError
from iosonar.pacing import Changes, options_that_change
from iosonar.series import binary
from iosonar.series.plan import RESULT, Directory, Plan, Point
from iosonar.series.result import waiting_of
from iosonar.table.footer import Footer, parse_footer
from iosonar.text import plain, shown

if TYPE_CHECKING:
    from iosonar.table.footer import RunInfo

KIND = "ab"
SIDES = ("a", "b")
OF_CALLS = ".calls-run.parquet"
COMMANDS = {("replay",): RESULT, ("workload", "run"): RESULT, ("files", "replay"): OF_CALLS}
"""Commands whose runs are compared, and the endings of their results."""

OWN = (
    *("--output", "-o", "--overwrite", "--json", "--progress", "--calibrate"),
    *(option.name for option in options_that_change(Changes.NOTHING)),
)
"""Options that each round has its own of, or that are for a single run."""


@dataclass(frozen=True)
class Rounds:
    """What the user asked for."""

    a: str
    b: str
    rounds: int
    before: str = ""
    """A shell command before each run."""


def plan(wanted: Rounds) -> Plan:
    """The plan: A B, B A, A B … Raises UsageError if a side is no command that makes a run."""
    words = {side: _words(side, text) for side, text in zip(SIDES, (wanted.a, wanted.b), strict=True)}
    endings = {side: _ending(side, each) for side, each in words.items()}
    if endings["a"] != endings["b"]:
        raise UsageError("--a and --b: one replays requests, the other calls; their runs cannot be compared")
    settings = {"--a": words["a"], "--b": words["b"], "--before": wanted.before}
    points = tuple(
        Point(f"{side}.{number}", float(number), tuple(words[side]))
        for number in range(1, wanted.rounds + 1)
        for side in (SIDES if number % 2 else SIDES[::-1])
    )
    return Plan(KIND, settings, (), points, endings["a"])


def _words(side: str, text: str) -> list[str]:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"--{side}: {error}") from error
    words = words[1:] if words[:1] == ["iosonar"] else words
    for word in words:
        if word.split("=")[0] in OWN:
            raise UsageError(f"--{side}: {plain(word)}: each round has its own; remove it")
    return words


def _ending(side: str, words: Sequence[str]) -> str:
    for command, ending in COMMANDS.items():
        if tuple(words[: len(command)]) == command:
            return ending
    known = ", ".join(" ".join(command) for command in COMMANDS)
    raise UsageError(f"--{side}: begin it with one of {known}, such as 'replay mysql.load.parquet --target /dev/sdb'")


def run(directory: Directory, before: str, tell: Callable[[str], None]) -> list[list[Path]]:
    """Runs what is missing, in the order of the plan; returns the results of both sides.

    All runs wait for their times as the first one chose, so that they do not differ by that.
    """
    first: Footer | None = None
    shown = set[str]()
    for number, point in enumerate(directory.plan.points, 1):
        path = directory.result(point)
        known = _footer(path)
        if known is None:
            tell(f"{point.name} ({number} of {len(directory.plan.points)})")
            known = _run(directory, point, path, before, first)
            for warning in known.run.warnings:
                if warning not in shown:
                    shown.add(warning)
                    tell(f"warning: {warning}")
        first = first or known
        if (load := _load(known.run)) != _load(first.run):
            raise UserError(
                f"{directory.plan.points[0].name} replayed {plain(_load(first.run))}, {point.name} {plain(load)}: both "
                "sides must replay the same load"
            )
    by_name = {side: [each for each in directory.plan.points if each.name.startswith(f"{side}.")] for side in SIDES}
    return [[directory.result(each) for each in by_name[side]] for side in SIDES]


def _load(run: RunInfo) -> str:
    """What a run replayed: its load, program or trace."""
    load = run.load or run.trace
    return str(Path(load).resolve()) if load else run.program.name if run.program else ""


def _run(directory: Directory, point: Point, path: Path, before: str, first: Footer | None) -> Footer:
    # The directory is locked: no run uses these files.
    for left in (path, path.with_name(f"{path.name}.journal")):
        with suppress(FileNotFoundError):
            left.unlink()
    if before:
        _shell(before, point.name)
    given = {word.split("=")[0] for word in point.words}
    same = [word for word in (waiting_of(first.run) if first else ()) if word.split("=")[0] not in given]
    code, _, messages = binary.call((*point.words, *same, "--output", str(path)), directory.lock)
    if code == binary.CUT_SHORT:
        raise UserError(f"{point.name}: the run was cut short; the same command runs it again")
    if code not in binary.WITH_RESULT:
        raise binary.failure(code, messages, lambda text: f"{point.name}: {text}")
    if (found := _footer(path)) is None:
        raise UserError(f"{point.name}: the run has no complete result: each side must be a replay, not --help")
    return found


def _shell(command: str, name: str) -> None:
    """Runs a shell command, which must succeed, and ends it with this program."""
    with cleanup.lock:
        process = subprocess.Popen(
            ["sh", "-c", command], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        remove = cleanup.add(partial(_end, process), process=True)
    try:
        _, said = process.communicate()
    finally:
        remove()
    if process.returncode:
        why = said.decode(errors="replace").strip().splitlines()[-1:] or [f"exit code {process.returncode}"]
        raise UserError(f"{name}: --before failed: {plain(why[0])}")


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(OSError):
        process.kill()
    process.wait()


def _footer(path: Path) -> Footer | None:
    """The footer of a complete run; None if there is none."""
    import pyarrow as pa
    import pyarrow.parquet

    try:
        metadata = pyarrow.parquet.read_metadata(path).metadata or {}
        found = parse_footer(metadata[b"iosonar"], SCHEMA_VERSION)
        return found if found.complete else None
    except (FileNotFoundError, pa.ArrowInvalid, KeyError, UserError):
        return None
    except OSError as error:
        raise UserError(f"cannot read {shown(path)}: {error.strerror or error}") from error
