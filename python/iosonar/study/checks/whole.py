"""Whether the result is complete and has requests, and that of a real run."""

from __future__ import annotations

from iosonar.study.check import Check
from iosonar.study.grades import Grade
from iosonar.study.requests import Study


def complete(study: Study) -> Check:
    """Whether no file was cut short, and there is a request to judge."""
    if not study.span.requests:
        return Check("complete", Grade.BAD, {"complete": False}, "no request was replayed", "No request was replayed")
    cut = [file.name for file in study.requests.files if not file.complete]
    sentence = "The run was cut short" if cut else "The run is complete"
    reason = f"cut short: {', '.join(cut)}"
    return Check("complete", Grade.BAD if cut else Grade.GOOD, {"complete": not cut}, reason, sentence)


def real(study: Study) -> Check:
    """Whether no file is fake."""
    fakes = [file.fake for file in study.requests.files if file.fake]
    reason, sentence = f"fake result: {'; '.join(fakes)}", "The result is fake" if fakes else ""
    return Check("real", Grade.BAD if fakes else Grade.GOOD, {"real": not fakes}, reason, sentence)
