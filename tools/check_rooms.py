"""Checks that the arrows between rooms are those of ARCHITECTURE.md, and that they point one way.

A room is a crate, or a package or module of the Python half. The table under "Rooms" in ARCHITECTURE.md names each and
the rooms that it uses; this script compares that with what the code says (a crate can `use` no more than its Cargo.toml
names; Python says it by its imports) and prints every disagreement. Run it by `make rooms`.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path, PurePosixPath

TOP = Path(__file__).resolve().parent.parent
DOCUMENT = "ARCHITECTURE.md"
PYTHON_PACKAGE = PurePosixPath("python/iosonar")
# A crate for tests alone; any other may use it, but only as a dev-dependency.
TEST_CRATE = "crates/testing"

Rooms = dict[str, set[str]]
"""Each room's path, with the paths of the rooms that it uses."""


@dataclass(frozen=True)
class Arrow:
    """One place in the code where a room uses another."""

    source: str
    target: str
    where: str


def rooms_in(document: str) -> Rooms:
    """Reads the rooms and their arrows from the table under the heading "Rooms"."""
    _, _, section = document.partition("\n## Rooms\n")
    section, _, _ = section.partition("\n## ")
    rooms: Rooms = {}
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) != 3 or not (name := re.fullmatch(r"`([^`]+)`", cells[0])):
            continue
        rooms[name[1]] = set(re.findall(r"`([^`]+)`", cells[2]))
    return rooms


def room_of(path: PurePosixPath, rooms: Mapping[str, object]) -> str | None:
    """The innermost room that a file or module of this path stands in; a module may be named without its `.py`."""
    for candidate in (path, *path.parents):
        for name in (str(candidate), f"{candidate}.py"):
            if name in rooms:
                return name
    return None


def arrows_of_manifest(manifest: Path) -> Iterator[Arrow]:
    """The crates of the project that a Cargo.toml names."""
    source = manifest.parent.relative_to(TOP).as_posix()
    content = tomllib.loads(manifest.read_text())
    for table in ("dependencies", "build-dependencies", "dev-dependencies"):
        for name in content.get(table, {}):
            target = f"crates/{name.removeprefix('iosonar-')}"
            if not name.startswith("iosonar-") or (table == "dev-dependencies" and target == TEST_CRATE):
                continue
            yield Arrow(source, target, f"{manifest.relative_to(TOP)} [{table}]")


def arrows_of_python(file: Path, rooms: Rooms) -> Iterator[Arrow]:
    """The modules of the package that a Python file imports, wherever in the file it does."""
    path = PurePosixPath(file.relative_to(TOP).as_posix())
    for node in ast.walk(ast.parse(file.read_text(), filename=str(file))):
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = [*path.parent.parts[1:]][: len(path.parent.parts) - node.level] if node.level else []
            stem = ".".join([*base, *([node.module] if node.module else [])])
            modules = [f"{stem}.{alias.name}" for alias in node.names]
        else:
            continue
        for module in modules:
            if module.split(".")[0] == PYTHON_PACKAGE.name:
                yield from arrow(path, PYTHON_PACKAGE.parent / module.replace(".", "/"), node.lineno, rooms)


def arrow(source: PurePosixPath, target: PurePosixPath, line: int, rooms: Rooms) -> Iterator[Arrow]:
    """The arrow between two modules, if they stand in different rooms."""
    here, there = room_of(source, rooms), room_of(target, rooms)
    if here and there and here != there:
        yield Arrow(here, there, f"{source}:{line}")


def findings(rooms: Rooms) -> Iterator[str]:
    """Every disagreement between the table and the code, one sentence each."""
    rust = sorted(TOP.glob("crates/*/src/**/*.rs"))
    python = sorted((TOP / PYTHON_PACKAGE).rglob("*.py"))
    # The package's own front door belongs to no room.
    homeless = [file for file in (*rust, *python) if file.relative_to(TOP) != Path(PYTHON_PACKAGE / "__init__.py")]
    homeless = [f for f in homeless if room_of(PurePosixPath(f.relative_to(TOP).as_posix()), rooms) is None]
    yield from (f"{file.relative_to(TOP)} stands in no room" for file in homeless)
    yield from (f"room {room} is empty" for room in rooms if not (TOP / room).exists())
    for room, uses in rooms.items():
        yield from (f"{room} is said to use {other}, which is no room" for other in uses - rooms.keys())
    try:
        TopologicalSorter(rooms).prepare()
    except CycleError as cycle:
        yield f"the arrows go round: {' -> '.join(reversed(cycle.args[1]))}"

    arrows = [a for manifest in sorted(TOP.glob("crates/*/Cargo.toml")) for a in arrows_of_manifest(manifest)]
    arrows += [a for file in python for a in arrows_of_python(file, rooms)]
    used: Rooms = {room: set() for room in rooms}
    for each in arrows:
        used.setdefault(each.source, set()).add(each.target)
        if each.target not in rooms.get(each.source, set()):
            yield f"{each.where}: {each.source} may not use {each.target}"
    for room, uses in rooms.items():
        yield from (f"{room} is said to use {other}, but does not" for other in sorted(uses - used[room]))


def main() -> int:
    """Prints what disagrees; 0 if nothing does."""
    rooms = rooms_in((TOP / DOCUMENT).read_text())
    found = list(findings(rooms))
    for sentence in found:
        print(sentence)
    if found:
        print(f"\nThe table of rooms is in {DOCUMENT}; a new arrow there is a decision about the design.")
        return 1
    print(f"rooms: {len(rooms)} in order, {sum(map(len, rooms.values()))} arrows, all one way")
    return 0


if __name__ == "__main__":
    sys.exit(main())
