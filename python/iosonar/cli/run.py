"""What all programs of this half have in common: the version check, and errors as people want them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from iosonar import SCHEMA_VERSION
from iosonar.errors import UsageError, UserError

VERSION_VARIABLE = "IOSONAR_SCHEMA_VERSION"
"""Set by the Rust half: the version of the tables that it speaks."""

FAILED = 1
USAGE = 2
"""The command line was wrong."""

VERDICT = 3
"""The work was done, and the verdict is what the user asked to fail on."""

INTERRUPTED = 130


def check_version() -> None:
    """Refuses to work for a Rust half that speaks another version of the tables."""
    other = os.environ.get(VERSION_VARIABLE)
    if other is not None and other != str(SCHEMA_VERSION):
        raise UserError(
            f"the `iosonar` binary speaks version {other} of the tables, this Python half version {SCHEMA_VERSION}; "
            "install both from the same source: `pip install .` in the source folder"
        )


def guarded(name: str, work: Callable[[], None]) -> None:
    """Runs a subcommand's work; what the user can mend becomes one line on stderr, and an exit code."""
    try:
        check_version()
        work()
    except UserError as error:
        fail(name, str(error), USAGE if isinstance(error, UsageError) else FAILED)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except Exception as error:
        if "Broken pipe" in str(error):
            # Whoever read our output had enough of it.
            sys.stderr.close()
            sys.exit(FAILED)
        said = _engine_trouble(error)
        if said is None:
            raise
        fail(name, said)


def fail(name: str, text: str, code: int = FAILED) -> None:
    """Ends the program with one line about why."""
    print(f"iosonar {name}: {text}", file=sys.stderr)
    sys.exit(code)


def _engine_trouble(error: Exception) -> str | None:
    """What to say about an error of the embedded engine that is not a bug of ours."""
    import duckdb

    if isinstance(error, duckdb.OutOfMemoryException) or "No space left" in str(error):
        return (
            f"not enough room to compute: {_first_line(error)}. Give it more with --memory, or a larger temporary "
            "folder with TMPDIR. Pictures written so far are whole."
        )
    if isinstance(error, duckdb.IOException | duckdb.InvalidInputException):
        return f"can't read: {_first_line(error)}"
    return None


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0].rstrip(".")
