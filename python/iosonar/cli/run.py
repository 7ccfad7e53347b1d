"""Shared by all programs of the Python half: version check, output, errors and exit codes."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import typer

from iosonar import SCHEMA_VERSION
from iosonar.cleanup import cleanup
from iosonar.cli import progress
from iosonar.cli.defaults import defaults
from iosonar.cli.signals import handling_signals, raising_signals
from iosonar.cli.style import Style
from iosonar.errors import UsageError, UserError
from iosonar.text import lines, plain, shown
from iosonar.tuning import tune

if TYPE_CHECKING:
    from iosonar.report.output_options import DiagramFiles
    from iosonar.table import SourceFile

VERSION_VARIABLE = "IOSONAR_SCHEMA_VERSION"
"""The Rust binary sets it to its schema version."""

FAILED = 1
USAGE = 2
"""The command line was wrong."""

VERDICT = 3
"""The work is done, and the verdict or a condition is one to fail on."""

INTERRUPTED = 130


def start(app: typer.Typer, name: str) -> int:
    """Runs a program. Usage and help are printed by the library, which does not expect a full disk."""
    try:
        of_user = defaults(typer.main.get_command(app), name)
    except UsageError as error:
        options = itertools.takewhile(lambda word: word != "--", sys.argv[1:])
        if not {"-h", "--help"}.intersection(options):
            fail(name, str(error), USAGE)
        of_user = {}
    try:
        app(prog_name=f"iosonar {name}", default_map=of_user)
    except OSError as error:
        # Raised while the library prints a usage error, or else help.
        code = getattr(error.__context__, "exit_code", None)
        if isinstance(code, int):
            _end(code)
        fail(name, f"cannot write to standard output: {error.strerror}")
    return 0


def check_version() -> None:
    """Refuses a Rust binary with another schema version."""
    other = os.environ.get(VERSION_VARIABLE)
    if other is not None and other != str(SCHEMA_VERSION):
        raise UserError(
            f"the `iosonar` binary uses schema version {plain(other)}, its Python programs use version "
            f"{SCHEMA_VERSION}; install both from the same source: `pip install .` in the source directory"
        )


def print_lines(*each: str | Path) -> None:
    """Prints text or paths to standard output, without control characters."""
    for text in each:
        write(f"{shown(text) if isinstance(text, Path) else lines(text)}\n")


def print_not_drawn(written: Iterable[DiagramFiles]) -> None:
    """Prints which diagrams were not drawn, those of the same reason together."""
    for reason, names in _not_drawn(written).items():
        print_error(f"{', '.join(names)} not drawn: {reason}")


def print_not_drawn_in_one_line(written: Iterable[DiagramFiles]) -> None:
    """The same in one line; of many diagrams, only how many."""
    from iosonar.units import counted

    few = 3
    parts = [
        f"{', '.join(names) if len(names) <= few else counted(len(names), 'diagram')} ({reason})"
        for reason, names in _not_drawn(written).items()
    ]
    if parts:
        print_error(f"not drawn: {'; '.join(parts)}")


def _not_drawn(written: Iterable[DiagramFiles]) -> dict[str, list[str]]:
    """The names of diagrams that were not drawn, by reason."""
    missing: dict[str, list[str]] = {}
    for done in written:
        if not done.paths:
            missing.setdefault(done.reason, []).append(done.name)
    return missing


def print_error(text: str) -> None:
    """Prints a line to standard error, without control characters."""
    progress.erase()
    _print_to(sys.stderr, Style.of(sys.stderr).message(lines(text)))


def print_skipped_rows(files: Iterable[SourceFile]) -> None:
    """Prints which rows of the files were skipped."""
    for file in files:
        for text in file.skipped_rows:
            print_error(f"note: {file.path}: {text}")


def write(text: str) -> None:
    """Writes to standard output and flushes it."""
    if sys.stdout is None:
        return
    progress.erase()
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise UserError(f"cannot write to standard output: {error.strerror}") from error


def guarded(name: str, work: Callable[[], None], *, undoes: bool = False) -> None:
    """Runs a subcommand's work. A user error becomes one line on stderr and an exit code.

    With `undoes`, a signal raises KeyboardInterrupt in the work, which has things to undo; else it ends the program.
    """
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # For encodings without Greek letters and dashes.
            stream.reconfigure(errors="backslashreplace")
    tune()
    with raising_signals() if undoes else handling_signals(name):
        try:
            check_version()
            with progress.shown():
                work()
        except UserError as error:
            fail(name, str(error), USAGE if isinstance(error, UsageError) else FAILED)
        except KeyboardInterrupt:
            _end(INTERRUPTED)
        except Exception as error:
            cleanup.block_if_exiting()
            if isinstance(error, BrokenPipeError) or "Broken pipe" in str(error):
                # The reader closed the pipe.
                _end(FAILED)
            message = _message(error)
            if message is None:
                raise
            fail(name, message)


def fail(name: str, text: str, code: int = FAILED) -> None:
    """Ends the program with a one-line error."""
    cleanup.block_if_exiting()
    front = Style.of(sys.stderr).error(f"iosonar {name}:")
    _print_to(sys.stderr, f"{front} {lines(text)}")
    _end(code)


def _print_to(stream: TextIO | None, text: str) -> None:
    try:
        print(text, file=stream, flush=True)
    except (OSError, ValueError):
        # The message cannot be read.
        _redirect_to_null(stream)


def _end(code: int) -> None:
    # If flushing fails now, it would fail again when the interpreter exits.
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):
            _redirect_to_null(stream)
    sys.exit(code)


def _redirect_to_null(stream: TextIO | None) -> None:
    try:
        if stream is not None:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, stream.fileno())
            os.close(null)
    except (OSError, ValueError):
        pass


def _message(error: Exception) -> str | None:
    """The message for an error that is not a bug; None for a bug."""
    import duckdb

    from iosonar.table.damage import damage_among, may_be_damage
    from iosonar.table.open_files import given_paths, with_given_names

    first = plain(with_given_names(str(error).strip().split("\n")[0])).rstrip(".")
    if isinstance(error, duckdb.OutOfMemoryException) or "No space left" in str(error):
        return (
            f"out of memory or temporary disk space: {first}. Raise --memory, or set TMPDIR to a larger directory. "
            "Pictures written so far are complete."
        )
    if isinstance(error, MemoryError):
        return f"not enough memory{': ' * bool(first)}{first}"
    if may_be_damage(error):
        return str(damage_among({path: path for path in given_paths()}) or f"cannot read: {first}")
    if isinstance(error, OSError):
        where = f"{shown(str(error.filename))}: " if error.filename is not None else ""
        return f"{where}{error.strerror or first}"
    return None
