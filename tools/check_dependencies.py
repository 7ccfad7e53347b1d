"""Checks dependencies: packages against the table in ARCHITECTURE.md, files for cycles, directories for pairs.

A package is a crate, or a package or module of the Python half. The table under "Packages" in ARCHITECTURE.md lists
each with the packages that it uses; this script compares it with the code (a crate can `use` no more than its
Cargo.toml lists; Python packages are found by imports).
Then it searches for files that import each other in a cycle, and for directories that import each other.
It prints every finding. Run it by `make dependencies`.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path, PurePosixPath

import rust_modules

TOP = Path(__file__).resolve().parent.parent
DOCUMENT = "ARCHITECTURE.md"
PYTHON_PACKAGE = PurePosixPath("python/iosonar")
# A crate for tests; any other may use it, but only as a dev-dependency.
TEST_CRATE = "crates/testing"
# The entry of a directory declares and re-exports what is in it.
ENTRIES = frozenset({"mod.rs", "lib.rs", "main.rs", "__init__.py"})

Packages = dict[str, set[str]]
"""Each package's path, with the paths of the packages that it uses."""


@dataclass(frozen=True)
class Dependency:
    """One place in the code where a package uses another."""

    source: str
    target: str
    where: str


def packages_in(document: str) -> Packages:
    """Reads the packages and what they use from the table under the heading "Packages"."""
    _, _, section = document.partition("\n## Packages\n")
    section, _, _ = section.partition("\n## ")
    packages: Packages = {}
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) != 3 or not (name := re.fullmatch(r"`([^`]+)`", cells[0])):
            continue
        packages[name[1]] = set(re.findall(r"`([^`]+)`", cells[2]))
    return packages


def package_of(path: PurePosixPath, packages: Mapping[str, object]) -> str | None:
    """The innermost package that contains a file or module; a module may be given without its `.py`."""
    for candidate in (path, *path.parents):
        for name in (str(candidate), f"{candidate}.py"):
            if name in packages:
                return name
    return None


def crates_used(manifest: Path) -> Iterator[Dependency]:
    """The crates of the project that a Cargo.toml names."""
    source = manifest.parent.relative_to(TOP).as_posix()
    content = tomllib.loads(manifest.read_text())
    for table in ("dependencies", "build-dependencies", "dev-dependencies"):
        for name in content.get(table, {}):
            target = f"crates/{name.removeprefix('iosonar-')}"
            if not name.startswith("iosonar-") or (table == "dev-dependencies" and target == TEST_CRATE):
                continue
            yield Dependency(source, target, f"{manifest.relative_to(TOP)} [{table}]")


def python_imports(file: Path) -> Iterator[tuple[PurePosixPath, int]]:
    """The modules of the Python half that a file imports, anywhere in the file, with the line."""
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
                yield PYTHON_PACKAGE.parent / module.replace(".", "/"), node.lineno


def python_packages_used(file: Path, packages: Packages) -> Iterator[Dependency]:
    """The other packages that a Python file imports from."""
    source = PurePosixPath(file.relative_to(TOP).as_posix())
    for target, line in python_imports(file):
        here, there = package_of(source, packages), package_of(target, packages)
        if here and there and here != there:
            yield Dependency(here, there, f"{source}:{line}")


def python_file(module: PurePosixPath) -> Path | None:
    """The file of a module, or of the module that contains the name."""
    for path in (module, module.parent):
        for candidate in (TOP / f"{path}.py", TOP / path / "__init__.py"):
            if candidate.exists():
                return candidate
    return None


def file_imports() -> Iterator[tuple[Path, Path]]:
    """Every source file of the project with each file that it imports, without tests."""
    for root in sorted((*TOP.glob("crates/*/src/lib.rs"), *TOP.glob("crates/*/src/main.rs"))):
        yield from rust_modules.imports_of(rust_modules.crate_of(root))
    for file in sorted((TOP / PYTHON_PACKAGE).rglob("*.py")):
        for module, _ in python_imports(file):
            target = python_file(module)
            # `__init__.py` only re-exports names.
            if target and target != file and "__init__.py" not in (file.name, target.name):
                yield file, target


def cycles(imports: Iterable[tuple[Path, Path]]) -> Iterator[str]:
    """Each cycle of files: removes the last import of each to find the next."""
    graph: dict[Path, set[Path]] = {}
    for source, target in imports:
        graph.setdefault(source, set()).add(target)
    while True:
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as cycle:
            # Each element is imported by the next one.
            files: list[Path] = list(reversed(cycle.args[1]))
            yield f"files import each other: {' -> '.join(str(file.relative_to(TOP)) for file in files)}"
            graph[files[0]].discard(files[1])
        else:
            return


def pairs(imports: Iterable[tuple[Path, Path]]) -> Iterator[str]:
    """Each two entries of a directory that import each other, with two such imports."""
    found: dict[tuple[PurePosixPath, str, str], tuple[Path, Path]] = {}
    for source, target in imports:
        here, there = PurePosixPath(source.relative_to(TOP)), PurePosixPath(target.relative_to(TOP))
        directory = next(directory for directory in here.parents if there.is_relative_to(directory))
        # `mod.rs` and `__init__.py` are the directory itself.
        parts = [path.relative_to(directory).parts[0] for path in (here, there)]
        if not ENTRIES.isdisjoint(parts):
            continue
        first, second = (part.removesuffix(".rs").removesuffix(".py") for part in parts)
        if first != second:
            found.setdefault((directory, first, second), (source, target))
    for (directory, first, second), forth in sorted(found.items()):
        if first < second and (back := found.get((directory, second, first))):
            inside = TOP / directory
            ways = " and ".join(f"{a.relative_to(inside)} → {b.relative_to(inside)}" for a, b in (forth, back))
            yield f"{directory}: {first} and {second} import each other: {ways}"


def findings(packages: Packages) -> Iterator[str]:
    """Every difference between the table and the code, and every cycle, one sentence each."""
    rust = sorted(TOP.glob("crates/*/src/**/*.rs"))
    python = sorted((TOP / PYTHON_PACKAGE).rglob("*.py"))
    # The top `__init__.py` belongs to no part of the package.
    for file in (*rust, *python):
        path = PurePosixPath(file.relative_to(TOP).as_posix())
        if path != PYTHON_PACKAGE / "__init__.py" and package_of(path, packages) is None:
            yield f"{path} is in no package of the table"
    yield from (f"package {package} is empty" for package in packages if not (TOP / package).exists())
    for package, uses in packages.items():
        yield from (f"{package} uses {other}, which is not in the table" for other in uses - packages.keys())
    try:
        TopologicalSorter(packages).prepare()
    except CycleError as cycle:
        yield f"packages use each other: {' -> '.join(reversed(cycle.args[1]))}"

    found = [each for manifest in sorted(TOP.glob("crates/*/Cargo.toml")) for each in crates_used(manifest)]
    found += [each for file in python for each in python_packages_used(file, packages)]
    used: Packages = {package: set() for package in packages}
    for each in found:
        used.setdefault(each.source, set()).add(each.target)
        if each.target not in packages.get(each.source, set()):
            yield f"{each.where}: {each.source} may not use {each.target}"
    for package, uses in packages.items():
        yield from (f"{package} does not use {other}, but the table lists it" for other in sorted(uses - used[package]))
    imports = list(file_imports())
    yield from cycles(imports)
    yield from pairs(imports)


def main() -> int:
    """Prints the findings; returns 0 without any."""
    packages = packages_in((TOP / DOCUMENT).read_text())
    found = list(findings(packages))
    for sentence in found:
        print(sentence)
    if found:
        print(f"\nThe table of packages is in {DOCUMENT}; a new dependency there is a design decision.")
        return 1
    edges = sum(map(len, packages.values()))
    print(f"dependencies: {len(packages)} packages, {edges} dependencies, no cycles and no pairs of directories")
    return 0


if __name__ == "__main__":
    sys.exit(main())
