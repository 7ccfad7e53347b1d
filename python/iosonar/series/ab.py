"""Rounds of two sides, A and B: the runs alternate, so that drift of machine or storage affects both equally."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from iosonar import SCHEMA_VERSION
from iosonar.cleanup import cleanup
from iosonar.errors import UsageError, UserError
from iosonar.pacing import Changes, options_that_change
from iosonar.processes import kill_tree
from iosonar.series import binary
from iosonar.series.inputs import content_of, state_of
from iosonar.series.plan import JOURNAL, OF_CALLS, RESULT, Directory, Plan, Point
from iosonar.series.result import waiting_of
from iosonar.table.footer import Footer, parse_footer
from iosonar.text import plain, shown

if TYPE_CHECKING:
    from iosonar.table.footer import RunInfo

KIND = "ab"
SIDES = ("a", "b")
COMMANDS = {("replay",): RESULT, ("workload", "run"): RESULT, ("files", "replay"): OF_CALLS}
"""Commands whose runs are compared, and the endings of their results."""

OWN = (
    *("--output", "-o", "--overwrite", "--json", "--progress", "--calibrate"),
    *(option.name for option in options_that_change(Changes.NOTHING)),
)
"""Options that each round has its own of, or that are for a single run."""

REMEDY = "use another --output, or --overwrite, which removes these runs first"


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
    settings = {"--a": words["a"], "--b": words["b"], "--before": wanted.before, **state_of(words.values())}
    points = tuple(
        Point(f"{side}.{number}", float(number), tuple(words[side]))
        for number in range(1, wanted.rounds + 1)
        for side in (SIDES if number % 2 else SIDES[::-1])
    )
    return Plan(KIND, settings, (), points, endings["a"], REMEDY)


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


def check(wanted: Plan) -> None:
    """Refuses what would fail in a run of either side: wrong options, a missing load or target.

    A command before each run may make loads and targets, so they are only checked without one.
    """
    for side in SIDES:
        words: list[str] = wanted.settings[f"--{side}"]
        code, _, messages = binary.call((*words, "--help"))
        if code:
            raise binary.failure(code, messages, f"--{side}: {{}}".format)
        for name in () if wanted.settings["--before"] else _named_files(words):
            # A target may be mapped to a device of the load: sda=/dev/sdb.
            if not any(Path(each).exists() for each in (name, name.partition("=")[2]) if each):
                raise UserError(f"--{side}: {shown(Path(name))}: no such file or directory")


def _named_files(words: Sequence[str]) -> Iterator[str]:
    """The load or trace of a command, if it is named first, and its targets."""
    command = next(command for command in COMMANDS if tuple(words[: len(command)]) == command)
    rest = words[len(command) :]
    # A program of `workload run` may be one that is built in.
    if rest and not rest[0].startswith("-") and command != ("workload", "run"):
        yield rest[0]
    for word, following in zip(rest, [*rest[1:], ""], strict=True):
        name, has_value, value = word.partition("=")
        if name in ("--target", "-t"):
            yield value if has_value else following


def _ending(side: str, words: Sequence[str]) -> str:
    for command, ending in COMMANDS.items():
        if tuple(words[: len(command)]) == command:
            return ending
    known = ", ".join(" ".join(command) for command in COMMANDS)
    raise UsageError(f"--{side}: begin it with one of {known}, such as 'replay mysql.load.parquet --target /dev/sdb'")


def run(directory: Directory, wanted: Plan, before: str, tell: Callable[[str], None]) -> list[list[Path]]:
    """Runs what is missing of the rounds that are wanted, in the order of the plan; returns the results of both sides.

    All runs wait for their times as the first one chose, so that they do not differ by that.
    """
    first: Footer | None = None
    printed = set[str]()
    ran = 0
    for number, point in enumerate(wanted.points, 1):
        path = directory.result(point)
        known = _footer(path)
        if known is None:
            tell(f"{point.name} ({number} of {len(wanted.points)})")
            known = _run(directory, point, path, before, first)
            ran += 1
            for warning in known.run.warnings:
                if warning not in printed:
                    printed.add(warning)
                    tell(f"warning: {warning}")
        first = first or known
        if not _is_same(load := _load(known.run), _load(first.run)):
            raise UserError(
                f"{wanted.points[0].name} replayed {plain(_load(first.run))}, {point.name} {plain(load)}: both sides "
                "must replay the same load"
            )
    for line in _about_earlier_rounds(directory, wanted, ran):
        tell(line)
    by_name = {side: [each for each in wanted.points if each.name.startswith(f"{side}.")] for side in SIDES}
    return [[directory.result(each) for each in by_name[side]] for side in SIDES]


def _about_earlier_rounds(directory: Directory, wanted: Plan, ran: int) -> Iterator[str]:
    """What the user must know if not all runs are new, or not all runs of the directory are compared."""
    rounds, place = len(wanted.points) // len(SIDES), shown(directory.path)
    if not ran:
        yield f"all {rounds} rounds exist in {place}: nothing was run"
    there = {point.value for point in directory.plan.points if directory.result(point).exists()}
    if len(there) > rounds:
        first = f"first {rounds} are" if rounds > 1 else "first is"
        yield f"{place} has {len(there)} rounds: only the {first} compared"


def _load(run: RunInfo) -> str:
    """What a run replayed: its load, program or trace."""
    load = run.load or run.trace
    return str(Path(load).resolve()) if load else run.program.name if run.program else ""


def _is_same(load: str, other: str) -> bool:
    """Whether two loads are one, or files of the same content: each branch of a repository may have its own."""
    files = (Path(load), Path(other))
    return load == other or (all(file.is_file() for file in files) and content_of(files[0]) == content_of(files[1]))


def _run(directory: Directory, point: Point, path: Path, before: str, first: Footer | None) -> Footer:
    # The directory is locked: no run uses these files.
    for left in (path, path.with_name(f"{path.name}{JOURNAL}")):
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
    kill_tree(process.pid)
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
