"""A new campaign to start from: two loads at three depths, with commented confs."""

from __future__ import annotations

import itertools
import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from iosonar.campaign import tree
from iosonar.errors import UsageError, UserError
from iosonar.text import plain

BASE = Path(__file__).parent
DEFAULTS = BASE / "defaults"
TEMPLATE = BASE / "template"
MAIN = "default-main.conf"
"""The conf that makes a directory a campaign."""

LOADS = ("bursts", "steady")
DEPTHS = ("depth-001", "depth-016", "depth-256")
DURATION_S = 60
MAX_REPEATS = 1000

# Between double quotes in a conf; braces and patterns are expanded later.
_HOST = re.compile(r"[A-Za-z0-9_{][A-Za-z0-9_.,:@%{}\[\]/*?-]*")
_DEVICE = re.compile(r"/[A-Za-z0-9_./,:@%+={}\[\]*?-]*")
_LABEL = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


def create(target: Path, hosts: Sequence[str], devices: Sequence[str], repeats: int) -> list[Path]:
    """Writes a campaign into a new or empty directory, and returns its leaves.

    Without devices, the conf has none, and the campaign does not start until they are named there.
    """
    _check_words("host", hosts, _HOST)
    _check_words("device", devices, _DEVICE)
    if not 1 <= repeats <= MAX_REPEATS:
        raise UsageError(f"{repeats} repeats: use 1 to {MAX_REPEATS}")
    try:
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise UserError(f"{plain(str(target))} exists already: name a new directory")
        _refuse_inside(target)
        target.mkdir(parents=True, exist_ok=True)
        return _write(target, hosts, devices, repeats)
    except OSError as error:
        raise UserError(f"cannot create {plain(str(error.filename or target))}: {error.strerror}") from error


def _refuse_inside(target: Path) -> None:
    """Raises UserError if the directory would be part of the tree of another campaign."""
    place = target.resolve()
    for outer in place.parents:
        below = place.relative_to(outer)
        if (outer / MAIN).exists() and all(map(tree.counts, below.parts)):
            where = os.path.relpath(outer.parent / below.name)
            raise UserError(
                f"{plain(str(outer))} is a campaign, and directories in it become its leaves: create the new campaign "
                f"outside of it (iosonar campaign new {plain(where)}); for more leaves of this one, make directories"
            )


def _write(target: Path, hosts: Sequence[str], devices: Sequence[str], repeats: int) -> list[Path]:
    for source in sorted(DEFAULTS.glob("default-*.conf")) + sorted(TEMPLATE.iterdir()):
        shutil.copyfile(source, target / source.name)
    main = target / MAIN
    changes = {"replay_host_list": " ".join(hosts) or "localhost", "replay_device_list": " ".join(devices)}
    if _LABEL.fullmatch(target.resolve().name):
        changes["output_label"] = target.resolve().name
    text = main.read_text()
    for name, value in changes.items():
        text = _with(text, name, f'"{value}"')
    text = _with(text, "replay_duration", str(DURATION_S))
    main.write_text(text)
    # What was never written is read without the medium.
    wipe = target / "default-wipe.conf"
    wipe.write_text(_with(wipe.read_text(), "enable_wipe", "1"))
    levels: list[Sequence[str]] = [LOADS, DEPTHS]
    if repeats > 1:
        names = [f"repeat-{number:0{len(str(repeats))}}" for number in range(1, repeats + 1)]
        line = f"      {names[0]} to {names[-1]}".ljust(32) + "the same again, to tell a difference from chance\n"
        readme = target / "README"
        text = readme.read_text()
        readme.write_text(text.replace("\n\nEach name", f"\n{line}\nEach name"))
        for name in names:
            (target / f"{name}.conf").write_text("# The same again: nothing changes.\n")
        levels.append(names)
    leaves = [target.joinpath(*path) for path in itertools.product(*levels)]
    for leaf in leaves:
        leaf.mkdir(parents=True)
    return leaves


def _with(text: str, name: str, value: str) -> str:
    """The conf with another value of a variable that it sets."""
    changed, count = re.subn(rf"(?m)^{name}=.*$", lambda _: f"{name}={value}", text)
    if count != 1:
        raise AssertionError(f"a default conf sets {name} {count} times")
    return changed


def _check_words(what: str, words: Sequence[str], form: re.Pattern[str]) -> None:
    for word in words:
        if not form.fullmatch(word):
            raise UsageError(f"invalid {what} {plain(word)!r}: use {_EXAMPLES[what]}")


_EXAMPLES = {
    "host": "a name such as db1, root@db1 or db{1..3}",
    "device": "a path such as /dev/sdb or /dev/nvme{0..3}n1",
}
