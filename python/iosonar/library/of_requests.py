"""What the library does with loads and their runs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from iosonar.diagrams import CATALOGUE
from iosonar.diagrams.comparison import ROLES
from iosonar.diagrams.comparison import Side as SideOfRequests
from iosonar.errors import UsageError
from iosonar.findings.registry import diagnose_requests
from iosonar.findings.why_slow import why_slow
from iosonar.library.family import Family, OpenOptions, Side, check
from iosonar.library.originals import beside_original, find_original, original_among
from iosonar.library.windows import in_window, part_of, window_of, without_warm_up
from iosonar.report.compare import RunComparison, compare
from iosonar.report.gate_subjects import subject_of_requests
from iosonar.report.run_page import run_page
from iosonar.report.slowest import slowest_table
from iosonar.study.base import Options
from iosonar.study.of_requests import judgement_of, summary_of
from iosonar.study.original import original_beside
from iosonar.study.requests import Study
from iosonar.table import SourceFile, only_device, requests_of
from iosonar.table.engine import EngineOptions
from iosonar.table.requests import refuse_mixture

MAX_WINDOWS = 100_000
"""More windows could not be distinguished, and would make the page too large."""

LETTERS = "ABCDEF"


def _check(files: Sequence[SourceFile], opening: OpenOptions) -> None:
    refuse_mixture(files)
    check(files, opening)


def _study(files: Sequence[SourceFile], opening: OpenOptions, stack: ExitStack) -> Study:
    """One table of all files. Raises UsageError if there is no such device or a window is too short."""
    options = opening.options
    requests = stack.enter_context(requests_of(tuple(files), opening.spill, opening.resources))
    study = in_window(only_device(requests, options.device) if options.device else requests, options)
    if (window := options.window_s) is not None:
        length_s = study.last_s - study.first_s
        if window < 1e-9:
            raise UsageError(f"--window {window:g} is too short: the minimum is 1 ns")
        if length_s / window > MAX_WINDOWS:
            least = f"{length_s / MAX_WINDOWS:.2g}"
            raise UsageError(
                f"--window {window:g} is too short: at most {MAX_WINDOWS:,} windows fit, so use at least {least} s"
            )
    find_original(study, opening, stack)
    return study


def _compare(sides: Sequence[Side], options: Options, resources: EngineOptions, stack: ExitStack) -> RunComparison:
    if len(sides) > len(ROLES):
        raise UsageError(
            f"at most {len(ROLES)} sides can be compared, not {len(sides)}; group runs into sides with `vs`"
        )
    original, sides = original_among([side.files for side in sides]), [*sides]
    if original:
        sides = [side for side in sides if side.files != (original,)]
    studies = [
        part_of(Study(side.study.requests, options, origin_ns=0), options.window, origin_ns=0)
        for side in sides
        if isinstance(side.study, Study)
    ]
    if options.skip_warm_up:
        window = without_warm_up(studies, options.window)
        studies = [part_of(study, window, origin_ns=0) for study in studies]
    if original:
        studies = beside_original(studies, original)
    return compare([SideOfRequests(letter, study) for letter, study in zip(LETTERS, studies, strict=False)])


FAMILY = Family[Study](
    noun="requests",
    title="requests",
    study=_study,
    table=lambda study: study.requests.table,
    diagrams=CATALOGUE,
    page=run_page,
    check=_check,
    summary=summary_of,
    judgement=lambda study: judgement_of(study) if study.requests.is_run else None,
    subject=subject_of_requests,
    diagnose=diagnose_requests,
    why_slow=why_slow,
    slowest=slowest_table,
    writes_verdict=lambda study: study.requests.is_run,
    by_default=lambda study, selection: selection.choose(
        CATALOGUE, study.requests, has_original=original_beside(study) is not None
    ),
    refused=(),
    compare=_compare,
    window_of=window_of,
)
