"""Runs `iosonar diagnose`, and keeps what it found for as long as neither the run nor the Python half changes."""

from __future__ import annotations

import functools
import hashlib
import json
from pathlib import Path

from making import ScenarioError, call
from scenario import TOP

PACKAGE = TOP / "python/iosonar"


@functools.cache
def version() -> str:
    """A hash of the Python half."""
    found = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*.py")):
        found.update(path.read_bytes())
    return found.hexdigest()[:12]


def diagnose(runs: list[Path]) -> dict[str, str]:
    """The numbers of the findings, with severity and what was seen."""
    kept = runs[0].parent / f"diagnosis-{version()}.json"
    if not kept.exists():
        text = call("diagnose", "--json", *runs)
        try:
            json.loads(text)
        except ValueError:
            raise ScenarioError(f"diagnose printed no JSON: {text[:200]}") from None
        for old in runs[0].parent.glob("diagnosis-*.json"):
            old.unlink()
        kept.write_text(text)
    findings = json.loads(kept.read_text())["findings"]
    return {each["number"]: f"{each['severity']}: {each['seen']}" for each in findings}


def titles() -> dict[str, str]:
    """The titles of all findings, if the Python half has a registry of them."""
    try:
        from iosonar.findings.registry import all_detectors
    except ImportError:
        return {}
    return {detector.number: detector.title for detector in all_detectors()}
