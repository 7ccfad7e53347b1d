"""What a scenario is, and how its file is read."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
TOP = HERE.parent.parent
CLEAN = "clean"
"""The kind of the scenarios without a cause."""

HALVES = ("tune", "judge")
Must = tuple[frozenset[str], ...]


@dataclass(frozen=True, eq=False)
class Scenario:
    """A load on a device, with what must and what may be found in the run."""

    kind: str
    name: str
    why: str
    """The planted cause, in a sentence."""
    strength: str = ""
    load: str = ""
    """Words of `iosonar generate`, without the output; or `natural NAME`."""
    program: str = ""
    """The text of a program, or the name of a ready one."""
    device: str = ""
    """Name of a device in devices.toml, or of a preset."""
    laws: str = ""
    """Laws that are added to it, in TOML."""
    replay: str = ""
    """Further options of the replay."""
    calls: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of a pattern of calls.py; `natural` names a recorded trace."""
    on: Mapping[str, Any] = field(default_factory=dict)
    """A real device: arguments of real.py."""
    must: Must = ()
    """Of each set, one is found."""
    may: frozenset[str] = frozenset()
    """Also true of this run, so not counted."""

    @property
    def of_calls(self) -> bool:
        """Whether it is a trace of calls."""
        return bool(self.calls)

    @property
    def allowed(self) -> frozenset[str]:
        """What is not a false finding."""
        return self.may.union(*self.must)

    @property
    def seed(self) -> int:
        """Of its load and its device, by its name."""
        return int(hashlib.sha256(self.name.encode()).hexdigest()[:6], 16)

    def made_of(self, *more: str) -> str:
        """A hash of all that its run depends on: not of what is expected."""
        whole = asdict(self) | {"must": 0, "may": 0, "why": 0, "strength": 0, "kind": 0, "more": more}
        return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()[:12]


def read(path: Path) -> list[Scenario]:
    """The scenarios of a file. `[default]` has keys of all of them."""
    text = tomllib.loads(path.read_text())
    kind = path.stem
    found = []
    for each in text["scenario"]:
        keys = text.get("default", {}) | each
        must = keys.pop("must", [] if kind.startswith(CLEAN) else [kind])
        may = frozenset(keys.pop("may", []))
        sets = tuple(frozenset(one.split("|")) for one in must)
        found.append(Scenario(kind=CLEAN if kind.startswith(CLEAN) else kind, must=sets, may=may, **keys))
    return found


def read_all(directory: Path = HERE / "kinds") -> list[Scenario]:
    """All scenarios, in the order of their files."""
    found = [scenario for path in sorted(directory.glob("*.toml")) for scenario in read(path)]
    names = [scenario.name for scenario in found]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ValueError(f"two scenarios have the same name: {', '.join(sorted(twice))}")
    return found


def half_of(scenarios: Iterable[Scenario], half: str, seed: int) -> list[Scenario]:
    """One half of the scenarios of each kind, drawn by the seed; an odd one goes to a half that is drawn, too."""

    def drawn(text: str) -> str:
        return hashlib.sha256(f"{seed} {text}".encode()).hexdigest()

    kept = list(scenarios)
    by_kind: dict[str, list[Scenario]] = {}
    for scenario in kept:
        by_kind.setdefault(scenario.kind, []).append(scenario)
    tune: set[str] = set()
    for kind, members in by_kind.items():
        members.sort(key=lambda scenario: drawn(scenario.name))
        share = (len(members) + int(drawn(kind), 16) % 2) // 2
        tune.update(scenario.name for scenario in members[:share])
    return [scenario for scenario in kept if (scenario.name in tune) == (half == HALVES[0])]
