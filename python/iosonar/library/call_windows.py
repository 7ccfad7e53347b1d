"""The calls in a window of time, also without the warm-up of runs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from iosonar import units
from iosonar.errors import UsageError, UserError
from iosonar.figures.model import Role
from iosonar.library.family import OpenOptions
from iosonar.library.warm_up import after_warm_up
from iosonar.study.base import Cached, Options
from iosonar.study.calls import CallSide
from iosonar.study.window import due_words, window_words
from iosonar.table import Calls, SourceFile, Window, calls_of

if TYPE_CHECKING:
    import ibis.expr.types as ir


class _Latencies(Cached):
    """The response times of a run over its time."""

    def __init__(self, calls: Calls, options: Options) -> None:
        super().__init__()
        self._side, self.options = CallSide(calls, Role.ALL), options

    @cached_property
    def table(self) -> ir.Table:
        made = self._side.table
        return made.filter(made.duration_ns.notnull()).select(issued_ns=made.begin_ns, latency_ns=made.duration_ns)

    @property
    def completed(self) -> int:
        return self._side.pooled_response.count

    @property
    def first_s(self) -> float:
        return self._side.extent.first_ns / 1e9

    @property
    def last_s(self) -> float:
        return self._side.extent.last_ns / 1e9


def in_window(tables: Sequence[Calls], options: Options) -> list[Calls]:
    """The calls of each table in the window of the options. Raises UserError if a run, or a lone trace, has none."""
    found = [calls.within(options.window) for calls in tables]
    if options.skip_warm_up:
        window = _without_warm_up(found, options)
        found = [calls.within(window) for calls in tables]
    # Beside runs, a trace has the calls that they made.
    for calls in (each for each in found if each.is_part and (each.is_run or len(found) == 1)):
        refuse_empty(calls)
    return found


def refuse_empty(calls: Calls) -> None:
    """Raises UserError if a window has no call."""
    if calls.window is None or calls.whole is None or calls.table.head(1).count().to_pyarrow().as_py():
        return
    times = calls.whole.aggregate(low=calls.whole.scheduled_ns.min(), high=calls.whole.scheduled_ns.max())
    low, high = (units.span((times.to_pyarrow()[name][0].as_py() or 0) / 1e9) for name in ("low", "high"))
    what = due_words([calls.file])
    raise UserError(
        f"no call of {calls.file.path} is {what} {window_words(calls.window)}: all are {what} from {low} to {high}"
    )


def window_of(files: Sequence[SourceFile], opening: OpenOptions, stack: ExitStack) -> Window:
    """The window of the options, without the longest warm-up of any of these runs."""
    spill, tables = opening.spill, []
    for number, file in enumerate(file for file in files if file.kind.is_run):
        own = spill.with_name(f"{spill.name}-{number}")
        tables.append(stack.enter_context(calls_of(file, own, opening.resources)))
    return _without_warm_up([calls.within(opening.options.window) for calls in tables], opening.options)


def _without_warm_up(tables: Sequence[Calls], options: Options) -> Window:
    runs = [calls for calls in tables if calls.is_run]
    if not runs:
        raise UsageError("--skip-warm-up needs a run: a trace of calls has no warm-up; use --from")
    timed = [(calls.file.name, _Latencies(calls, replace(options, percentiles=()))) for calls in runs]
    named = [(name, latencies if latencies.completed else None) for name, latencies in timed]
    return after_warm_up(named, options.window, 0, "call")
