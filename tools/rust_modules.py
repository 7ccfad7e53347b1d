"""Finds which files of a Rust crate use which others, from `use` items and from paths in the code.

An import through a module that re-exports a name (`pub use`) counts as an import of the file that defines the name.
Test modules are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ITEM = re.compile(
    r"^(?:pub(?:\([^)]*\))? )?(?:const |async |unsafe |extern \"C\" )*"
    r"(?:fn|struct|enum|union|trait|type|const|static|macro_rules!)\s+([A-Za-z_]\w*)",
    re.MULTILINE,
)
MODULE = re.compile(r"^((?:#\[[^\n]*\]\s*)*)(?:pub(?:\([^)]*\))? )?mod (\w+);", re.MULTILINE)
USE = re.compile(r"^\s*(pub(?:\([^)]*\))? )?use ([^;]+);", re.MULTILINE)
PATH = re.compile(r"(?<![\w:])((?:crate|self|super)(?:::\w+)+)")
TESTS = re.compile(
    r"^#\[cfg\((?:test|all\(test[^\n]*)\)\]\s*(?:#\[[^\n]*\]\s*)*mod \w+ \{.*?^\}", re.MULTILINE | re.DOTALL
)
NO_CODE = re.compile(r"//[^\n]*|\"(?:[^\"\\]|\\.)*\"", re.DOTALL)


@dataclass
class Module:
    """A file: the names that it defines, re-exports and uses."""

    name: tuple[str, ...]
    file: Path
    items: set[str] = field(default_factory=set)
    reexports: dict[str, tuple[str, ...]] = field(default_factory=dict)
    used: set[tuple[str, ...]] = field(default_factory=set)


Crate = dict[tuple[str, ...], Module]


def crate_of(root: Path) -> Crate:
    """The modules below a `lib.rs` or `main.rs`, by their paths."""
    crate: Crate = {}
    _add(crate, (), root)
    for module in crate.values():
        _read(crate, module)
    return crate


def _add(crate: Crate, name: tuple[str, ...], file: Path) -> None:
    crate[name] = Module(name, file)
    directory = file.parent if file.stem in {"lib", "main", "mod"} else file.with_suffix("")
    for match in MODULE.finditer(_code(file)):
        if "test" in match[1]:
            continue
        places = (directory / f"{match[2]}.rs", directory / match[2] / "mod.rs")
        found = next((place for place in places if place.exists()), None)
        if found:
            _add(crate, (*name, match[2]), found)


def _code(file: Path) -> str:
    return TESTS.sub("", NO_CODE.sub("", file.read_text()))


def _read(crate: Crate, module: Module) -> None:
    code = _code(module.file)
    module.items = set(ITEM.findall(code))
    for match in USE.finditer(code):
        for path, alias in _leaves("".join(match[2].split("\n"))):
            absolute = _absolute(crate, module, path)
            if absolute is None:
                continue
            if match[1]:
                module.reexports[alias] = absolute
            else:
                module.used.add(absolute)
    children = [name[-1] for name in crate if name[:-1] == module.name and name]
    code = USE.sub("", code)
    inline = PATH.findall(code)
    if children:
        inline += re.findall(rf"(?<![\w:.])((?:{'|'.join(children)})::\w+)", code)
    for path in inline:
        absolute = _absolute(crate, module, tuple(path.split("::")))
        if absolute is not None:
            module.used.add(absolute)


def _leaves(tree: str, prefix: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Each path of a use tree such as `a::{b, c::{self, D as E}}`, with its local name."""
    tree = tree.strip()
    head, brace, rest = tree.partition("{")
    if not brace:
        path, _, alias = tree.partition(" as ")
        parts = (*prefix, *(part.strip() for part in path.split("::")))
        parts = parts[:-1] if parts[-1] == "self" and len(parts) > 1 else parts
        yield parts, alias.strip() or parts[-1]
        return
    prefix = (*prefix, *(part.strip() for part in head.split("::") if part.strip()))
    depth, start, inner = 0, 0, rest[: rest.rindex("}")]
    for at, char in enumerate(f"{inner},"):
        depth += (char == "{") - (char == "}")
        if char == "," and depth == 0:
            if part := inner[start:at].strip():
                yield from _leaves(part, prefix)
            start = at + 1


def _absolute(crate: Crate, module: Module, path: tuple[str, ...]) -> tuple[str, ...] | None:
    """The path from the root of the crate; `None` if it is outside of the crate."""
    here = module.name
    if path[0] == "crate":
        return path[1:]
    if path[0] == "self":
        return (*here, *path[1:])
    while path and path[0] == "super":
        here, path = here[:-1], path[1:]
        if not path or path[0] != "super":
            return (*here, *path)
    return (*here, *path) if (*here, path[0]) in crate else None


def imports_of(crate: Crate) -> Iterator[tuple[Path, Path]]:
    """Each file with each other file of the crate that it uses."""
    for module in crate.values():
        for path in module.used:
            found = _defining(crate, path)
            if found and found.file != module.file:
                yield module.file, found.file


def _defining(crate: Crate, path: tuple[str, ...], depth: int = 0) -> Module | None:
    """The module that defines the item of a path, through re-exports."""
    known = next((path[:n] for n in range(len(path), -1, -1) if path[:n] in crate), ())
    module, rest = crate[known], path[len(known) :]
    if rest and depth < 8 and rest[0] in module.reexports:
        return _defining(crate, (*module.reexports[rest[0]], *rest[1:]), depth + 1)
    if rest and rest[0] not in module.items and rest[0] != "*":
        # Generated by a macro, or an external name imported by a `use`: not an import of this file.
        return None
    return module
