"""Whether the result is complete and has requests, and that of a real run."""

from __future__ import annotations

from iosonar.study.check import Check
from iosonar.study.grades import Grade
from iosonar.study.requests import Study


def complete(study: Study) -> Check:
    """Whether no file was cut short or is damaged, and there is a request to judge."""
    if not study.span.requests:
        return Check("complete", Grade.BAD, {"complete": False}, "no request was replayed", "No request was replayed")
    files = study.requests.files
    damaged = [file for file in files if file.unreadable_rows]
    cut = [file for file in files if not file.complete and file not in damaged]
    if not cut and not damaged:
        return Check("complete", Grade.GOOD, {"complete": True}, "", "The run is complete")
    found = {"cut short": cut, "damaged, with unreadable rows": damaged}
    reasons = [f"{what}: {', '.join(file.name for file in named)}" for what, named in found.items() if named]
    sentence = "The run was cut short" if cut else "The run is damaged: rows of it are unreadable"
    return Check("complete", Grade.BAD, {"complete": False}, "; ".join(reasons), sentence)


def real(study: Study) -> Check:
    """Whether no file is fake."""
    fakes = [file.fake for file in study.requests.files if file.fake]
    reason, sentence = f"fake result: {'; '.join(fakes)}", "The result is fake" if fakes else ""
    return Check("real", Grade.BAD if fakes else Grade.GOOD, {"real": not fakes}, reason, sentence)
