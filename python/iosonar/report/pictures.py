"""Writes the diagrams of a study as picture files."""

from __future__ import annotations

import hashlib
import os
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from iosonar.diagrams import Diagram, Study
from iosonar.figures.model import Empty, Figure
from iosonar.figures.numbers import write_numbers
from iosonar.figures.palette import Theme
from iosonar.figures.size import Size
from iosonar.report.claims import write_claimed
from iosonar.report.output_options import OutputOptions, Written
from iosonar.report.outputs import write_whole
from iosonar.report.render_pool import Draw, RenderPool

MAX_STEM_BYTES = 180
"""A longer stem is shortened: with suffixes, a name may have at most 255 bytes."""

MAX_PENDING = 8
"""The most figures that wait to be drawn."""


Build = Callable[[], Figure | Empty]


@dataclass(frozen=True)
class Set:
    """A set of pictures: the common start of their names, and their size in pixels."""

    stem: str
    size: Size


def write_pictures(study: Study, diagrams: Sequence[Diagram], options: OutputOptions) -> Iterator[Written]:
    """Draws the diagrams of a study. Yields the result of each."""
    builds = {diagram.name: partial(diagram.build, study) for diagram in diagrams}
    return write_figures(Set(prefix(study), study.options.size), builds, options)


def write_figures(pictures: Set, builds: Mapping[str, Build], options: OutputOptions) -> Iterator[Written]:
    """Builds one figure while earlier ones are drawn. Yields the result of each."""
    with RenderPool(len(builds)) as pool:
        pending: deque[tuple[Future[None] | None, Written]] = deque()
        for name, build in builds.items():
            pending.append(_submit(pictures, name, build, options, pool))
            while pending and (len(pending) > MAX_PENDING or _is_done(pending[0][0])):
                yield _wait(*pending.popleft())
        while pending:
            yield _wait(*pending.popleft())


def _submit(
    pictures: Set, name: str, build: Build, options: OutputOptions, pool: RenderPool
) -> tuple[Future[None] | None, Written]:
    figure = build()
    if isinstance(figure, Empty):
        return None, Written(name, (), figure.reason)
    path = options.folder / f"{pictures.stem}.{figure.rank}.{figure.name}.{options.format}"
    theme = options.theme or Theme.LIGHT

    def work(draw: Draw) -> None:
        write_claimed(path, options, lambda unfinished: draw(figure, unfinished, pictures.size, theme))

    future = pool.submit(work)
    return future, Written(name, (path, *write_data(pictures.stem, figure, options)))


def _is_done(future: Future[None] | None) -> bool:
    return future is None or future.done()


def _wait(future: Future[None] | None, done: Written) -> Written:
    if future is not None:
        future.result()
    return done


def write_data(stem: str, figure: Figure, options: OutputOptions) -> Iterator[Path]:
    """Writes the data of a figure if --data is given."""
    if options.data is not None:
        path = options.folder / f"{stem}.{figure.rank}.{figure.name}.{options.data}"
        write_whole(path, partial(write_numbers, figure, format_=options.data))
        yield path


def prefix(study: Study) -> str:
    """The common start of a report's file names: the name of the first file or of a series, and the devices."""
    name = joined([file.output_stem for file in study.requests.files])
    if study.options.device:
        device = re.sub(r"[^\w.+-]", "_", study.options.device.removeprefix("/dev/"))
        name = short(f"{name}.{device}")
    return f"{name}.each-device" if study.options.each_device else name


def joined(stems: Sequence[str]) -> str:
    """One name for several: `old.1-3` for `old.1` to `old.3`, else `a-and-2-more`."""
    first = short(stems[0])
    if len(stems) == 1:
        return first
    parts = [part for stem in stems if (part := re.fullmatch(r"(.*?)(\d+)", stem))]
    if len(parts) == len(stems) and len({part[1] for part in parts}) == 1:
        numbers = [int(part[2]) for part in parts]
        if numbers == list(range(numbers[0], numbers[0] + len(stems))):
            return f"{first}-{parts[-1][2]}"
    return f"{first}-and-{len(stems) - 1}-more"


def short(stem: str) -> str:
    """Shortens a stem to MAX_STEM_BYTES, with a hash."""
    name = os.fsencode(stem)
    if len(name) <= MAX_STEM_BYTES:
        return stem
    # Drops the rest of a character that was cut.
    head = name[:MAX_STEM_BYTES].decode(errors="ignore")
    return f"{head}~{hashlib.sha256(name).hexdigest()[:8]}"
