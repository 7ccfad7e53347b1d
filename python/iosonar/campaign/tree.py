"""The tree of a campaign: which directories are leaves, which are done, and in which order they run."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from iosonar.campaign import state

_PRIORITY = re.compile(r"prio-(\d+)")
_LAST = float("inf")


@dataclass(frozen=True)
class Leaf:
    """A directory without subdirectories that count: one run."""

    top: Path
    """Where the campaign was started."""
    path: tuple[str, ...]
    """The names of the directories below `top`; empty if `top` itself is the leaf."""

    @property
    def directory(self) -> Path:
        """The directory."""
        return self.top.joinpath(*self.path)

    @property
    def name(self) -> str:
        """The path below `top`, as it is shown."""
        return "/".join(self.path) or "."

    @property
    def done(self) -> bool:
        """Whether the leaf has its results."""
        return state.is_done(self.directory)


def counts(name: str) -> bool:
    """Whether a directory of this name belongs to the tree."""
    return not (name.startswith((".", "old")) or ".old" in name or "ignore" in name)


def left_out(top: Path) -> list[str]:
    """Directories that are left out only because their names begin with `old`, which people may not expect."""
    found = []
    for directory, below, _ in os.walk(top):
        path = Path(directory).relative_to(top)
        found += [str(path / name) for name in below if name.startswith("old") and ".old" not in name]
        below[:] = [name for name in below if counts(name)]
    return sorted(found)


def leaves(top: Path) -> list[Leaf]:
    """All leaves that are not skipped, in the order in which they run: by priority, then by path in ASCII order."""
    found = [Leaf(top, path) for path in _leaves(top, ())]
    return sorted(found, key=lambda leaf: (priority(leaf.directory), os.fsencode(leaf.name)))


def stop_file(top: Path, leaf: Leaf | None = None) -> Path | None:
    """The file `stop` that ends the campaign, if there is one: at the top or in the leaf that would be next."""
    for directory in (top, *([leaf.directory] if leaf else [])):
        if (directory / "stop").exists():
            return directory / "stop"
    return None


def _leaves(directory: Path, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if (directory / "skip").exists():
        return
    try:
        below = sorted(entry.name for entry in os.scandir(directory) if entry.is_dir(follow_symlinks=False))
    except OSError:
        # Removed or unreadable meanwhile.
        return
    below = [name for name in below if counts(name)]
    if not below:
        yield path
    for name in below:
        yield from _leaves(directory / name, (*path, name))


def priority(directory: Path) -> float:
    """The smallest N of the files `prio-N` in a directory, which runs first."""
    found = [_PRIORITY.fullmatch(path.name) for path in directory.iterdir()] if directory.is_dir() else []
    return min((int(each[1]) for each in found if each), default=_LAST)
