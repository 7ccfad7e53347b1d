"""The judgement of a run: all checks, computed once, for pages, pictures, verdict.json, terminal, campaign and library.

Fidelity comes first: a run that was not faithful allows no verdict on the storage.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from iosonar.study.check import Check, Topic
from iosonar.study.grades import Grade, worst


@dataclass(frozen=True)
class Judgement:
    """Whether a run was good, and why not. `rows` is the number of its requests or calls, as `noun` says."""

    files: tuple[str, ...]
    noun: str
    rows: int
    checks: tuple[Check, ...]
    doubt: str = ""
    """Why times say nothing about the storage, as a clause; empty if they do."""
    is_fake: bool = False
    window: Mapping[str, float | int | None] | None = None
    """The window of the run that it is about, as in docs/schemas/verdict.json; None for the whole run."""

    @property
    def grade(self) -> Grade:
        """The worst of all grades. A run of unknown fidelity is not good."""
        return worst((Grade.WARNING if self.unknown else Grade.GOOD, *(check.grade for check in self._graded)))

    @property
    def reasons(self) -> Mapping[str, str]:
        """A clause for each check whose grade is not good, by its name; that of the replay itself is the first."""
        bad = (check for check in self._graded if check is self.unknown or check.grade in (Grade.WARNING, Grade.BAD))
        return {check.name: check.reason for check in bad}

    @property
    def unknown(self) -> Check | None:
        """The check of the replay, if it is not known whether it was faithful."""
        of_replay = (check for check in self.checks if check.about is Topic.REPLAY)
        return next((check for check in of_replay if check.grade is None and check.reason), None)

    @property
    def conclusive(self) -> tuple[Check, ...]:
        """The checks that say something, the worst first."""
        found = [check for check in self._told if check.grade and not self._is_doubtful(check)]
        return tuple(sorted(found, key=lambda check: -check.grade.rank if check.grade else 0))

    @property
    def inconclusive(self) -> tuple[Check, ...]:
        """The checks that say nothing about the storage; `doubt` is the reason."""
        return tuple(check for check in self._told if not check.grade or self._is_doubtful(check))

    @property
    def _graded(self) -> list[Check]:
        return [check for check in self.checks if check.is_graded]

    @property
    def _told(self) -> list[Check]:
        """The checks with a sentence: what the replayer did comes first, or last if it is no verdict."""
        told = [check for check in self.checks if check.sentence]
        return sorted(told, key=lambda check: (not check.is_graded, self.is_fake and check.about is Topic.REPLAY))

    def _is_doubtful(self, check: Check) -> bool:
        about = (Topic.TIMES, Topic.REPLAY) if self.is_fake else (Topic.TIMES,)
        return bool(self.doubt) and check.about in about

    def __getitem__(self, name: str) -> Check:
        """The check of that name, as in docs/schemas/verdict.json. Raises KeyError if there is none."""
        for check in self.checks:
            if check.name == name:
                return check
        raise KeyError(name)

    def fails(self, limit: Grade | str) -> bool:
        """Whether the grade is as bad as `limit` (`warning` or `bad`) or worse."""
        return self.grade.rank >= Grade(limit).rank

    def as_json(self) -> dict[str, Any]:
        """The verdict for programs, as docs/schemas/verdict.json describes it."""
        return {
            "schema_version": 1,
            "files": list(self.files),
            "grade": self.grade,
            "reasons": list(self.reasons.values()),
            self.noun: self.rows,
            **({"window": dict(self.window)} if self.window else {}),
            **{check.name: {"grade": check.grade, **check.values} for check in self._graded},
        }
