"""Compares runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from html import escape
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iosonar.errors import UsageError
from iosonar.figures.palette import Theme
from iosonar.figures.size import PAGE
from iosonar.library.family import family_of
from iosonar.library.frames import Frames
from iosonar.library.originals import NONE
from iosonar.library.run import AnyPath, Run, open_run
from iosonar.report.compared import Compared, metric_of, numbers
from iosonar.report.compared import Comparison as Found
from iosonar.report.gate import Condition, GateScope, Judged, judge
from iosonar.report.gate_changes import judge_change
from iosonar.report.output_options import DiagramFiles, OutputOptions
from iosonar.study.base import Options
from iosonar.table import Window
from iosonar.table.engine import EngineOptions
from iosonar.table.files import refuse_copies

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.axes import Axes

AnySide = Run | AnyPath | Sequence[AnyPath]


def compare(
    *sides: AnySide,
    from_s: float | None = None,
    to_s: float | None = None,
    skip_warm_up: bool = False,
    percentiles: Sequence[float] = (),
    memory: str = "2GiB",
) -> Comparison:
    """Compares runs: changes of latency and throughput with 95 % confidence intervals.

    A difference is claimed only with at least three runs on each side.

    Args:
        sides: Two or more sides; each is a path, several paths of repeated runs, or an open `Run`.
        from_s: Compare only requests or calls that are due at this time or later, in seconds.
        to_s: Compare only those that are due before this time.
        skip_warm_up: Leave out the longest warm-up of all sides, if the end of each is known.
        percentiles: The percentiles to compare, such as `(50, 95, 99.9)`.
        memory: The limit of memory for each side, such as `2GiB`.

    Returns:
        A `Comparison`; close it, or use it in a `with` statement.

    Raises:
        UserError: A file cannot be read, is no run, or is named twice.
        UsageError: There are fewer than two sides, too many, or sides of different kinds.
    """
    if len(sides) < 2:
        raise UsageError("compare needs two sides")
    window, shares = Window.of(from_s, to_s), tuple(round(share / 100, 10) for share in percentiles)
    with ExitStack() as stack:
        runs = [_opened(side, memory, stack) for side in sides]
        files = [file for run in runs for file in run.files]
        family = family_of(files)
        for run in runs:
            # Parts of one run are not independent, so they do not count as several runs of a side.
            refuse_copies(run.files, parts=False)
        refuse_copies(files)
        options = Options(size=PAGE, window=window, skip_warm_up=skip_warm_up, percentiles=shares)
        family.check_window(options)
        found = family.compare(runs, options, EngineOptions(memory), stack)
        return Comparison(runs, found, stack.pop_all())


def _opened(side: AnySide, memory: str, stack: ExitStack) -> Run:
    if isinstance(side, Run):
        return side
    paths = [side] if isinstance(side, str | PathLike) else side
    return stack.enter_context(open_run(*paths, original=NONE, memory=memory))


class Comparison(Frames):
    """Sides compared with the first, A. `iosonar.compare` makes it."""

    def __init__(self, runs: Sequence[Run], found: Found, stack: ExitStack) -> None:
        self.runs = tuple(runs)
        self.found = found
        super().__init__(stack)

    @property
    def against(self) -> tuple[Compared, ...]:
        """Each other side against the first: its letter, `differences`, `throughput` and `doubts`.

        Times of differences are in nanoseconds, changes are shares: 0.1 is 10 % more.
        """
        return tuple(self.found.against)

    @property
    def sentences(self) -> tuple[str, ...]:
        """What was found, as `iosonar compare` prints it."""
        return tuple(line for line in self.found.lines() if line)

    def to_arrow(self, *columns: str) -> pa.Table:
        """A row for each metric of each side; only these columns, if any is named.

        The columns are `side`, `against`, `metric`, `a` and `b` (seconds; of throughput, per second), `change`, `low`
        and `high` (the 95 % interval; 0.1 is 10 % more) and `finding`.
        """
        import pyarrow as pa

        rows = [_row(each, one) for each in self.against for one in each.all]
        table = pa.Table.from_pylist(rows)
        return table.select(list(columns)) if columns else table

    def holds(self, condition: str) -> dict[str, str]:
        """Whether a condition such as `p99 > +10%` or `p99 > 10ms` holds, as with `--fail-if`, by the letter of a side.

        Returns `holds`, `does not hold`, or why that is undecided. Raises UsageError if it is no condition.
        """
        parsed = Condition.parse(condition, GateScope.SIDES)
        return {one.of: one.words for one in self.judge(parsed)}

    def judge(self, condition: Condition) -> list[Judged]:
        """The outcome of a condition for each side but the first: of its change, or of its own values."""
        if condition.is_change:
            return [judge_change(condition, each) for each in self.against]
        return [judge(condition, self.found.subject(each.letter)) for each in self.against]

    def write_gate_files(
        self, judged: Sequence[Judged], junit: Path | None, markdown: Path | None, *, skip_undecided: bool = False
    ) -> None:
        """Writes the outcome of conditions as JUnit XML, and a summary in Markdown.

        Args:
            judged: The outcomes.
            junit: The file for JUnit XML, if any.
            markdown: The file for Markdown, if any.
            skip_undecided: In JUnit XML, conditions that are undecided are skipped instead of errors.
        """
        from iosonar.report.gate_files import cases_of, write_junit, write_markdown

        cases = cases_of("compare", judged, [each.pair for each in self.against])
        if junit is not None:
            write_junit("compare", cases, junit, skip_undecided=skip_undecided)
        if markdown is not None:
            write_markdown(self.found.summary, cases, markdown)

    def draw(self, name: str = "compare.latency", ax: Axes | None = None, theme: str = "light") -> Axes:
        """Draws the distributions of latency (`compare.latency`), or their changes (`compare.change`).

        Args:
            name: The name of the diagram.
            ax: Axes of a matplotlib figure; without, new ones.
            theme: `light` or `dark`.

        Raises:
            UsageError: There is no diagram of that name, or the rows are calls.
        """
        from iosonar.figures.with_matplotlib import draw_on, new_axes

        drawn = self.found.figures
        if name not in drawn:
            raise UsageError(f"no diagram is called {name!r}; the diagrams are {', '.join(drawn) or 'on the page'}")
        axes = ax or new_axes()
        draw_on(drawn[name], axes, Theme(theme))
        return axes

    def report(self, directory: AnyPath = ".", *, theme: str | None = None, overwrite: bool = False) -> list[Path]:
        """Writes the page that `iosonar compare` writes.

        Args:
            directory: Where to; it must exist.
            theme: `light` or `dark`; by default the browser's.
            overwrite: Replace a page of other runs that has the same name.

        Returns:
            The paths of all files.

        Raises:
            UserError: A file cannot be written, or is of other inputs.
        """
        options = OutputOptions(Path(directory), theme=Theme(theme) if theme else None, overwrite=overwrite)
        return [path for done in self.write(options) for path in done.paths]

    def write(self, options: OutputOptions) -> Iterator[DiagramFiles]:
        """Writes the page. Yields its files, and diagrams that are not drawn with the reason."""
        return self.found.write(options)

    def _repr_html_(self) -> str:
        """The differences as tables, for notebooks."""
        sentences = "".join(f"<p>{escape(text)}</p>" for text in self.sentences)
        return sentences + "".join(_html(each) for each in self.against)


def _row(each: Compared, one: Any) -> dict[str, Any]:
    found = numbers(one)
    a, b = (one.a_ns / 1e9, one.b_ns / 1e9) if "a_ns" in found else (found.get("a_per_s"), found.get("b_per_s"))
    change = {name: found[name] for name in ("change", "low", "high")}
    sides = {"side": each.letter, "against": each.first_letter, "metric": metric_of(one)}
    return {**sides, "a": a, "b": b, **change, "finding": str(one.finding)}


def _html(each: Compared) -> str:
    head = "".join(f"<th>{escape(text)}</th>" for text in each.columns)
    rows = "".join("<tr>" + "".join(f"<td>{escape(text)}</td>" for text in row) + "</tr>" for row in each.rows)
    return f"<table><tr>{head}</tr>{rows}</table>"
