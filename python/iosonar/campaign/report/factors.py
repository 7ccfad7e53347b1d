"""The factors of a campaign: the levels of the tree, named by the variables that vary with them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from iosonar.campaign.names import REPLICATE
from iosonar.campaign.varied import DERIVED, module_of
from iosonar.errors import UsageError
from iosonar.text import plain

MAX_VALUE = 24
"""The longest value of a variable that names a level."""

MAX_LISTED = 3
"""Levels in the name of a factor without a variable."""

LEVEL = "directory level"
"""What a factor without a variable is called, with its number."""

NONE = "–"
"""The level of leaves whose path has no component at that depth."""


@dataclass(frozen=True)
class Place:
    """Where a leaf is: the components of its path, and the variables of its run (empty if unknown)."""

    path: tuple[str, ...]
    variables: Mapping[str, str]


@dataclass(frozen=True)
class Factor:
    """Something that was varied, its levels in ascending order, and the level of each leaf as an index."""

    name: str
    levels: tuple[str, ...]
    of: tuple[int, ...]
    together_with: tuple[str, ...] = ()
    """Names of factors that varied together with this one, so that their effects cannot be separated."""

    @property
    def title(self) -> str:
        """The name, with those of the factors that varied together with it."""
        return " + ".join((self.name, *self.together_with))

    def only(self, leaves: Sequence[int]) -> Factor:
        """The factor for some of the leaves, with the levels that they have."""
        kept = sorted({self.of[leaf] for leaf in leaves})
        number = {level: index for index, level in enumerate(kept)}
        return Factor(
            self.name,
            tuple(self.levels[level] for level in kept),
            tuple(number[self.of[leaf]] for leaf in leaves),
            self.together_with,
        )


@dataclass(frozen=True)
class Factors:
    """The factors to report, and others that the model adjusts for."""

    reported: tuple[Factor, ...]
    adjusted: tuple[Factor, ...] = ()

    @property
    def all(self) -> tuple[Factor, ...]:
        """Both."""
        return (*self.reported, *self.adjusted)

    def only(self, leaves: Sequence[int]) -> Factors:
        """The factors for some of the leaves, without those that no longer vary."""
        kept = [
            tuple(each for factor in group if len((each := factor.only(leaves)).levels) > 1)
            for group in (self.reported, self.adjusted)
        ]
        return Factors(*(_merged(group) for group in kept))


def factors_of(places: Sequence[Place], by: Sequence[str] = ()) -> Factors:
    """The factors of a tree: each depth at which paths differ, or the variables and levels in `by`.

    Raises UsageError for a name in `by` that is neither.
    """
    depth = max((len(place.path) for place in places), default=0)
    at_levels = {
        number: factor for number in range(1, depth + 1) if (factor := _at_level(places, number - 1)) is not None
    }
    if not by:
        return Factors(_merged(tuple(at_levels.values())))
    reported = tuple(dict.fromkeys(_named(places, at_levels, name) for name in by))
    partitions = {factor.of for factor in reported}
    others = tuple(factor for factor in at_levels.values() if factor.of not in partitions)
    return Factors(_merged(reported), _merged(others))


def _at_level(places: Sequence[Place], depth: int) -> Factor | None:
    """The factor of one depth of the tree; None if it does not vary, or if it only counts repetitions."""
    components = [place.path[depth] if depth < len(place.path) else NONE for place in places]
    known = {component for component in components if component != NONE}
    if len(set(components)) < 2 or all(REPLICATE.fullmatch(component) for component in known):
        return None
    # Repetitions beside levels of a factor are levels of their own.
    varying = _varying(places, components)
    variable = _variable_of(places, components, varying)
    if variable is None:
        module = module_of(varying)
        return _factor(module, components) if module else _named_by_level(depth + 1, components)
    values = varying[variable]
    if max(map(len, values)) > MAX_VALUE or not all(values):
        # Such as the paths of loads: the names of the directories are easier to read.
        return _factor(variable, components)
    return _factor(variable, values)


def _varying(places: Sequence[Place], components: Sequence[str]) -> dict[str, list[str]]:
    """The variables that depend on the component alone, and their values. One that is not set is empty."""
    if not all(place.variables for place in places):
        return {}
    pairs, found = len(set(components)), {}
    for name in sorted({name for place in places for name in place.variables if not name.startswith(DERIVED)}):
        values = [place.variables.get(name, "") for place in places]
        if len(set(values)) > 1 and len(set(zip(values, components, strict=True))) == pairs:
            found[name] = values
    return found


def _variable_of(places: Sequence[Place], components: Sequence[str], varying: Mapping[str, list[str]]) -> str | None:
    """The only variable that has another value for each component."""
    found = [name for name, values in varying.items() if len(set(values)) == len(set(components))]
    if len(found) > 1:
        # Several variables vary: the component may name one of them, as 016-threads does.
        found = [
            name
            for name in found
            if all(
                name in component or place.variables.get(name) == component
                for place, component in zip(places, components, strict=True)
            )
        ]
    return found[0] if len(found) == 1 else None


def _named(places: Sequence[Place], at_levels: Mapping[int, Factor], name: str) -> Factor:
    """The factor that --by names: a factor of the tree, the number of a level, or a variable."""
    for number, factor in at_levels.items():
        if name in (factor.name, str(number), f"level-{number}", f"level {number}", f"{LEVEL} {number}"):
            return factor
    values = [place.variables.get(name, NONE) for place in places]
    if set(values) == {NONE}:
        variables = sorted({variable for place in places for variable in place.variables})
        raise UsageError(
            f"--by {plain(name)}: no level of the tree and no variable has that name; levels: "
            f"{', '.join(f'{number} ({plain(factor.name)})' for number, factor in at_levels.items()) or 'none'}; "
            f"variables: {', '.join(map(plain, variables)) or 'none is known'}"
        )
    if len(set(values)) < 2:
        raise UsageError(f"--by {plain(name)}: it has the same value in all leaves: {plain(values[0])}")
    return _factor(name, values)


def _named_by_level(number: int, components: Sequence[str]) -> Factor:
    found = _factor(f"{LEVEL} {number}", components)
    names = ", ".join(found.levels[:MAX_LISTED]) + (", …" if len(found.levels) > MAX_LISTED else "")
    return replace(found, name=f"{found.name} ({names})")


def _factor(name: str, values: Sequence[str]) -> Factor:
    levels = sorted(set(values), key=_natural)
    return Factor(name, tuple(levels), tuple(levels.index(value) for value in values))


def _natural(text: str) -> list[tuple[int, float, str]]:
    """A key that sorts numbers within texts by value: 4 before 16, a4 before a16."""
    parts = re.split(r"(\d+(?:\.\d+)?)", text)
    return [(0, float(part), "") if index % 2 else (1, 0.0, part) for index, part in enumerate(parts) if part]


def _merged(factors: tuple[Factor, ...]) -> tuple[Factor, ...]:
    """Joins factors that divide the leaves in the same way."""
    found: list[Factor] = []
    for factor in factors:
        same = next((index for index, other in enumerate(found) if _divides_alike(other, factor)), None)
        if same is None:
            found.append(factor)
        else:
            other = found[same]
            found[same] = Factor(other.name, other.levels, other.of, (*other.together_with, factor.title))
    return tuple(found)


def _divides_alike(one: Factor, other: Factor) -> bool:
    pairs = set(zip(one.of, other.of, strict=True))
    return len(pairs) == len(one.levels) == len(other.levels)
