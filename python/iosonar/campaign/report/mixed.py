"""Leaves whose replays had other options than the rest, although the confs of their paths do not say so.

Such a difference comes from a changed default or `--override`, or from a conf that was changed between the runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from iosonar.campaign.names import REPLICATE
from iosonar.campaign.report.factors import Factor
from iosonar.campaign.report.results import LeafResult

SEED = "--seed"
"""Repetitions may have seeds of their own."""

Options = frozenset[str]


@dataclass(frozen=True)
class Group:
    """Leaves with the same options, of those that differ."""

    options: tuple[str, ...]
    leaves: tuple[LeafResult, ...]


def groups_of(leaves: Sequence[LeafResult]) -> list[Group]:
    """The leaves by the options that should not differ, the largest group first; empty if none differs."""
    found: dict[Options, list[LeafResult]] = {}
    for leaf, options in zip(leaves, _options(leaves), strict=True):
        if options is not None:
            found.setdefault(options, []).append(leaf)
    if len(found) < 2:
        return []
    in_all = frozenset.intersection(*found)
    groups = [Group(tuple(sorted(options - in_all)), tuple(of)) for options, of in found.items()]
    return sorted(groups, key=lambda group: -len(group.leaves))


def mixing(factors: Sequence[Factor], leaves: Sequence[LeafResult]) -> list[str]:
    """The titles of factors whose effects the options may explain: they are not distributed alike over the levels."""
    known = _options(leaves)
    return [factor.title for factor in factors if len(set(_shares(factor, known))) > 1]


def _shares(factor: Factor, known: Sequence[Options | None]) -> Iterator[frozenset[tuple[Options, Fraction]]]:
    """For each level, the share of its leaves that ran with each of the options."""
    for level in range(len(factor.levels)):
        counts = Counter(
            options for options, of in zip(known, factor.of, strict=True) if of == level and options is not None
        )
        if counts:
            yield frozenset((options, Fraction(count, counts.total())) for options, count in counts.items())


def _options(leaves: Sequence[LeafResult]) -> list[Options | None]:
    """The options of each leaf that should not differ; None if they are not known.

    Those of defaults and overrides should be the same in all leaves, all options in the repetitions of a leaf.
    """
    cells: dict[tuple[str, ...], set[Options]] = {}
    for leaf in leaves:
        if leaf.options is not None:
            cells.setdefault(_cell(leaf), set()).add(_words(leaf.options))
    return [
        None
        if leaf.common_options is None or leaf.options is None
        else _words(leaf.common_options) | (_words(leaf.options) if len(cells[_cell(leaf)]) > 1 else frozenset())
        for leaf in leaves
    ]


def _cell(leaf: LeafResult) -> tuple[str, ...]:
    return tuple(name for name in leaf.path if not REPLICATE.fullmatch(name))


def _words(options: Sequence[str]) -> Options:
    """Options, each with its value."""
    found: list[str] = []
    for word in options:
        if word.startswith("-") or not found:
            found.append(word)
        else:
            found[-1] += f" {word}"
    return frozenset(word for word in found if word.replace("=", " ").split(" ")[0] != SEED)
