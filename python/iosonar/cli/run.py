"""Common to all programs of this half: version check, output, errors and exit codes."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import typer.core

from iosonar import SCHEMA_VERSION
from iosonar.cleanup import cleanup
from iosonar.cli.signals import handling_signals
from iosonar.errors import UsageError, UserError
from iosonar.gc_tuning import collect_rarely
from iosonar.text import lines, plain, shown

if TYPE_CHECKING:
    from iosonar.table import SourceFile

VERSION_VARIABLE = "IOSONAR_SCHEMA_VERSION"
"""Set by the Rust binary: its schema version."""

FAILED = 1
USAGE = 2
"""The command line was wrong."""

VERDICT = 3
"""The work was done, and the verdict is what the user asked to fail on."""

INTERRUPTED = 130


class Command(typer.core.TyperCommand):
    """A command that says what to do about files whose names begin with `-`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As the library does."""
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            # The class of this error has moved between versions of the library.
            if type(error).__name__ == "NoSuchOption" and hasattr(error, "message"):
                error.message += " (if a file name starts with -, write ./-NAME or put it after --)"
            raise


def check_version() -> None:
    """Refuses a Rust binary with another schema version."""
    other = os.environ.get(VERSION_VARIABLE)
    if other is not None and other != str(SCHEMA_VERSION):
        raise UserError(
            f"the `iosonar` binary uses schema version {plain(other)}, its Python programs use version "
            f"{SCHEMA_VERSION}; install both from the same source: `pip install .` in the source directory"
        )


def print_lines(*each: str | Path) -> None:
    """Prints lines of text, or paths, to standard output, so that they can't change what the terminal does."""
    for text in each:
        write(f"{shown(text) if isinstance(text, Path) else lines(text)}\n")


def print_error(text: str) -> None:
    """Prints a line to standard error, in the same way."""
    _print_to(sys.stderr, lines(text))


def print_skipped_rows(files: Iterable[SourceFile]) -> None:
    """Prints which rows of the files were skipped."""
    for file in files:
        for text in file.left_out:
            print_error(f"note: {file.path}: {text}")


def write(text: str) -> None:
    """Writes to standard output at once."""
    if sys.stdout is None:
        return
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise UserError(f"can't write to standard output: {error.strerror}") from error


def guarded(name: str, work: Callable[[], None]) -> None:
    """Runs a subcommand's work. A user error becomes one line on stderr and an exit code."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # Of an encoding without Greek and dashes.
            stream.reconfigure(errors="backslashreplace")
    collect_rarely()
    with handling_signals(name):
        try:
            check_version()
            work()
        except UserError as error:
            fail(name, str(error), USAGE if isinstance(error, UsageError) else FAILED)
        except KeyboardInterrupt:
            _end(INTERRUPTED)
        except Exception as error:
            cleanup.block_if_exiting()
            if isinstance(error, BrokenPipeError) or "Broken pipe" in str(error):
                # The reader of our output closed it.
                _end(FAILED)
            said = _trouble(error)
            if said is None:
                raise
            fail(name, said)


def fail(name: str, text: str, code: int = FAILED) -> None:
    """Ends the program with one line about why."""
    cleanup.block_if_exiting()
    _print_to(sys.stderr, f"iosonar {name}: {lines(text)}")
    _end(code)


def _print_to(stream: TextIO | None, text: str) -> None:
    try:
        print(text, file=stream, flush=True)
    except (OSError, ValueError):
        # No one can read it.
        _to_nowhere(stream)


def _end(code: int) -> None:
    # What can't be written now can't be written by the interpreter's own end either.
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):
            _to_nowhere(stream)
    sys.exit(code)


def _to_nowhere(stream: TextIO | None) -> None:
    try:
        if stream is not None:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)
    except (OSError, ValueError):
        pass


def _trouble(error: Exception) -> str | None:
    """The message for an error that is not a bug; None for a bug."""
    import duckdb

    from iosonar.table.opened import with_given_names

    first = plain(with_given_names(str(error).strip().split("\n")[0])).rstrip(".")
    if isinstance(error, duckdb.OutOfMemoryException) or "No space left" in str(error):
        return (
            f"out of memory or temporary disk space: {first}. Raise --memory, or set TMPDIR to a larger directory. "
            "Pictures written so far are complete."
        )
    if isinstance(error, MemoryError):
        return f"not enough memory{': ' * bool(first)}{first}"
    # Errors of the catalog, the binder and the parser are ours: the others come from what is in a file.
    ours = (duckdb.CatalogException, duckdb.BinderException, duckdb.ParserException)
    if isinstance(error, duckdb.Error) and not isinstance(error, ours):
        return f"can't read: {first}"
    if isinstance(error, OSError):
        where = f"{shown(str(error.filename))}: " if error.filename is not None else ""
        return f"{where}{error.strerror or first}"
    return None
