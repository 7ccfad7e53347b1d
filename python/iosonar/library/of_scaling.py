"""What the library does with the times of several instances."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from iosonar.diagrams.calls.scaling import DIAGRAMS
from iosonar.errors import UsageError
from iosonar.library.family import Family, OpenOptions
from iosonar.report.scaling_page import scaling_page
from iosonar.study.scaling import ScaleStudy
from iosonar.table import SourceFile
from iosonar.table.engines import start


def _check(files: Sequence[SourceFile], opening: OpenOptions) -> None:
    if len(files) > 1:
        raise UsageError(f"{files[0].path} is {files[0].kind.words}: make a report of it alone")


def _study(files: Sequence[SourceFile], opening: OpenOptions, stack: ExitStack) -> ScaleStudy:
    engine = start(opening.spill, opening.resources)
    stack.callback(engine.close)
    return ScaleStudy(engine.read(files[0].parquet, files[0].known_columns), files[0], opening.options)


FAMILY = Family[ScaleStudy](
    noun="instances",
    title="several instances",
    study=_study,
    table=lambda study: study.table,
    diagrams=DIAGRAMS,
    page=scaling_page,
    check=_check,
)
