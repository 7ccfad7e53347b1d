"""In how many leaves of a campaign, and at which level of which factor, each finding was made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from iosonar import units
from iosonar.campaign.report.analysis import Analysis
from iosonar.campaign.report.factors import LEVEL
from iosonar.campaign.report.found import Found
from iosonar.campaign.report.results import LeafResult
from iosonar.findings.registry import all_detectors
from iosonar.text import plain

MORE_OFTEN = 0.25
"""A level is named if the share of its leaves with a finding exceeds that of all leaves by this."""

COMMON = 0.5
"""A more direct cause is named before a more frequent one if it was found in this share of as many leaves."""


@dataclass(frozen=True)
class Spread:
    """A finding, and the leaves in which it was made, those where it is worst first."""

    number: str
    leaves: tuple[tuple[LeafResult, Found], ...]
    of: int
    """All leaves that were looked at."""
    factor_level: str = ""
    """The level of a factor where most were, as a clause; empty if no level stands out."""

    @property
    def title(self) -> str:
        """What it is called."""
        return TITLES[self.number]

    @property
    def worst(self) -> Found:
        """One of the worst of them."""
        return self.leaves[0][1]

    @property
    def where(self) -> str:
        """In 3 of 8 leaves, most often where threads is 64 (3 of 4)."""
        number = len(self.leaves)
        if number == self.of:
            return "the only leaf" if number == 1 else f"all {number} leaves"
        text = f"{number} of {units.counted(self.of, 'leaf', 'leaves')}"
        return f"{text}, {self.factor_level}" if self.factor_level else text

    @property
    def sentence(self) -> str:
        """In how many leaves it was found, and what was seen in the worst of them."""
        leaf, found = self.leaves[0]
        return f"{self.title} ({self.number}), in {self.where}. In {leaf.name}: {lower(found.seen)}"


@dataclass(frozen=True)
class Findings:
    """All findings of a campaign's leaves."""

    analysis: Analysis

    @cached_property
    def all(self) -> tuple[Spread, ...]:
        """In the order of their numbers."""
        made: dict[str, list[tuple[LeafResult, Found]]] = {}
        for leaf in self.analysis.used:
            for found in leaf.findings:
                made.setdefault(found.number, []).append((leaf, found))
        return tuple(
            Spread(
                number,
                tuple(sorted(leaves, key=lambda each: -each[1].severity.rank)),
                len(self.analysis.used),
                self._factor_level([leaf for leaf, _ in leaves]),
            )
            for number, leaves in sorted(made.items())
        )

    def first(self, numbers: Sequence[str]) -> Spread | None:
        """The first of these findings that is not much rarer than the most frequent of them."""
        known = {each.number: each for each in self.all if each.number in numbers}
        most = max((len(each.leaves) for each in known.values()), default=0)
        common = (known[number] for number in numbers if number in known)
        return next((each for each in common if len(each.leaves) >= COMMON * most), None)

    def elsewhere(self, numbers: Sequence[str], first: Spread) -> Iterator[Spread]:
        """Others of these findings that were made in leaves without the first."""
        names = {leaf.name for leaf, _ in first.leaves}
        for each in self.all:
            if each.number in numbers and any(leaf.name not in names for leaf, _ in each.leaves):
                yield each

    def _factor_level(self, leaves: Sequence[LeafResult]) -> str:
        """The level at which most leaves have it, compared with all levels."""
        names = {leaf.name for leaf in leaves}
        has = [leaf.name in names for leaf in self.analysis.used]
        usual = sum(has) / len(has)
        best = max(self._shares(has), default=None)
        if best is None or best[0] - usual < MORE_OFTEN:
            return ""
        share, number, factor, level = best
        where = f"in {level}" if factor.startswith(LEVEL) else f"where {factor} is {level}"
        return f"most often {where} ({number} of {round(number / share)})"

    def _shares(self, has: Sequence[bool]) -> Iterator[tuple[float, int, str, str]]:
        """The share of the leaves that have it, at each level of each factor."""
        for factor in self.analysis.factors.reported:
            for index, level in enumerate(factor.levels):
                at = [one for one, of in zip(has, factor.of, strict=True) if of == index]
                if sum(at):
                    yield sum(at) / len(at), sum(at), plain(factor.title.partition(" (")[0]), plain(level)


def lower(text: str) -> str:
    """In the middle of a sentence, unless it begins with a name such as p99 or SCSI."""
    return text if text[1:2].isupper() else f"{text[:1].lower()}{text[1:]}"


TITLES = {each.number: each.title for each in all_detectors()}
"""What each finding is called."""
