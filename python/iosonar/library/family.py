"""What the library does with files that are opened together: a `Family` for each, in a module of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, cast

from iosonar.diagrams import Diagram
from iosonar.errors import UsageError, UserError
from iosonar.findings.diagnosis import Diagnosis
from iosonar.findings.thresholds import Limits
from iosonar.findings.why_slow import Why
from iosonar.report.compared import Comparison
from iosonar.report.gate import Subject
from iosonar.report.page import Page, Table
from iosonar.report.selection import Selection, named
from iosonar.study.base import BaseStudy, Options
from iosonar.study.judgement import Judgement
from iosonar.study.summary import Summary
from iosonar.table import SourceFile, Window
from iosonar.table.engine import EngineOptions
from iosonar.table.files import refuse_copies
from iosonar.table.kinds import KINDS

if TYPE_CHECKING:
    import ibis.expr.types as ir

S = TypeVar("S", bound=BaseStudy)

REFUSED = ("static", "dynamic", "verbose", "device", "each-device", "fail-if", "engine", "original", "slowest")
"""Options of `iosonar report` that are for requests, and for kinds that say so."""


@dataclass(frozen=True)
class OpenOptions:
    """How files are opened: where to spill to, the engine, options, and files beside them.

    `blocks` is a recording of block devices, `original` the load of a run, None if the run may name it.
    """

    spill: Path
    resources: EngineOptions
    options: Options
    blocks: SourceFile | None = None
    original: Path | None = None


class Side(Protocol):
    """A side of a comparison: its files, and the study of them."""

    files: tuple[SourceFile, ...]
    spill: Path

    @property
    def study(self) -> BaseStudy:
        """What diagrams are drawn of."""


def no_findings(study: BaseStudy, overrides: Mapping[str, Limits]) -> Diagnosis:
    """Nothing is looked for."""
    return Diagnosis(tuple(file.path for file in study.files), ())


def check(files: Sequence[SourceFile], opening: OpenOptions) -> None:
    """Refuses files that cannot be studied together. Raises UsageError, or UserError for copies."""
    if opening.blocks or opening.options.graphs:
        raise UsageError("--blocks and --graph need a trace of calls")
    refuse_copies(files)


def compare(sides: Sequence[Side], options: Options, resources: EngineOptions, stack: ExitStack) -> Comparison:
    """Refuses kinds that cannot be compared."""
    file = sides[0].files[0]
    raise UserError(f"{file.path} is {file.kind.words}, which cannot be compared")


@dataclass(frozen=True)
class Family(Generic[S]):
    """Kinds of rows that are opened together, such as loads and runs; `S` is the study of them."""

    noun: str
    """The rows, in messages."""
    title: str
    """The same, for people who do not know them."""
    study: Callable[[Sequence[SourceFile], OpenOptions, ExitStack], S]
    """The study of files that `check` accepts, open until the stack unwinds."""
    table: Callable[[S], ir.Table]
    """All rows. Raises UserError if there is no common table."""
    diagrams: Sequence[Diagram[S]]
    page: Callable[[S, Sequence[Diagram[S]]], Page]
    """The page of a report with these diagrams."""
    check: Callable[[Sequence[SourceFile], OpenOptions], None] = check
    """Refuses files that cannot be studied together."""
    summary: Callable[[S], Summary | None] = lambda study: None
    """The key numbers, if there are any."""
    judgement: Callable[[S], Judgement | None] = lambda study: None
    """Whether the run was good; None without a run."""
    subject: Callable[[S], Subject | None] = lambda study: None
    """What conditions of --fail-if are checked for; None if there are none."""
    diagnose: Callable[[S, Mapping[str, Limits]], Diagnosis] = no_findings
    """What the rows say in plain words; thresholds by the number of their finding."""
    why_slow: Callable[[S, int], Why | None] | None = None
    """Why a row was slow, by its number; None if that is not for them."""
    slowest: Callable[[S, int], Table | None] = lambda study, count: None
    """The table of the slowest rows; None without any."""
    writes_verdict: Callable[[S], bool] = lambda study: False
    """Whether a report has the verdict as a file of its own."""
    by_default: Callable[[S, Selection], Sequence[Diagram[S]]] | None = None
    """The diagrams of a report that names none; without it, all."""
    refused: tuple[str, ...] = REFUSED
    """Options of `iosonar report` that are not for them."""
    compare: Callable[[Sequence[Side], Options, EngineOptions, ExitStack], Comparison] = compare
    """Compares each side with the first. The page can be written until the stack unwinds."""
    window_of: Callable[[Sequence[SourceFile], OpenOptions, ExitStack], Window] | None = None
    """The window of time of the options, without the longest warm-up of the runs; None if windows are not for them."""

    def check_window(self, options: Options) -> None:
        """Refuses a window of time if windows are not for these rows. Raises UsageError."""
        if (options.window or options.skip_warm_up) and not self.window_of:
            raise UsageError(f"--from, --to and --skip-warm-up: not for {self.title}")

    def window(self, files: Sequence[SourceFile], opening: OpenOptions, stack: ExitStack) -> Window:
        """The window of time without the warm-up. Raises UsageError if windows are not for these rows."""
        if self.window_of is None:
            raise UsageError(f"--skip-warm-up: not for {self.title}")
        return self.window_of(files, opening, stack)

    def selected(self, study: S, selection: Selection) -> Sequence[Diagram[S]]:
        """The selected diagrams. Raises UsageError if a name is unknown."""
        if selection.only:
            return named(self.diagrams, selection.only)
        return self.by_default(study, selection) if self.by_default else self.diagrams


def family_of(files: Sequence[SourceFile]) -> Family[Any]:
    """The family of all these files. Raises UsageError if they are of several, or only `iosonar sql` reads them."""
    order = list(KINDS.values())
    decisive = max(files, key=lambda file: order.index(file.kind))
    if not decisive.kind.library:
        raise UsageError(f"{decisive.path} is {decisive.kind.words}: only `iosonar sql` reads it")
    family = cast(Family[Any], import_module(decisive.kind.library).FAMILY)
    if other := next((file for file in files if file.kind.library != decisive.kind.library), None):
        raise UsageError(f"{other.path} is {other.kind.words}, not of {family.noun}: make a separate report of it")
    return family
