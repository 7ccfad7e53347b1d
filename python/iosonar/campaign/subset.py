"""Parts of a tree: a random sample of the leaves, or those that vary one thing at a time."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from iosonar.campaign.names import REPLICATE
from iosonar.campaign.tree import Leaf


@dataclass(frozen=True)
class Subset:
    """Which leaves of a tree run. It depends on their names alone, so that a campaign can be continued."""

    sample: int | None = None
    """So many combinations, each with its repetitions."""
    seed: int = 1
    one_at_a_time: bool = False
    """Those that differ from the first leaf in one directory."""

    @property
    def option(self) -> str:
        """As it was asked for."""
        return f"--sample {self.sample} --seed {self.seed}" if self.sample is not None else "--one-at-a-time"

    def left_out(self, leaves: Sequence[Leaf]) -> list[str]:
        """The names of the leaves that do not run."""
        combinations = sorted({_combination(leaf) for leaf in leaves}, key=lambda each: [os.fsencode(x) for x in each])
        chosen = set(combinations)
        if self.sample is not None:
            # By a number that depends on the names alone, so that the others stay when a leaf is added.
            chosen = set(sorted(combinations, key=self._number)[: self.sample])
        elif self.one_at_a_time:
            chosen = {each for each in combinations if _distance(each, combinations[0]) <= 1}
        return [leaf.name for leaf in leaves if _combination(leaf) not in chosen]

    def _number(self, combination: tuple[str, ...]) -> float:
        return random.Random(f"{self.seed}/{'/'.join(combination)}").random()


def _combination(leaf: Leaf) -> tuple[str, ...]:
    """The path without directories that only count repetitions."""
    return tuple(name for name in leaf.path if not REPLICATE.fullmatch(name))


def _distance(one: tuple[str, ...], other: tuple[str, ...]) -> int:
    """In how many directories two paths differ."""
    return sum(here != there for here, there in zip_longest(one, other))
