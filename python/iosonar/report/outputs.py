"""Writes output files atomically: a file is complete or absent, and never replaces an input."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from iosonar.cleanup import cleanup
from iosonar.errors import UserError
from iosonar.table.open_files import is_input
from iosonar.text import address_of, shown


def make_directory(directory: Path) -> list[Path]:
    """Creates the directory if it is missing; returns those that were created, the innermost first."""
    _refuse_address(directory)
    try:
        made = [each for each in (directory, *directory.parents) if not each.exists()]
        directory.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise UserError(f"{shown(directory)} is not a directory; name another one") from error
    except (OSError, ValueError) as error:
        raise _write_error(directory, error) from error
    return made


@contextmanager
def output_directory(directory: Path) -> Iterator[None]:
    """The directory, created if it is missing; if nothing was written, it is removed again."""
    made = make_directory(directory)
    remove = cleanup.add(lambda: remove_empty(made))
    try:
        yield
    finally:
        remove()


def remove_empty(made: Iterable[Path]) -> None:
    """Removes directories, the innermost first, up to one that is not empty."""
    with suppress(OSError):
        for each in made:
            each.rmdir()


def write_whole(path: Path, write: Callable[[Path], None]) -> None:
    """Writes a file atomically, replacing an earlier one."""
    _refuse_address(path)
    _refuse_input(path)
    with _unfinished(path) as unfinished:
        _refuse_other_kinds(path)
        write(unfinished)
        unfinished.replace(path)


@contextmanager
def destination(path: Path, *, overwrite: bool) -> Iterator[Path]:
    """A path to open for writing; its content becomes the file that the user named.

    An existing file is an error without `overwrite`. Pipes and devices are written to directly.
    """
    _refuse_address(path)
    try:
        kind = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        kind = None
    except (OSError, ValueError) as error:
        raise _write_error(path, error) from error
    _refuse_input(path)
    if kind is not None and (stat.S_ISCHR(kind) or stat.S_ISFIFO(kind)):
        try:
            number = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        except OSError as error:
            raise _write_error(path, error) from error
        try:
            yield Path(f"/proc/self/fd/{number}")
        finally:
            os.close(number)
        return
    if kind is None and path.is_symlink():
        raise UserError(f"cannot write {shown(path)}: it is a dangling symlink")
    _refuse_input(path)
    # A symlink stays; its target is replaced.
    final = Path(os.path.realpath(path))
    _refuse_other_kinds(final, path)
    if kind is not None and not overwrite:
        raise _exists(path)
    with _unfinished(path, final.parent) as unfinished:
        number = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        try:
            yield Path(f"/proc/self/fd/{number}")
        finally:
            os.close(number)
        if overwrite:
            unfinished.replace(final)
            return
        try:
            # Unlike rename, link does not replace a file that appeared in the meantime.
            final.hardlink_to(unfinished)
        except FileExistsError as error:
            raise _exists(path) from error
        except OSError:
            # Not every file system has hard links.
            unfinished.replace(final)


def _exists(path: Path) -> UserError:
    return UserError(f"{shown(path)} exists; give the output another name, or replace it with --overwrite")


def _refuse_address(path: Path) -> None:
    """Object stores are only read."""
    if address_of(path):
        raise UserError(f"cannot write {shown(path)}: name a path on this machine, and copy from there to the store")


def _refuse_input(path: Path) -> None:
    if is_input(path):
        raise UserError(f"{shown(path)} is also an input; give the output another name")


def _refuse_other_kinds(path: Path, given: Path | None = None) -> None:
    """A rename would replace a device or a pipe by a file."""
    try:
        kind = path.lstat().st_mode
    except FileNotFoundError:
        return
    if stat.S_ISDIR(kind):
        raise UserError(f"cannot write {shown(given or path)}: Is a directory")
    if not (stat.S_ISREG(kind) or stat.S_ISLNK(kind)):
        raise UserError(f"cannot write {shown(given or path)}: not a regular file")


@contextmanager
def _unfinished(path: Path, directory: Path | None = None) -> Iterator[Path]:
    """A hidden name in the directory of the final one; a file of that name is removed at the end."""
    unfinished = (directory or path.parent) / f".iosonar-{os.urandom(6).hex()}.unfinished{path.suffix[:20]}"
    remove = cleanup.add(lambda: _remove(unfinished))
    try:
        yield unfinished
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) or "null" in str(error):
            raise _write_error(path, error) from error
        raise
    finally:
        remove()


def _remove(path: Path) -> None:
    with suppress(OSError, ValueError):
        path.unlink()


def _write_error(path: Path, error: OSError | ValueError) -> UserError:
    return UserError(f"cannot write {shown(path)}: {getattr(error, 'strerror', None) or error}")
