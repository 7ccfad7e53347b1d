"""What is in the binary and in the environment of the Python half: licences, and a list for scanners (CycloneDX)."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.parser import HeaderParser
from pathlib import Path
from typing import Any

from packages.description import ROOT

# Names of files with the terms of a library.
TERMS = re.compile(r"(licen[cs]e|copying|copyright|notice|unlicense)", re.IGNORECASE)


@dataclass(frozen=True, order=True)
class Library:
    """A crate or a Python library."""

    name: str
    version: str
    licence: str
    # cargo or pypi, as package URLs name them.
    kind: str
    # Where its texts of licences are.
    directory: Path

    def texts(self) -> list[str]:
        """Its texts of licences, also those of libraries in C that it contains."""
        found = [
            path
            for path in self.directory.rglob("*")
            if path.is_file() and TERMS.match(path.name) and path.suffix != ".py"
        ]
        return [path.read_text(errors="replace").strip() for path in sorted(found)]


def crates(target: str) -> list[Library]:
    """The crates that are linked into the binary: no build scripts' and no tests' own."""
    command = ["cargo", "metadata", "--locked", "--format-version=1", f"--filter-platform={target}"]
    return linked(json.loads(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout))


def linked(metadata: dict[str, Any]) -> list[Library]:
    """The crates that the binary reaches by dependencies that are neither for tests nor for build scripts."""
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    packages = {package["id"]: package for package in metadata["packages"]}
    waiting = [name for name, package in packages.items() if package["name"] == "iosonar" and package["source"] is None]
    optional = {"assert_cmd", "insta", "proptest"}
    reached: set[str] = set()
    while waiting:
        name = waiting.pop()
        reached.add(name)
        for dependency in nodes[name]["deps"]:
            kinds = {kind["kind"] for kind in dependency["dep_kinds"]}
            macro = any("proc-macro" in target["kind"] for target in packages[dependency["pkg"]]["targets"])
            of_tests = packages[dependency["pkg"]]["name"] in optional
            # Crates named so have the source of a library in C, which a build script compiles.
            of_c = packages[dependency["pkg"]]["name"].endswith("-src")
            if (None in kinds or of_c) and not macro and not of_tests and dependency["pkg"] not in reached:
                waiting.append(dependency["pkg"])
    found = (packages[name] for name in reached if packages[name]["source"] is not None)
    return sorted(
        Library(each["name"], each["version"], each["license"] or "", "cargo", Path(each["manifest_path"]).parent)
        for each in found
    )


def python_libraries(environment: Path) -> list[Library]:
    """The libraries in an environment, by the metadata that they installed."""
    return sorted(
        of_metadata(path)
        for path in environment.glob("*.dist-info/METADATA")
        if not path.parent.name.startswith("iosonar-")
    )


def of_metadata(path: Path) -> Library:
    """A library by its file METADATA."""
    fields = HeaderParser().parsestr(path.read_text(errors="replace"))
    licence = fields.get("License-Expression") or ""
    if not licence:
        names = [
            each.rsplit(" :: ", 1)[-1] for each in fields.get_all("Classifier", []) if each.startswith("License ::")
        ]
        licence = ", ".join(names) or (fields.get("License") or "").split("\n")[0]
    return Library(str(fields["Name"]), str(fields["Version"]), licence, "pypi", path.parent)


def third_party(libraries: Iterable[Library]) -> str:
    """The terms of all libraries; texts that several have are printed once."""
    names: dict[str, list[str]] = {}
    without = []
    for library in libraries:
        title = f"{library.name} {library.version} ({library.licence})"
        texts = library.texts()
        if not texts:
            without.append(title)
        for text in texts:
            names.setdefault(text, []).append(title)
    parts = ["iosonar contains these libraries. Their terms follow, each text once.\n"]
    parts += [
        f"{'=' * 80}\n{chr(10).join(dict.fromkeys(titles))}\n{'-' * 80}\n{text}\n" for text, titles in names.items()
    ]
    if without:
        parts.append(f"{'=' * 80}\nWithout a text of their own:\n{chr(10).join(without)}\n")
    return "\n".join(parts)


# What rustc links into a static binary.
OF_RUST = """\
The binary has the standard library of Rust (MIT OR Apache-2.0, copyright The Rust Project Developers) and the C library
musl (MIT, copyright 2005-2024 Rich Felker, et al.).
"""


def bill_of_materials(version: str, commit: str, epoch: int, libraries: Iterable[Library]) -> str:
    """CycloneDX, as JSON."""
    components = [
        {
            "type": "library",
            "bom-ref": f"pkg:{library.kind}/{library.name}@{library.version}",
            "name": library.name,
            "version": library.version,
            "purl": f"pkg:{library.kind}/{library.name}@{library.version}",
            "licenses": [{"expression": library.licence}]
            if library.kind == "cargo"
            else [{"license": {"name": library.licence}}],
        }
        for library in libraries
    ]
    program = {
        "type": "application",
        "bom-ref": "iosonar",
        "name": "iosonar",
        "version": version,
        "description": commit,
    }
    content = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": program,
        },
        "components": components,
    }
    return json.dumps(content, indent=1) + "\n"
