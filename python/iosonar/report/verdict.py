"""Writes the verdict on a run for scripts: one JSON object, documented by docs/schemas/verdict.json."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from iosonar.findings.finding import Finding
from iosonar.report.outputs import write_whole
from iosonar.study.judgement import Judgement


def write_verdict(judgement: Judgement, findings: Sequence[Finding], path: Path) -> None:
    """Writes the verdict atomically, with what was found."""
    found = judgement.as_json() | {"findings": [each.as_json() for each in findings]}
    content = json.dumps(found, indent=2, ensure_ascii=False) + "\n"
    write_whole(path, lambda unfinished: _write(content, unfinished))


def _write(content: str, path: Path) -> None:
    path.write_text(content, encoding="utf-8")
