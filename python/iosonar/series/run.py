"""Runs the points of a series that have no finished result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from iosonar import units
from iosonar.errors import UsageError, UserError
from iosonar.series import binary
from iosonar.series.plan import Directory, Point
from iosonar.series.result import Result, read

Tell = Callable[[str], None]
"""Prints a line for people."""


def run(directory: Directory, tell: Tell) -> list[Result]:
    """Runs what is missing, in the order of the plan; returns the results of all points in this order.

    All wait for their requests as the first one chose, so that points do not differ by that.
    """
    found: list[Result] = []
    kept, warned = 0, set[str]()
    points = directory.plan.points
    for number, point in enumerate(points, 1):
        path = directory.result(point)
        result = read(path, point)
        if result is None:
            tell(f"{point.name} ({number} of {len(points)})")
            result = _run(directory, point, path, _waiting(directory, found))
            for warning in (text for text in result.warnings if text not in warned):
                warned.add(warning)
                tell(f"warning: {warning}")
        else:
            kept += 1
        found.append(result)
    if kept:
        tell(f"kept {units.counted(kept, 'finished point')} of {len(points)}")
    return found


def _waiting(directory: Directory, found: Sequence[Result]) -> tuple[str, ...]:
    """The options by which a run waits as the first one, but for those that the user gave."""
    given = {word.split("=")[0] for word in directory.plan.command}
    return tuple(word for word in (found[0].waiting if found else ()) if word.split("=")[0] not in given)


def _run(directory: Directory, point: Point, path: Path, waiting: Sequence[str]) -> Result:
    # The directory is locked: no run uses these files.
    for left in (path, path.with_name(f"{path.name}.journal")):
        with suppress(FileNotFoundError):
            left.unlink()
    words = (*directory.plan.command, *waiting, *point.words, "--output", str(path))
    code, _, messages = binary.call(words, directory.lock)
    if code == binary.CUT_SHORT:
        raise UserError(f"{point.name}: the run was cut short; the same command runs it again")
    if code not in binary.WITH_RESULT:
        raise binary.failure(code, messages, lambda text: f"{point.name}: {text}")
    result = read(path, point)
    if not path.exists():
        raise UsageError("an option after -- asks for something else than a run, as --help does; omit it")
    if result is None:
        raise UserError(f"{point.name}: the run has no complete result; the same command runs it again")
    if not result.requests:
        raise UserError(f"{point.name}: the run has no requests; use a longer --for")
    return result
