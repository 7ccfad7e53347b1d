"""What all studies share: files opened together, the options of their diagrams, and what is computed of them once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from copy import copy
from dataclasses import dataclass, field, replace
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

from iosonar.figures.size import Size
from iosonar.quantities.working_set import DEFAULT_WINDOWS_S
from iosonar.table import SourceFile, Window

T = TypeVar("T")
S = TypeVar("S", bound="BaseStudy")


@dataclass(frozen=True)
class Options:
    """The user's options for diagrams."""

    bad_latency_s: float = 5.0
    bad_delay_s: float = 10.0
    bad_count: int = 1
    """How many latencies, or delays, above their limit make the verdict bad."""
    window_s: float | None = None
    """The window of throughput; None for the default, which depends on the duration."""
    windows_s: tuple[float, ...] = DEFAULT_WINDOWS_S
    """The windows of working sets; may include infinity."""
    size: Size = field(default_factory=Size)
    each_device: bool = False
    """Whether series are devices instead of reads and writes."""
    device: str = ""
    """The only device, if the user chose one."""
    graphs: tuple[Path, ...] = ()
    """Graphs of orders of a trace of calls: output of `iosonar files order`."""
    window: Window | None = None
    """The only requests, by their time; None for all."""
    percentiles: tuple[float, ...] = ()
    """The percentiles to show, as shares; empty for those that each table and diagram has by itself."""
    skip_warm_up: bool = False
    """Whether the window begins where the warm-up ends."""
    slowest: int = 10
    """How many of the slowest requests a page lists."""


class Cached:
    """Keeps what was computed."""

    def __init__(self) -> None:
        self._cache: dict[Hashable, Any] = {}

    def cached(self, key: Hashable, compute: Callable[[], T]) -> T:
        """The result of `compute`, computed once for each `key`, which names everything that it depends on."""
        if key not in self._cache:
            self._cache[key] = compute()
        found: T = self._cache[key]
        return found


N = TypeVar("N", bound=Cached)


def cached(compute: Callable[[N], T]) -> Callable[[N], T]:
    """Makes a function of a study keep what it computes."""

    @wraps(compute)
    def kept(of: N) -> T:
        return of.cached(compute, lambda: compute(of))

    return kept


class BaseStudy(Cached, ABC):
    """Files opened together."""

    page = "report"
    """What a page of it is, as in the name of its file."""

    def __init__(self, options: Options) -> None:
        super().__init__()
        self.options = options

    @property
    @abstractmethod
    def files(self) -> tuple[SourceFile, ...]:
        """The files, in the order of the sources of their rows."""

    @property
    def inputs(self) -> tuple[SourceFile, ...]:
        """The files, and others that the diagrams show."""
        return self.files

    @property
    @abstractmethod
    def stem(self) -> str:
        """The start of the names of pages and pictures."""

    def why_empty(self, name: str) -> str:
        """Why the diagram of that name cannot be drawn, if that is known before; else empty."""
        return ""

    def prepare(self) -> None:
        """Keeps the rows, so that copies of the study do not read them again."""

    def sized(self: S, size: Size) -> S:
        """The same files for pictures of another size."""
        if size == self.options.size:
            return self
        self.prepare()
        other = copy(self)
        other.options = replace(self.options, size=size)
        return other
