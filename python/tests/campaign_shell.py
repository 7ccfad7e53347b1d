"""Sources the confs of a leaf and looks at the variables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from iosonar.campaign import confs
from iosonar.campaign.shell import Shell
from iosonar.campaign.tree import Leaf


@dataclass
class Reply:
    """An answer to a request of the shell."""

    status: int = 0
    text: str = ""


@dataclass
class Said:
    """What confs and modules printed, and the requests of the shell."""

    output: bytes = b""
    requests: list[list[str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def print(self, output: bytes) -> None:
        """Takes output of the shell."""
        self.output += output

    def answer(self, name: str, arguments: list[str]) -> Reply:
        """Answers a request with success."""
        self.requests.append([name, *arguments])
        return Reply()


@contextmanager
def shell_in(top: Path, said: Said | None = None) -> Iterator[Shell]:
    """A shell without confs."""
    said = said or Said()
    with Shell(top, said.print, said.answer, {}) as shell:
        yield shell


@contextmanager
def loaded(
    top: Path, leaf: str = ".", overrides: Sequence[tuple[str, str]] = (), said: Said | None = None
) -> Iterator[Shell]:
    """The shell of a leaf after its confs."""
    said = said or Said()
    with shell_in(top, said) as shell:
        confs.load(shell, Leaf(top, Path(leaf).parts), overrides, said.notes.append)
        yield shell
