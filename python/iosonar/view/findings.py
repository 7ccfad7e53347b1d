"""The findings of the run that a view shows, each with the place in a diagram that shows it.

Another process looks for them, so that the view can be used meanwhile, and its memory stays bounded.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Any
from urllib.parse import urlencode

from iosonar.cleanup import cleanup
from iosonar.errors import UserError


def place(figure: str, from_s: float | None = None, to_s: float | None = None) -> str:
    """The part of an address that leads to a place of a diagram."""
    found: dict[str, object] = {"figure": figure}
    if from_s is not None and to_s is not None and from_s < to_s:
        found |= {"x0": from_s, "x1": to_s}
    return urlencode(found)


class Findings:
    """What a command prints as docs/schemas/diagnosis.json describes it; the process ends with the view."""

    def __init__(self, command: Sequence[str], figures: Sequence[str]) -> None:
        self.figures, self._lock = figures, Lock()
        self._found: list[dict[str, str]] | None = None
        with cleanup.lock:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
            self.close = cleanup.add(self._end, process=True)
            """Ends the process if it still runs."""

    def answer(self, _: Mapping[str, str]) -> dict[str, Any]:
        """All findings, the worst first, once they are known."""
        with self._lock:
            if self._found is None:
                text, _errors = self._process.communicate()
                if self._process.returncode:
                    raise UserError("the findings are not known: `iosonar diagnose` says why")
                self._found = [self._shown(each) for each in json.loads(text)["findings"]]
        return {"findings": self._found}

    def _shown(self, finding: Mapping[str, Any]) -> dict[str, str]:
        """A diagram that the view lacks is replaced by its first one, which shows the same time."""
        evidence = finding["evidence"]
        figure = evidence["diagram"] if evidence["diagram"] in self.figures else self.figures[0]
        return {
            "number": finding["number"],
            "title": finding["title"],
            "severity": "neutral" if finding["severity"] == "info" else finding["severity"],
            "seen": finding["seen"],
            "place": place(figure, evidence["from_s"], evidence["to_s"]),
        }

    def _end(self) -> None:
        self._process.kill()
        self._process.wait()
