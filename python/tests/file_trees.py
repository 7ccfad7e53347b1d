"""Trees of files: what they contain, compared, and file systems to hold them."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from binary import loop_device

MAKE = {
    "ext4": ["mkfs.ext4", "-q", "-F"],
    "xfs": ["mkfs.xfs", "-q", "-f"],
    "btrfs": ["mkfs.btrfs", "-q", "-f"],
}
KINDS = {stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "link"}


def entries(top: Path) -> dict[str, tuple[object, ...]]:
    """Each name below `top`: its kind, permissions, and size or target; hard links by the first of their names.

    Sockets, FIFOs and devices are left out: a replay creates none of them by default.
    """
    found: dict[str, tuple[object, ...]] = {}
    first_names: dict[tuple[int, int], str] = {}
    for where, directories, files in os.walk(top):
        directories.sort()
        for name in sorted(directories + files):
            path = Path(where, name)
            status = path.lstat()
            kind = KINDS.get(stat.S_IFMT(status.st_mode))
            shown = str(path.relative_to(top))
            mode = oct(stat.S_IMODE(status.st_mode))
            if kind == "directory":
                found[shown] = (kind, mode)
            elif kind == "link":
                found[shown] = (kind, str(path.readlink()))
            elif kind == "file":
                same = first_names.setdefault((status.st_dev, status.st_ino), shown)
                found[shown] = (kind, mode, status.st_size, same)
    return found


def differences(original: Path, copy: Path) -> list[str]:
    """Names whose entries differ, with both entries."""
    left, right = entries(original), entries(copy)
    return [
        f"{name}: {left.get(name, 'missing')}, replayed {right.get(name, 'missing')}"
        for name in sorted(left.keys() | right.keys())
        if left.get(name) != right.get(name)
    ]


@contextmanager
def file_system(kind: str, at: Path, mib: int = 512) -> Iterator[Path]:
    """A new file system of this kind, mounted at `at`."""
    at.mkdir(exist_ok=True)
    if kind == "tmpfs":
        _run("mount", "-t", "tmpfs", "-o", f"size={mib}m", "tmpfs", at)
        try:
            yield at
        finally:
            _run("umount", at)
        return
    with loop_device(mib << 20) as device:
        _run(*MAKE[kind], device)
        _run("mount", device, at)
        try:
            yield at
        finally:
            _run("umount", at)


def _run(*words: object) -> None:
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.args}: {done.stderr}"
