"""The plan of a series, and its directory: what runs, with what settings, and what is finished."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from iosonar.errors import UsageError, UserError
from iosonar.locks import becomes_free
from iosonar.report.outputs import make_directory, remove_empty, write_whole
from iosonar.text import plain, shown, why_wrong

PLAN = "series.json"
LOCK = ".lock"
RESULT = ".replay.parquet"
OF_CALLS = ".calls-run.parquet"
ENDINGS = (RESULT, OF_CALLS)
JOURNAL = ".journal"
VERSION = 1

HASHED_BYTES = 1 << 20
"""Of a large file, the first and the last bytes are compared, and its size."""


@dataclass(frozen=True)
class Point:
    """One run of a series: `name` is that of its file, `value` what is varied, `words` its own words for the binary."""

    name: str
    value: float
    words: tuple[str, ...]


@dataclass(frozen=True)
class Plan:
    """What a series runs. Series with the same kind and settings can share a directory, whatever their points."""

    kind: str
    settings: Mapping[str, Any]
    command: tuple[str, ...]
    """The words of the binary for all points, before those of each."""
    points: tuple[Point, ...]
    ending: str = RESULT
    """That of the names of results."""
    remedy: str = "use another --output, or remove the directory"
    """What to do with a directory whose runs have other settings."""


@dataclass(frozen=True)
class Directory:
    """The directory of a series, locked; its plan has all points that it ever had."""

    path: Path
    plan: Plan
    lock: int

    @property
    def stem(self) -> str:
        """The start of the names of its tables and pictures."""
        return self.path.name.rsplit(".", 1)[0]

    def result(self, point: Point) -> Path:
        """The file of a point's run."""
        return self.path / f"{point.name}{self.plan.ending}"


@contextmanager
def opened(path: Path, plan: Plan, *, overwrite: bool = False) -> Iterator[Directory]:
    """The directory of a series, created if it is missing. Refuses another series and other settings.

    With `overwrite`, the runs of an earlier series of this kind are removed, whatever its settings. An error before the
    first run leaves nothing behind.
    """
    path = checked(path, plan.kind)
    made = make_directory(path)
    lock = os.open(path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        if not becomes_free(lock):
            raise UserError(f"{shown(path)}: a run of this series is still going on; wait for its end")
        if overwrite:
            _remove_runs(path, plan)
        joined = _joined(path, plan)
        try:
            write_whole(path / PLAN, lambda unfinished: _write(joined, unfinished))
            yield Directory(path, joined, lock)
        except UserError:
            _remove_if_empty(path, made)
            raise
    finally:
        os.close(lock)


def _remove_if_empty(path: Path, made: Sequence[Path]) -> None:
    """Removes the plan of a directory without a run, and those of the directories that were made for it."""
    if any(each.name not in (PLAN, LOCK) for each in path.iterdir()):
        return
    for file in (path / PLAN, path / LOCK):
        file.unlink(missing_ok=True)
    remove_empty(made)


def checked(path: Path, kind: str) -> Path:
    """The path of a directory, whose name must end with the kind of the series."""
    if path.suffix != f".{kind}" or not path.stem:
        raise UserError(f"the name of the directory {shown(path)} must end in .{kind}, such as disk.{kind}")
    if path.exists() and not path.is_dir():
        raise UserError(f"{shown(path)} is not a directory; use another --output")
    if path.is_dir() and not (path / PLAN).exists() and any(each.name != LOCK for each in path.iterdir()):
        raise UserError(
            f"{shown(path)} exists and is not the directory of a series: it has no {PLAN}; use another --output"
        )
    return path


def _joined(path: Path, plan: Plan) -> Plan:
    """The plan with the points of the directory's earlier plan, if one of them has a run."""
    file = path / PLAN
    if not file.exists() or not any(path.glob(f"*{plan.ending}")):
        return plan
    earlier, known = _earlier(file)
    try:
        differences = _differences(earlier, plan)
    except (KeyError, TypeError) as error:
        raise _damaged(file, error) from error
    if differences:
        raise UserError(f"{shown(path)} has runs with other settings: {'; '.join(differences)}; {plan.remedy}")
    all_points = {point.name: point for point in (*known, *plan.points)}
    return replace(plan, points=tuple(all_points.values()))


def _earlier(file: Path) -> tuple[dict[str, Any], list[Point]]:
    """The content of a plan, and its points."""
    try:
        earlier = json.loads(file.read_text(encoding="utf-8"))
        if earlier["version"] != VERSION:
            raise UserError(f"{shown(file)} is of another version of iosonar; use another --output")
        return earlier, [Point(each["name"], each["value"], tuple(each["words"])) for each in earlier["points"]]
    except (ValueError, KeyError, TypeError) as error:
        raise _damaged(file, error) from error


def _damaged(file: Path, error: Exception) -> UserError:
    return UserError(f"{shown(file)} is damaged: {why_wrong(error)}; use another --output")


def _remove_runs(path: Path, plan: Plan) -> None:
    """Removes the results of the points of an earlier series and of this one, and their journals; no other file.

    An earlier plan that is damaged, or of another version, is removed as well.
    """
    file = path / PLAN
    if not file.exists():
        return
    try:
        earlier, points = _earlier(file)
    except UserError:
        earlier, points = {"kind": plan.kind}, []
    if earlier.get("kind") != plan.kind:
        raise UserError(f"{shown(path)} has another kind of series; use another --output")
    results = {f"{point.name}{ending}" for point in (*points, *plan.points) for ending in ENDINGS}
    for each in path.iterdir():
        if each.name.removesuffix(JOURNAL) in results:
            each.unlink()
    file.unlink()


def _differences(earlier: Mapping[str, Any], plan: Plan) -> list[str]:
    if earlier["kind"] != plan.kind:
        return [f"a series of the kind {plain(str(earlier['kind']))}"]
    then, now = earlier["settings"], json.loads(json.dumps(dict(plan.settings)))
    names = [name for name in dict.fromkeys((*then, *now)) if then.get(name) != now.get(name)]
    return [f"{plain(name)} was {_shown(then.get(name))}, is {_shown(now.get(name))}" for name in names]


def _shown(value: Any) -> str:
    if value in (None, [], ""):
        return "not set"
    if isinstance(value, dict):
        # The state of a file.
        version = f"{value['version']}, " if "version" in value else ""
        return plain(f"{version}{value['bytes']:,} bytes, SHA-256 {str(value['sha256'])[:12]}…")
    return plain(" ".join(map(str, value)) if isinstance(value, list) else str(value))


def _write(plan: Plan, path: Path) -> None:
    content = {
        "version": VERSION,
        "kind": plan.kind,
        "settings": dict(plan.settings),
        "command": list(plan.command),
        "points": [asdict(point) for point in plan.points],
    }
    path.write_text(json.dumps(content, indent=1, ensure_ascii=True) + "\n", encoding="utf-8")


def fingerprint(content: bytes) -> str:
    """A short hash of a text: shows that it changed."""
    return hashlib.sha256(content).hexdigest()[:16]


def fingerprint_of_file(path: Path) -> str:
    """A hash of a file's size, first and last bytes."""
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            head = file.read(HASHED_BYTES)
            file.seek(max(size - HASHED_BYTES, 0))
            return fingerprint(b"%d:" % size + head + file.read(HASHED_BYTES))
    except OSError as error:
        raise UserError(f"cannot read {shown(path)}: {error.strerror}") from error


def fingerprint_of_model(simulate: str | None) -> str | None:
    """The hash of a simulated device's description, if it is a file."""
    if simulate is None or not simulate.endswith(".toml"):
        return None
    return fingerprint_of_file(Path(simulate))


def refuse_own_options(options: Sequence[str], own: Sequence[str]) -> None:
    """Refuses words after `--` that are not options, or that the series itself gives."""
    if options and not options[0].startswith("-"):
        raise UsageError(f"`{plain(options[0])}` is one argument too many; options for each run come after --")
    for word in options:
        name = word.split("=")[0]
        if name in own:
            raise UsageError(f"{plain(name)} after --: the series sets it for each run")


def target_words(targets: Sequence[str], simulate: str | None, virtual_time: bool) -> tuple[str, ...]:
    """The words of the binary for the device."""
    words = [word for target in targets for word in ("--target", target)]
    if simulate is not None:
        words += ["--simulate", simulate]
    return (*words, *(("--virtual-time",) if virtual_time else ()))
