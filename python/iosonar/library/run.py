"""A load, a run, or calls to files as an object."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property
from html import escape
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iosonar import units
from iosonar.errors import UsageError, UserError
from iosonar.figures.model import Empty, Figure
from iosonar.figures.numbers import DataFormat
from iosonar.figures.palette import Theme
from iosonar.figures.size import PAGE, Size
from iosonar.findings.diagnosis import Diagnosis
from iosonar.findings.why_slow import Why
from iosonar.library.family import Family, OpenOptions, family_of
from iosonar.library.frames import Frames
from iosonar.report.gate import Condition, GateScope, Judged, judge
from iosonar.report.output_options import DiagramFiles, OutputOptions, ReportFormat
from iosonar.report.selection import Selection
from iosonar.study.base import BaseStudy, Options
from iosonar.study.judgement import Judgement
from iosonar.study.summary import Summary
from iosonar.table import SourceFile, Window, open_files
from iosonar.table.engine import EngineOptions, parse_engine
from iosonar.table.footer import Footer

if TYPE_CHECKING:
    import ibis.expr.types as ir
    from matplotlib.axes import Axes

AnyPath = str | PathLike[str]


def open_run(
    *paths: AnyPath,
    device: str = "",
    each_device: bool = False,
    bad_latency_s: float = 5.0,
    bad_delay_s: float = 10.0,
    bad_count: int = 1,
    window_s: float | None = None,
    windows_s: Sequence[float] = Options.windows_s,
    from_s: float | None = None,
    to_s: float | None = None,
    skip_warm_up: bool = False,
    percentiles: Sequence[float] = (),
    slowest: int | None = None,
    original: AnyPath | None = None,
    blocks: AnyPath | None = None,
    graphs: Sequence[AnyPath] = (),
    memory: str = "2GiB",
    engine: str = "duckdb",
) -> Run:
    """Opens a load, a run, a trace of calls or a run of calls, in any format that `iosonar info` knows.

    Several files of requests are parts of one run, and one table. A trace of calls and runs of it stand side by side.

    Args:
        paths: The files, or addresses such as `s3://bucket/key`.
        device: Only this device, such as `sdb`, `/dev/sdb` or `HOST:/dev/sdb`.
        each_device: Whether series of diagrams are devices instead of reads and writes.
        bad_latency_s: The limit of latency in seconds: a longer one makes the verdict bad.
        bad_delay_s: The same for delays.
        bad_count: So many beyond a limit make the verdict bad.
        window_s: The window of throughput in seconds; by default it depends on the duration.
        windows_s: The windows of working sets in seconds; infinity is everything so far.
        from_s: Only requests or calls that are due at this time or later, in seconds; with `--asap`, issued then.
        to_s: Only those that are due before this time.
        skip_warm_up: Leave out the warm-up of a run, if its end is known.
        percentiles: The percentiles to show, such as `(50, 95, 99.9)`.
        slowest: How many of the slowest requests a page lists; by default 10.
        original: The load that a run replayed, with latencies, to draw beside it; `none` for none. By default, the load
            that the run names, if it is still there and has the run's requests.
        blocks: With a trace of calls: a recording of block devices made at the same time.
        graphs: With calls: graphs of orders, as `iosonar files order --format tsv` writes them.
        memory: The limit of memory, such as `2GiB`; what exceeds it spills to TMPDIR.
        engine: `duckdb`, or `spark` or `spark=URL` for requests.

    Returns:
        A `Run`; close it, or use it in a `with` statement, to free memory and temporary files.

    Raises:
        UserError: A file cannot be read, is damaged or of another kind, or files are copies of one run.
        UsageError: The files cannot be opened together, or an argument is wrong.
    """
    options = Options(
        bad_latency_s,
        bad_delay_s,
        bad_count,
        window_s,
        tuple(windows_s),
        each_device=each_device,
        device=device,
        graphs=tuple(map(Path, graphs)),
        window=Window.of(from_s, to_s),
        percentiles=tuple(round(share / 100, 10) for share in percentiles),
        skip_warm_up=skip_warm_up,
        slowest=Options.slowest if slowest is None else slowest,
    )
    kind, url = parse_engine(engine)
    resources = EngineOptions(memory, kind=kind, url=url)
    with ExitStack() as stack:
        named = [*map(Path, paths), *([Path(blocks)] if blocks else [])]
        files, spill = stack.enter_context(open_files(named))
        load = files[-1] if blocks else None
        opened, opening = (
            files[:-1] if blocks else files,
            OpenOptions(*(spill, resources, options, load), None if original is None else Path(original)),
        )
        family = family_of(opened)
        family.check_window(options)
        family.check(opened, opening)
        return Run(opened, family, opening, stack.pop_all())


class Run(Frames):
    """Files opened together: requests of a load or of a run, or calls. `iosonar.open` makes it.

    Nothing is computed before it is asked for, and everything once.
    """

    def __init__(
        self, files: tuple[SourceFile, ...], family: Family[Any], opening: OpenOptions, stack: ExitStack
    ) -> None:
        self.files, self.family, self.spill = files, family, opening.spill
        self._opening, self._stack = opening, stack
        super().__init__(stack)

    @cached_property
    def study(self) -> BaseStudy:
        """What diagrams are drawn of. Raises UsageError if there is no such device or a window is too short."""
        study: BaseStudy = self.family.study(self.files, self._opening, self._stack)
        return study

    @property
    def info(self) -> Footer:
        """How the first file was made: load or trace, options, machine, targets and statistics.

        Its fields are those of docs/schema.md, with times in nanoseconds and sizes of devices in sectors of 512 bytes;
        what the file does not say is None, 0 or empty.
        """
        return self.files[0].footer

    @property
    def table(self) -> ir.Table:
        """All rows as an Ibis table: the columns of docs/schema.md, and derived ones. Times are in nanoseconds.

        Derived are, of requests: `source` (the number of the file), `place` (the row in it), `delay_ns`, `latency_ns`
        and `not_held_back`; of calls: `family`, `bytes`, `has_failed` and `is_mismatch`.

        Raises UserError for several files of calls, which have no common table.
        """
        return self.family.table(self.study)

    @property
    def summary(self) -> Summary:
        """The key numbers, in seconds, bytes and rates per second. Of several files of calls, those of the first.

        Raises UserError for a table of several instances.
        """
        if found := self.family.summary(self.study):
            return found
        raise UserError(f"{self.files[0].path} is {self.files[0].kind.words}: it has no summary")

    @property
    def verdict(self) -> Judgement:
        """Whether the run was good: `grade`, `reasons`, `doubt`, and all `checks`, as in NAME.verdict.json.

        Of several files of calls, the verdict on the last. Raises UserError for a load, which has no results.
        """
        if found := self.family.judgement(self.study):
            return found
        raise UserError(f"{self.files[0].path} is {self.files[0].kind.words}: there is no verdict on it")

    def diagnose(self, thresholds: Mapping[str, Mapping[str, float]] | None = None) -> Diagnosis:
        """What the rows say in plain words, as `iosonar diagnose` prints it: its `findings`, the worst first.

        Args:
            thresholds: Those that differ from the defaults, by the number of their finding and their name, in seconds,
                bytes and shares of 1: `{"S07": {"length": 0.02}}`.
        """
        return self.family.diagnose(self.study, thresholds or {})

    def why_slow(self, request: int) -> Why:
        """Why a request was slow, as one sentence. Raises UserError if there is no such request."""
        if self.family.why_slow is None:
            raise UsageError(f"--request: not for {self.family.title}")
        if found := self.family.why_slow(self.study, request):
            return found
        raise UserError(f"{self.files[0].path} has no request {request}")

    @property
    def diagrams(self) -> tuple[str, ...]:
        """The names of all diagrams that can be drawn of such files, the most interesting first."""
        selection = Selection(static=True, dynamic=True, verbose=True)
        return tuple(diagram.name for diagram in self.family.selected(self.study, selection))

    def figure(self, name: str, size: str | Size = "1200x800") -> Figure:
        """A diagram as data: axes, layers, legend and notes.

        Args:
            name: The name of the diagram, as in `diagrams`.
            size: The size in pixels for which it is computed, such as `1200x800`.

        Raises:
            UsageError: There is no diagram of that name.
            UserError: There is nothing to draw; the message is the reason.
        """
        wanted = Size.parse(size) if isinstance(size, str) else size
        (diagram, *_) = self.family.selected(self.study, Selection(only=(name,)))
        found = diagram.build(self.study.sized(wanted))
        if isinstance(found, Empty):
            raise UserError(f"{found.name} not drawn: {found.reason}")
        return found

    def draw(self, name: str, ax: Axes | None = None, theme: str = "light") -> Axes:
        """Draws a diagram on the axes of a matplotlib figure; without axes, on new ones.

        Args:
            name: The name of the diagram, as in `diagrams`.
            ax: Where to draw.
            theme: `light` or `dark`.

        Returns:
            The axes; both are in the unit of their label, times in seconds.

        Raises:
            UsageError: There is no diagram of that name.
            UserError: There is nothing to draw; the message is the reason.
        """
        from iosonar.figures.with_matplotlib import draw_on, new_axes

        figure = self.figure(name)
        axes = ax or new_axes()
        draw_on(figure, axes, Theme(theme))
        return axes

    def report(
        self,
        directory: AnyPath = ".",
        format: str = "html",  # noqa: A002
        *,
        only: Sequence[str] = (),
        static: bool = False,
        dynamic: bool = False,
        verbose: bool = False,
        size: str = "1200x800",
        theme: str | None = None,
        data: str | None = None,
        overwrite: bool = False,
    ) -> list[Path]:
        """Writes what `iosonar report` writes: a page, or a picture of each diagram, and the verdict on a run.

        Args:
            directory: Where to; it must exist.
            format: `html` for a page, `png` or `svg` for pictures.
            only: Names of diagrams or families; by default those that fit a load, or a run.
            static: Add the diagrams of a load.
            dynamic: Add the diagrams of a run.
            verbose: Add the diagrams of the replayer.
            size: The size of pictures in pixels, or `4k`.
            theme: `light` or `dark`; by default light for pictures, the browser's for a page.
            data: Also write the numbers of each diagram, as `csv` or `parquet`.
            overwrite: Replace pages and pictures of other inputs that have the same names.

        Returns:
            The paths of all files.

        Raises:
            UsageError: There is no diagram of a name.
            UserError: A file cannot be written, or is of other inputs.
        """
        output = OutputOptions(
            Path(directory),
            ReportFormat(format),
            Theme(theme) if theme else None,
            DataFormat(data) if data else None,
            overwrite=overwrite,
        )
        selection = Selection(static, dynamic, verbose, tuple(only))
        return [path for done in self.write(selection, output, Size.parse(size)) for path in done.paths]

    def write(self, selection: Selection, output: OutputOptions, size: Size) -> Iterator[DiagramFiles]:
        """Writes a report. Yields the files of each diagram as they are written, or why it is not drawn."""
        from iosonar.report.formats import write_report
        from iosonar.report.verdict import write_verdict

        study = self.study.sized(PAGE if output.format is ReportFormat.HTML else size)
        yield from write_report(study, self.family.selected(study, selection), output, self.family.page)
        if self.writes_verdict:
            path = output.directory / f"{study.stem}.verdict.json"
            write_verdict(self.verdict, self.diagnose().findings, path)
            yield DiagramFiles("verdict", (path,))

    @property
    def writes_verdict(self) -> bool:
        """Whether a report has the verdict as a file of its own."""
        return self.family.writes_verdict(self.study)

    def judge(self, condition: Condition) -> Judged:
        """The outcome of a condition. Raises UserError for a table of several instances."""
        subject = self.family.subject(self.study)
        if subject is None:
            raise UserError(f"{self.files[0].path} is {self.files[0].kind.words}: there are no conditions for it")
        return judge(condition, subject)

    def holds(self, condition: str) -> str:
        """Whether a condition such as `p99 > 10ms` holds, as with `--fail-if`.

        Returns `holds`, `does not hold`, or why that is undecided. Raises UsageError if it is no condition.
        """
        return self.judge(Condition.parse(condition, GateScope.RUN)).words

    def write_gate_files(self, judged: Sequence[Judged], junit: Path | None, markdown: Path | None) -> None:
        """Writes the outcome of conditions as JUnit XML, and a summary in Markdown."""
        from iosonar.report.gate_files import cases_of, write_junit, write_markdown

        cases = cases_of("report", judged, [self.study.stem])
        if junit is not None:
            write_junit("report", cases, junit)
        if markdown is not None:
            write_markdown(self.family.page(self.study, ()).summary, cases, markdown)

    def slowest(self, count: int = Options.slowest) -> list[dict[str, str]]:
        """The slowest requests as texts: number, time, operation, size, sector, latency, and more, if known."""
        table = self.family.slowest(self.study, count)
        return [dict(zip(table.columns, row, strict=True)) for row in table.rows] if table else []

    def __repr__(self) -> str:
        return f"<{self.files[0].kind.words} {', '.join(file.path for file in self.files)}>"

    def _repr_html_(self) -> str:
        """The key numbers and the verdict, for notebooks."""
        names = ", ".join(file.name for file in self.files)
        rows = "".join(f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in self._lines())
        return f"<table><caption>{escape(names)}</caption>{rows}</table>"

    def _lines(self) -> Iterator[tuple[str, str]]:
        yield "kind", self.files[0].kind.words
        found = self.family.summary(self.study)
        if found is None:
            return
        yield found.noun, f"{found.rows:,}"
        yield "duration", units.span(found.seconds)
        yield "rate", f"{units.count(found.rate_per_s)} {found.noun}/s, {units.transferred(found.bytes_per_s)}/s"
        if found.latency.count:
            times = (("p50", found.latency.p50_s), ("p99", found.latency.p99_s), ("max", found.latency.max_s))
            yield "latency", ", ".join(f"{name} {units.span(value)}" for name, value in times)
        if any(file.kind.is_run for file in self.files):
            yield "verdict", "; ".join((self.verdict.grade, *self.verdict.reasons.values()))
